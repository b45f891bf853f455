//! Waiting for one's turn in a workspace, where one adaptation runs at a time.

use std::time::Duration;

use super::trials::COMMAND;
use super::{Error, Request};
use crate::event::{Event, Reporter};
use crate::fsx::{Attempt, FileLock};

/// How often a lock that another process holds is asked for.
const POLL: Duration = Duration::from_millis(50);

/// Returns the workspace's lock, or `None` if the run is cancelled while it waits.
///
/// # Errors
/// If the lock file cannot be made.
pub(super) async fn lock_workspace(
    request: &Request,
    reporter: &dyn Reporter,
) -> Result<Option<FileLock>, Error> {
    let path = request.scratch.join("adapt.lock");
    let mut is_told = false;
    loop {
        match FileLock::try_lock(&path, COMMAND)? {
            Attempt::Locked(lock) => return Ok(Some(lock)),
            Attempt::Held(holder) if !is_told => {
                let holder = holder.map(|holder| holder.to_string());
                reporter.report(&Event::LockAwaited {
                    path: &path.to_string_lossy(),
                    holder: holder.as_deref(),
                });
                is_told = true;
            }
            Attempt::Held(_) => {}
        }
        tokio::select! {
            () = request.cancellation.cancelled() => return Ok(None),
            () = tokio::time::sleep(POLL) => {}
        }
    }
}
