//! What can go wrong with a file, told apart by what to do about it.

use std::io;
use std::path::{Path, PathBuf};

/// An operation on a file or directory that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} `{}`", path.display())]
pub struct FsError {
    /// What was being done, e.g. `read` or `create the directory`.
    pub action: &'static str,
    /// What it was being done to.
    pub path: PathBuf,
    /// What kind of failure it is.
    pub kind: FsErrorKind,
    source: io::Error,
}

/// Kinds of failures that have different remedies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FsErrorKind {
    /// The file or a directory above it does not exist.
    NotFound,
    /// The user may not do this here.
    Permission,
    /// The file system is mounted read-only.
    ReadOnly,
    /// The disk, the quota or the limit on file sizes is exhausted.
    DiskFull,
    /// There is not enough memory for what is in the file.
    OutOfMemory,
    /// Anything else; the source says what.
    Other,
}

impl FsError {
    /// Adds context to an error of the operating system.
    pub fn new(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self {
            action,
            path: path.to_owned(),
            kind: FsErrorKind::of(&source),
            source,
        }
    }

    /// Returns what the user can do about it, if that is known.
    pub fn help(&self) -> Option<String> {
        let path = self.path.display();
        match self.kind {
            FsErrorKind::NotFound => Some(format!("check that `{path}` exists and is spelled so")),
            FsErrorKind::Permission => Some(format!(
                "check the owner and the permissions of `{path}` and of the directories above it"
            )),
            FsErrorKind::ReadOnly => Some(format!(
                "`{path}` is on a read-only file system: choose another place or remount it"
            )),
            FsErrorKind::DiskFull => Some(format!(
                "free some space on the disk of `{path}`, or raise the quota"
            )),
            FsErrorKind::OutOfMemory | FsErrorKind::Other => None,
        }
    }

    /// Returns whether writing is impossible here while reading may work.
    pub fn is_unwritable(&self) -> bool {
        matches!(self.kind, FsErrorKind::Permission | FsErrorKind::ReadOnly)
    }
}

impl FsErrorKind {
    fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::PermissionDenied => Self::Permission,
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::DiskFull,
            io::ErrorKind::OutOfMemory => Self::OutOfMemory,
            _ => Self::Other,
        }
    }
}
