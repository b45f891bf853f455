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
        fsx::create_dir_all(directory)?;
        let path = directory.join(file_name());
        let mut waiting = Some(waiting);
        loop {
            match FileLock::try_lock(&path, command)? {
                Attempt::Locked(lock) => return Ok(Self { lock }),
                Attempt::Held(holder) => {
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
