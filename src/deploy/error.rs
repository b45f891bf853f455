//! Why a program cannot be exported.

use std::path::PathBuf;

use crate::fsx::FsError;

/// A program that could not be exported.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// The directory belongs to somebody else.
    #[error("`{}` has files that `cargo metainfer deploy` did not write", .0.display())]
    Occupied(PathBuf),
    /// Sizes that do not fit in memory.
    #[error("value `{0}` has more elements than memory can hold")]
    TooLarge(String),
    /// A file could not be read or written.
    #[error(transparent)]
    Files(#[from] FsError),
    /// A template is wrong; the tests render all of them.
    #[error("cannot render the crate")]
    Template(#[from] minijinja::Error),
}

impl DeployError {
    /// Returns what the user can do about it, if that is known.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Occupied(path) => Some(format!(
                "choose another directory with `--out`, or remove `{}`",
                path.display()
            )),
            Self::Files(error) => error.help(),
            Self::TooLarge(_) | Self::Template(_) => None,
        }
    }
}
