//! Advisory locks between processes.
//!
//! The operating system holds the lock and releases it when the process ends, however it ends;
//! the file only says who has it, for messages. It is never removed: a lock on a file that another
//! process is about to unlink excludes nobody.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::FsError;

/// An exclusive lock, released when dropped.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    path: PathBuf,
}

/// Who holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process.
    pub pid: u32,
    /// What it runs, e.g. `cargo metainfer adapt`.
    pub command: String,
    /// Since when, milliseconds since the Unix epoch.
    pub since_ms: u64,
}

/// How an attempt to take a lock ended.
#[derive(Debug)]
pub enum Attempt {
    /// It is ours.
    Locked(FileLock),
    /// Another process has it; `None` if it has not said which one it is.
    Held(Option<Holder>),
}

impl FileLock {
    /// Takes the lock if it is free. `command` is what others are told that they wait for.
    ///
    /// # Errors
    /// [`FsError`] if the file cannot be created or locked at all.
    pub fn try_lock(path: &Path, command: &str) -> Result<Attempt, FsError> {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Attempt::Locked(Self::announce(file, path, command))),
            Err(TryLockError::WouldBlock) => Ok(Attempt::Held(read_holder(&file))),
            Err(TryLockError::Error(error)) => Err(FsError::new("lock", path, error)),
        }
    }

    /// Takes the lock, waiting for it as long as it takes. If there is something to wait for,
    /// `waiting` is told once.
    ///
    /// # Errors
    /// [`FsError`] if the file cannot be created or locked at all.
    pub fn lock(
        path: &Path,
        command: &str,
        waiting: impl FnOnce(Option<&Holder>),
    ) -> Result<Self, FsError> {
        match Self::try_lock(path, command)? {
            Attempt::Locked(lock) => return Ok(lock),
            Attempt::Held(holder) => waiting(holder.as_ref()),
        }
        let file = open(path)?;
        file.lock()
            .map_err(|error| FsError::new("lock", path, error))?;
        Ok(Self::announce(file, path, command))
    }

    /// Returns the path of the lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn announce(mut file: File, path: &Path, command: &str) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let holder = Holder {
            pid: std::process::id(),
            command: command.to_owned(),
            since_ms: now.map_or(0, |now| now.as_millis() as u64),
        };
        // The announcement is for messages; a full disk must not keep anyone from locking.
        if write_holder(&mut file, &holder).is_err() {
            tracing::debug!(path = %path.display(), "holder not written");
        }
        Self {
            file,
            path: path.to_owned(),
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // While the lock is still held: the next holder's announcement must not be erased.
        let _ = self.file.set_len(0);
        let _ = self.file.unlock();
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` (process {})", self.command, self.pid)
    }
}

fn open(path: &Path) -> Result<File, FsError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|error| FsError::new("open the lock", path, error))
}

fn write_holder(file: &mut File, holder: &Holder) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(serde_json::to_string(holder)?.as_bytes())
}

fn read_holder(mut file: &File) -> Option<Holder> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}
