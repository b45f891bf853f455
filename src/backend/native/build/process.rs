//! One rustc call, bounded in time.

use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::fsx;

/// How a call ended, with the head of what it printed.
#[derive(Debug)]
pub(super) struct Ended {
    /// `None` if it was stopped because its time was up.
    pub(super) status: Option<ExitStatus>,
    pub(super) stderr: String,
}

/// Longest compiler message that is kept.
const MAX_MESSAGE_BYTES: usize = 4096;

/// Runs a command with its diagnostics in `log`, and stops it after `timeout`.
///
/// The child dies with this process on Linux, so that no compiler outlives the tool.
pub(super) fn run(mut command: Command, log: &Path, timeout: Duration) -> io::Result<Ended> {
    let stderr = fsx::create_scratch(log).map_err(io::Error::other)?;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr);
    let mut child = command.spawn()?;
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if started.elapsed() > timeout {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let text = fsx::read(log).unwrap_or_default();
    let head = &text[..text.len().min(MAX_MESSAGE_BYTES)];
    let _ = fsx::remove_file(log);
    Ok(Ended {
        status,
        stderr: String::from_utf8_lossy(head).into_owned(),
    })
}
