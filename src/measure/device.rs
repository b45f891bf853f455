//! Holding the device alone.

use std::path::Path;
use std::time::Duration;

use crate::fsx::{self, Attempt, FileLock, FsError, Holder};

/// The right to measure on this machine; given up when dropped, or when the process ends.
#[derive(Debug)]
pub struct Device {
    lock: FileLock,
}

/// How often a device that another process holds is asked for.
const POLL: Duration = Duration::from_millis(50);

impl Device {
    /// Returns the name by which runs on this machine know the device.
    pub fn name() -> String {
        file_name()
    }

    /// Takes the device if it is free; returns who has it otherwise, if that is known. See
    /// [`Self::hold`].
    ///
    /// # Errors
    /// [`FsError`] if the lock file cannot be made.
    pub fn try_hold(
        directory: &Path,
        command: &str,
    ) -> Result<Result<Self, Option<Holder>>, FsError> {
        fsx::create_dir_all(directory)?;
        let path = directory.join(file_name());
        Ok(match FileLock::try_lock(&path, command)? {
            Attempt::Locked(lock) => Ok(Self { lock }),
            Attempt::Held(holder) => Err(holder),
        })
    }

    /// Waits for the device. The lock file is in `directory`, which is the same for all processes
    /// that may measure on this machine; `command` is what others are told that they wait for. If
    /// there is something to wait for, `waiting` is told once. Dropping the future ends the wait.
    ///
    /// # Errors
    /// [`FsError`] if the lock file cannot be made.
    pub async fn hold(
        directory: &Path,
        command: &str,
        waiting: impl FnOnce(Option<&Holder>),
    ) -> Result<Self, FsError> {
        let mut waiting = Some(waiting);
        loop {
            match Self::try_hold(directory, command)? {
                Ok(device) => return Ok(device),
                Err(holder) => {
                    if let Some(waiting) = waiting.take() {
                        waiting(holder.as_ref());
                    }
                }
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Returns the path of the lock file.
    pub fn path(&self) -> &Path {
        self.lock.path()
    }
}

/// A home directory may be shared by machines, a device is not.
fn file_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let safe: String = name
        .trim()
        .chars()
        .filter(|&c| c.is_ascii_alphanumeric() || c == '-' || c == '.')
        .collect();
    format!("device-{safe}.lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_held_device_is_waited_for_and_its_holder_named_once() {
        let dir = tempfile::tempdir().unwrap();
        let directory = dir.path().join("data");
        let unexpected = |_: Option<&Holder>| panic!("the device is free");
        let first = Device::hold(&directory, "first", unexpected).await.unwrap();
        assert!(first.path().starts_with(&directory));
        let mut held = Some(first);
        let mut named = Vec::new();
        let second = Device::hold(&directory, "second", |holder| {
            named.push(holder.unwrap().command.clone());
            held = None;
        });
        second.await.unwrap();
        assert_eq!(named, ["first"]);
    }

    #[tokio::test]
    async fn waiting_for_a_device_can_be_given_up() {
        let dir = tempfile::tempdir().unwrap();
        let held = Device::hold(dir.path(), "first", |_| {}).await.unwrap();
        let wait = Device::hold(dir.path(), "second", |_| {});
        let given_up = tokio::time::timeout(Duration::from_millis(120), wait).await;
        assert!(given_up.is_err());
        drop(held);
        Device::hold(dir.path(), "third", |_| {}).await.unwrap();
    }

    #[tokio::test]
    async fn a_directory_that_cannot_be_made_is_named() {
        let error = Device::hold(Path::new("/dev/null/x"), "first", |_| {}).await;
        assert!(error.unwrap_err().to_string().contains("/dev/null/x"));
    }
}
