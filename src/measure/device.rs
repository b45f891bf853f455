//! Holding the device alone.

use std::path::Path;

use crate::fsx::{self, Attempt, FileLock, FsError, Holder};

/// The right to measure on this machine; given up when dropped, or when the process ends.
#[derive(Debug)]
pub struct Device {
    lock: FileLock,
}

impl Device {
    /// Returns the name by which runs on this machine know the device: a home directory may be
    /// shared by machines, a device is not.
    pub fn name() -> String {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let safe: String = name
            .trim()
            .chars()
            .filter(|&c| c.is_ascii_alphanumeric() || c == '-' || c == '.')
            .collect();
        format!("device-{safe}.lock")
    }

    /// Takes the device if it is free; returns who has it otherwise, if that is known. The lock file
    /// is in `directory`, which is the same for all processes that may measure on this machine;
    /// `command` is what others are told that they wait for.
    ///
    /// # Errors
    /// [`FsError`] if the lock file cannot be made.
    pub fn try_hold(
        directory: &Path,
        command: &str,
    ) -> Result<Result<Self, Option<Holder>>, FsError> {
        fsx::create_dir_all(directory)?;
        let path = directory.join(Self::name());
        Ok(match FileLock::try_lock(&path, command)? {
            Attempt::Locked(lock) => Ok(Self { lock }),
            Attempt::Held(holder) => Err(holder),
        })
    }

    /// Returns the path of the lock file.
    pub fn path(&self) -> &Path {
        self.lock.path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_device_is_refused_and_its_holder_named_until_it_is_given_up() {
        let dir = tempfile::tempdir().unwrap();
        let directory = dir.path().join("data");
        let first = Device::try_hold(&directory, "first").unwrap().unwrap();
        assert!(first.path().starts_with(&directory));
        let holder = Device::try_hold(&directory, "second").unwrap().unwrap_err();
        assert_eq!(holder.unwrap().command, "first");
        drop(first);
        Device::try_hold(&directory, "third").unwrap().unwrap();
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let error = Device::try_hold(Path::new("/dev/null/x"), "first");
        assert!(error.unwrap_err().to_string().contains("/dev/null/x"));
    }
}
