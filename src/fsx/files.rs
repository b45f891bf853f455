//! Reading and writing whole files.
#![expect(
    clippy::disallowed_methods,
    reason = "this is the one module that writes to the file system"
)]

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use super::FsError;

/// Age from which a temporary file cannot belong to a writer that is still at work.
const LEFTOVER_AGE: Duration = Duration::from_mins(1);

/// Reads a file.
///
/// # Errors
/// [`FsError`] names the file.
pub fn read(path: &Path) -> Result<Vec<u8>, FsError> {
    fs::read(path).map_err(|error| FsError::new("read", path, error))
}

/// Reads a text file.
///
/// # Errors
/// [`FsError`] names the file, also if it is not UTF-8.
pub fn read_to_string(path: &Path) -> Result<String, FsError> {
    fs::read_to_string(path).map_err(|error| FsError::new("read", path, error))
}

/// Replaces a file as a whole, durably: a reader sees the old content or the new one, also after a
/// crash or a loss of power. Permissions of an existing file are kept; a symbolic link is followed.
///
/// Also removes what killed writers of the same file left behind.
///
/// # Errors
/// [`FsError`] names the file; the old content is then still there.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), FsError> {
    let path = &resolve_link(path);
    remove_leftovers(path);
    commit(stage(path, bytes)?, path)
}

/// Replaces a file as [`replace`] does unless it has this content already, and returns whether it
/// was written.
///
/// # Errors
/// [`FsError`] names the file; the old content is then still there.
pub fn replace_if_changed(path: &Path, bytes: &[u8]) -> Result<bool, FsError> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(false);
    }
    replace(path, bytes)?;
    Ok(true)
}

/// Writes a file that can be made again at any time: neither atomic nor durable.
///
/// # Errors
/// [`FsError`] names the file.
pub fn write_scratch(path: &Path, bytes: &[u8]) -> Result<(), FsError> {
    fs::write(path, bytes).map_err(|error| FsError::new("write", path, error))
}

/// Creates or empties a file that can be made again at any time, to be written by someone else,
/// e.g. as the standard error of a child. What is written goes to the end.
///
/// # Errors
/// [`FsError`] names the file.
pub fn create_scratch(path: &Path) -> Result<File, FsError> {
    let open = || {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        file.set_len(0)?;
        Ok(file)
    };
    open().map_err(|error| FsError::new("create", path, error))
}

/// A file that grows by whole pieces, each of them with the operating system when
/// [`append`](Self::append) returns: it survives the end of the process, not that of the machine.
#[derive(Debug)]
pub struct Appender {
    file: fs::File,
    path: PathBuf,
}

impl Appender {
    /// Opens a file, creating it if need be; what is in it stays.
    ///
    /// # Errors
    /// [`FsError`] names the file.
    pub fn open(path: &Path) -> Result<Self, FsError> {
        let file = OpenOptions::new().append(true).create(true).open(path);
        let file = file.map_err(|error| FsError::new("open", path, error))?;
        Ok(Self {
            file,
            path: path.to_owned(),
        })
    }

    /// Adds bytes to the end.
    ///
    /// # Errors
    /// [`FsError`] names the file; part of the bytes may have been written.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), FsError> {
        let written = self.file.write_all(bytes);
        written.map_err(|error| FsError::new("append to", &self.path, error))
    }
}

/// Gives a file another name, beside the one that it has.
///
/// # Errors
/// [`FsError`] names the file.
pub fn hard_link(file: &Path, name: &Path) -> Result<(), FsError> {
    fs::hard_link(file, name).map_err(|error| FsError::new("link", file, error))
}

/// Says of a file that it was used just now, as the time of its last change.
///
/// # Errors
/// [`FsError`] names the file.
pub fn touch(path: &Path) -> Result<(), FsError> {
    let file = OpenOptions::new().append(true).open(path);
    let touched = file.and_then(|file| file.set_modified(SystemTime::now()));
    touched.map_err(|error| FsError::new("touch", path, error))
}

