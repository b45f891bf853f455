//! Waiting for one's turn: one adaptation in a workspace, one measurement on a device.

use std::time::Duration;

use super::{Error, Request};
use crate::device::Target;
use crate::event::{Event, Reporter};
use crate::fsx::{Attempt, FileLock};
use crate::measure::Device;

/// What others are told that they wait for.
const COMMAND: &str = "cargo metainfer adapt";

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

/// Returns the device, or `None` if the run is cancelled while it waits.
///
/// # Errors
/// If the lock file cannot be made.
pub(super) async fn hold_device(
    request: &Request,
    reporter: &dyn Reporter,
    target: &Target,
) -> Result<Option<Device>, Error> {
    let device = Device::hold(&request.home, COMMAND, |holder| {
        let holder = holder.map(ToString::to_string);
        reporter.report(&Event::LockAwaited {
            path: &target.name,
            holder: holder.as_deref(),
        });
    });
    tokio::select! {
        device = device => Ok(Some(device?)),
        () = request.cancellation.cancelled() => Ok(None),
    }
}
