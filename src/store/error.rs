//! What can go wrong with a store, told apart by what to do about it.

use crate::fsx::FsError;
use crate::label::Implausible;

/// A store that did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing can be recorded; reading works.
    #[error("the label store `{store}` cannot be written")]
    ReadOnly {
        /// Name of the store.
        store: String,
    },
    /// The file is not a label store, or it is damaged.
    #[error("the label store `{store}` is damaged")]
    Corrupt {
        /// Name of the store.
        store: String,
        /// What was noticed.
        source: rusqlite::Error,
    },
    /// A newer release has changed it.
    #[error("the label store `{store}` has schema {found}, this release knows up to {known}")]
    Newer {
        /// Name of the store.
        store: String,
        /// Its schema.
        found: u32,
        /// The newest one that this release knows.
        known: u32,
    },
    /// Another process has kept it locked for too long.
    #[error("the label store `{store}` is locked by another process")]
    Busy {
        /// Name of the store.
        store: String,
    },
    /// There is no space left.
    #[error("there is no space left for the label store `{store}`")]
    DiskFull {
        /// Name of the store.
        store: String,
    },
    /// A trial was begun again by somebody else, or is over: who comes late records nothing.
    #[error("a trial is no longer ours in the label store `{store}`")]
    Fenced {
        /// Name of the store.
        store: String,
    },
    /// A record that no reader would believe; nothing of its batch was recorded.
    #[error("a record was refused")]
    Implausible(#[source] Implausible),
    /// The file system refused.
    #[error(transparent)]
    Files(#[from] FsError),
    /// SQLite failed in another way.
    #[error("cannot {action} the label store `{store}`")]
    Sqlite {
        /// What was being done, e.g. `read`.
        action: &'static str,
        /// Name of the store.
        store: String,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// The thread that worked on it panicked.
    #[error("the label store `{store}` failed while working: {panic}")]
    Panicked {
        /// Name of the store.
        store: String,
        /// The panic's message.
        panic: String,
    },
}

impl StoreError {
    /// Tells SQLite's errors apart.
    pub(super) fn of_sqlite(action: &'static str, store: &str, source: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{
            CannotOpen, DatabaseBusy, DatabaseCorrupt, DatabaseLocked, DiskFull, NotADatabase,
            PermissionDenied, ReadOnly,
        };

        let store = store.to_owned();
        match source.sqlite_error_code() {
            Some(ReadOnly | CannotOpen | PermissionDenied) => Self::ReadOnly { store },
            Some(DatabaseCorrupt | NotADatabase) => Self::Corrupt { store, source },
            Some(DatabaseBusy | DatabaseLocked) => Self::Busy { store },
            Some(DiskFull) => Self::DiskFull { store },
            _ => Self::Sqlite {
                action,
                store,
                source,
            },
        }
    }

    /// Returns what the user can do about it, if that is known.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::ReadOnly { store } => Some(format!(
                "check the owner and the permissions of `{store}`, or set `METAINFER_HOME` to a \
                 directory that can be written"
            )),
            Self::Corrupt { store, .. } => Some(format!(
                "move `{store}` away; a new one is made, and what was measured is measured again \
                 unless a shared cache has it"
            )),
            Self::Newer { .. } => Some(
                "update cargo-metainfer, or set `METAINFER_HOME` to a directory of its own for \
                 this release"
                    .to_owned(),
            ),
            Self::Busy { .. } => {
                Some("wait for other runs of `cargo metainfer` to end, then try again".to_owned())
            }
            Self::DiskFull { store } => Some(format!("free some space on the disk of `{store}`")),
            Self::Files(error) => error.help(),
            Self::Sqlite { store, source, .. } if is_disk_error(source) => Some(format!(
                "free some space on the disk of `{store}` or raise the quota; if there is enough, \
                 check whether the disk fails"
            )),
            Self::Implausible(_)
            | Self::Fenced { .. }
            | Self::Sqlite { .. }
            | Self::Panicked { .. } => None,
        }
    }
}

/// Returns whether the disk refused: SQLite tells a full one from the rest, an exhausted quota or
/// limit on file sizes not.
fn is_disk_error(source: &rusqlite::Error) -> bool {
    source.sqlite_error_code() == Some(rusqlite::ErrorCode::SystemIoFailure)
}
