//! Files on behalf of the pure modules, and paths as the user would write them.

use std::path::{Path, PathBuf};

use crate::fsx::{self, FsError, FsErrorKind};

/// Reads a text file; `None` if there is none.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, FsError> {
    match fsx::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind == FsErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns a path as it is seen from the current directory, if it is below that.
pub(crate) fn shown(path: &Path) -> PathBuf {
    let current_dir = std::env::current_dir().unwrap_or_default();
    match path.strip_prefix(&current_dir) {
        Ok(relative) if relative.as_os_str().is_empty() => PathBuf::from("."),
        Ok(relative) => relative.to_owned(),
        Err(_) => path.to_owned(),
    }
}
