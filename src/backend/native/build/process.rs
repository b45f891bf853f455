//! One rustc call, bounded in time.

#![expect(
    unsafe_code,
    reason = "what a child does between fork and exec has no safe interface"
)]

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::cpu::Builder;
use crate::fsx;

/// How a call ended, with the head of what it printed.
#[derive(Debug)]
pub(super) struct Ended {
    /// `None` if it was stopped because its time was up.
    pub(super) status: Option<ExitStatus>,
    pub(super) stderr: String,
}

impl Ended {
    /// Returns the error of the system that kept the call from writing, if that is what it says.
    pub(super) fn disk_error(&self) -> Option<io::Error> {
        let errors = [
            ("No space left on device", libc::ENOSPC),
            ("Disk quota exceeded", libc::EDQUOT),
            ("File too large", libc::EFBIG),
        ];
        let said = errors
            .iter()
            .find(|(text, _)| self.stderr.contains(text))
            .map(|&(_, code)| code);
        let signal = self.status.and_then(|status| status.signal());
        let grew = (signal == Some(libc::SIGXFSZ)).then_some(libc::EFBIG);
        said.or(grew).map(io::Error::from_raw_os_error)
    }

    /// Returns whether somebody ended the call who need not have minded the source.
    pub(super) fn was_stopped(&self) -> bool {
        let signal = self.status.and_then(|status| status.signal());
        matches!(
            signal,
            Some(libc::SIGHUP | libc::SIGINT | libc::SIGKILL | libc::SIGTERM)
        )
    }
}

/// Longest compiler message that is kept.
const MAX_MESSAGE_BYTES: usize = 4096;

/// Runs a command with its diagnostics in `log`, and stops it after `timeout`.
///
/// The child dies with this process on Linux, so that no compiler outlives the tool.
pub(super) fn run(mut command: Command, log: &Path, timeout: Duration) -> io::Result<Ended> {
    #[cfg(target_os = "linux")]
    die_with_parent(&mut command);
    let stderr = fsx::create_scratch(log).map_err(io::Error::other)?;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        // Ctrl-C is for the tool: a compiler that dies of it says nothing of the source.
        .process_group(0);
    let mut child = command.spawn()?;
    let _builder = Builder::process(child.id());
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

/// Has the kernel kill the child when the thread that starts it ends: that thread waits for the
/// child, so it only ends earlier if the whole process does.
#[cfg(target_os = "linux")]
fn die_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let ask = move || {
        // SAFETY: both calls only pass integers, and are allowed between fork and exec.
        let (asked, now) = unsafe {
            let asked = libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            (asked, libc::getppid())
        };
        // A parent that died before it could be asked for leaves an orphan.
        if asked == 0 && u32::try_from(now) == Ok(parent) {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::ESRCH))
        }
    };
    // SAFETY: the closure allocates nothing and takes no locks.
    unsafe { command.pre_exec(ask) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Ended {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, &dir.path().join("log"), Duration::from_secs(20)).unwrap()
    }

    #[test]
    fn a_full_disk_is_told_from_a_compiler_that_refuses() {
        let full = sh("echo 'error: cannot write x: No space left on device' >&2; exit 1");
        assert_eq!(
            full.disk_error().unwrap().raw_os_error(),
            Some(libc::ENOSPC)
        );
        let limit = sh("kill -XFSZ $$");
        assert_eq!(
            limit.disk_error().unwrap().raw_os_error(),
            Some(libc::EFBIG)
        );
        let refused = sh("echo 'error: expected expression' >&2; exit 1");
        assert!(refused.disk_error().is_none() && !refused.was_stopped());
    }

    #[test]
    fn a_compiler_that_somebody_stops_has_refused_nothing() {
        assert!(sh("kill -INT $$").was_stopped());
        assert!(!sh("kill -SEGV $$").was_stopped());
    }

    #[test]
    fn children_are_in_a_group_of_their_own_and_end_when_their_time_is_up() {
        let own = sh("read -r _ _ _ _ group _ </proc/$$/stat; echo $group $$ >&2");
        let numbers: Vec<&str> = own.stderr.split_whitespace().collect();
        assert_eq!(numbers[0], numbers[1]);
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sleep");
        command.arg("20");
        let log = dir.path().join("log");
        let ended = run(command, &log, Duration::from_millis(50)).unwrap();
        assert!(ended.status.is_none());
        assert!(!log.exists());
    }
}