/// Returns the bytes of all files in a directory and those below it; one with several names counts
/// once in all. What cannot be looked at, or goes meanwhile, counts as nothing.
pub fn disk_usage(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;

    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let bytes = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => disk_usage(&entry.path()),
        Ok(kind) if kind.is_file() => {
            let metadata = entry.metadata();
            metadata.map_or(0, |metadata| metadata.len() / metadata.nlink().max(1))
        }
        _ => 0,
    };
    entries.map(bytes).sum()
}

/// Renames a file that can be made again at any time, replacing what has the new name.
///
/// # Errors
/// [`FsError`] names the old path.
pub fn rename(from: &Path, to: &Path) -> Result<(), FsError> {
    fs::rename(from, to).map_err(|error| FsError::new("rename", from, error))
}

/// Creates a directory and those above it, as far as they do not exist.
///
/// # Errors
/// [`FsError`] names the directory.
pub fn create_dir_all(path: &Path) -> Result<(), FsError> {
    fs::create_dir_all(path).map_err(|error| FsError::new("create the directory", path, error))
}

/// Removes a file; one that does not exist is removed already.
///
/// # Errors
/// [`FsError`] names the file.
pub fn remove_file(path: &Path) -> Result<(), FsError> {
    ignore_missing(fs::remove_file(path)).map_err(|error| FsError::new("remove", path, error))
}

/// Removes a directory with all it contains; one that does not exist is removed already.
///
/// # Errors
/// [`FsError`] names the directory.
pub fn remove_dir_all(path: &Path) -> Result<(), FsError> {
    ignore_missing(fs::remove_dir_all(path))
        .map_err(|error| FsError::new("remove the directory", path, error))
}

/// Writes the new content beside the file, durably.
pub(super) fn stage(path: &Path, bytes: &[u8]) -> Result<NamedTempFile, FsError> {
    let write = || {
        let mut file = tempfile::Builder::new()
            .prefix(&leftover_prefix(path))
            .suffix(".tmp")
            .permissions(permissions(path))
            .tempfile_in(directory(path))?;
        file.write_all(bytes)?;
        sync(file.as_file())?;
        Ok(file)
    };
    write().map_err(|error| FsError::new("write", path, error))
}

/// Gives staged content its name.
pub(super) fn commit(staged: NamedTempFile, path: &Path) -> Result<(), FsError> {
    staged
        .persist(path)
        .map_err(|error| FsError::new("replace", path, error.error))?;
    // The name is durable once its directory is; some file systems cannot sync a directory.
    let synced = File::open(directory(path)).and_then(|file| sync(&file));
    synced.map_err(|error| FsError::new("sync the directory of", path, error))
}

fn remove_leftovers(path: &Path) {
    let prefix = leftover_prefix(path);
    let Ok(entries) = fs::read_dir(directory(path)) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_leftover = name.starts_with(&prefix) && name.ends_with(".tmp");
        let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if is_leftover && age().is_some_and(|age| age > LEFTOVER_AGE) {
            // Failure is harmless: the next writer tries again.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn leftover_prefix(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!(".{name}.")
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn resolve_link(path: &Path) -> PathBuf {
    let is_link = path.is_symlink();
    let target = is_link.then(|| fs::canonicalize(path).ok()).flatten();
    target.unwrap_or_else(|| path.to_owned())
}

/// Permissions of the file as it is, or those of a new file (the umask still applies).
fn permissions(path: &Path) -> Permissions {
    use std::os::unix::fs::PermissionsExt;

    fs::metadata(path).map_or_else(
        |_| Permissions::from_mode(0o666),
        |metadata| metadata.permissions(),
    )
}

fn sync(file: &File) -> io::Result<()> {
    match file.sync_all() {
        // Pipes, devices and some network file systems have nothing to sync.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput) => Ok(()),
        result => result,
    }
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
