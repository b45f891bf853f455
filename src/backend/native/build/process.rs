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

use crate::cpu::{Builder, Guarded};
use crate::fsx;

/// How a call ended, with the head of what it printed.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) end: End,
    pub(super) stderr: String,
}

/// What ended a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It did so by itself, or somebody else did.
    Status(ExitStatus),
    /// Its time was up.
    TimedOut,
    /// Nobody wants it any more.
    Abandoned,
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
        let grew = (self.signal() == Some(libc::SIGXFSZ)).then_some(libc::EFBIG);
        said.or(grew).map(io::Error::from_raw_os_error)
    }

    /// Returns whether somebody ended the call who need not have minded the source.
    pub(super) fn was_stopped(&self) -> bool {
        // The pipe is that of a guard which somebody killed.
        let signals = [
            libc::SIGHUP,
            libc::SIGINT,
            libc::SIGKILL,
            libc::SIGPIPE,
            libc::SIGTERM,
        ];
        self.end == End::Abandoned || self.signal().is_some_and(|s| signals.contains(&s))
    }

    fn signal(&self) -> Option<i32> {
        match self.end {
            End::Status(status) => status.signal(),
            End::TimedOut | End::Abandoned => None,
        }
    }
}

/// Longest compiler message that is kept.
const MAX_MESSAGE_BYTES: usize = 4096;

/// How often a call is looked at.
const POLL: Duration = Duration::from_millis(2);

/// Runs a command with its diagnostics in `log`, and stops it after `timeout`, or when it
/// `is_abandoned`.
///
/// It is a process group of its own, and nothing of it is left when this returns or when this
/// process ends, neither a linker that the compiler started nor the compiler that a wrapper did.
pub(super) fn run(
    mut command: Command,
    log: &Path,
    timeout: Duration,
    is_abandoned: &dyn Fn() -> bool,
) -> io::Result<Ended> {
    // Where there is no guard, this has to do.
    #[cfg(target_os = "linux")]
    die_with_parent(&mut command);
    let stderr = fsx::create_scratch(log).map_err(io::Error::other)?;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr);
    // Ctrl-C is for the tool: a compiler that dies of it says nothing of the source.
    let (mut child, guarded) = Guarded::spawn(&mut command)?;
    let builder = Builder::group(child.id());
    let started = Instant::now();
    let stop = loop {
        if has_ended(child.id())? {
            break None;
        }
        if started.elapsed() > timeout {
            break Some(End::TimedOut);
        }
        if is_abandoned() {
            break Some(End::Abandoned);
        }
        std::thread::sleep(POLL);
    };
    guarded.kill();
    // Both know the group by a number that is free for others once its leader was waited for.
    drop((guarded, builder));
    let status = child.wait()?;
    let text = fsx::read(log).unwrap_or_default();
    let head = &text[..text.len().min(MAX_MESSAGE_BYTES)];
    let _ = fsx::remove_file(log);
    Ok(Ended {
        end: stop.unwrap_or(End::Status(status)),
        stderr: String::from_utf8_lossy(head).into_owned(),
    })
}

/// Returns whether a child has ended, which is still to be waited for.
fn has_ended(child: u32) -> io::Result<bool> {
    // SAFETY: a `siginfo_t` of zeros is one that says nothing.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the pointer is to a value of the right type, which the call fills in.
    let code = unsafe { libc::waitid(libc::P_PID, child, &raw mut info, options) };
    if code != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so this part is filled in, or as it was.
    Ok(unsafe { info.si_pid() } != 0)
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
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    fn sh(script: &str) -> Ended {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, &dir.path().join("log"), LONG, &|| false).unwrap()
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
    fn children_are_in_a_group_of_their_own() {
        let own = sh("read -r _ _ _ _ group _ </proc/$$/stat; echo $group $$ >&2");
        let numbers: Vec<&str> = own.stderr.split_whitespace().collect();
        assert_eq!(numbers[0], numbers[1]);
    }

    /// Runs a wrapper that starts something that does not end; returns how it ended. Fails if what
    /// it started is still there then.
    fn wrapped(script: &str, timeout: Duration, is_abandoned: impl Fn() -> bool) -> End {
        let dir = tempfile::tempdir().unwrap();
        let (log, number) = (dir.path().join("log"), dir.path().join("number"));
        let mut command = Command::new("sh");
        let script = format!("sleep 60 & echo $! >number; {script}");
        command.args(["-c", &script]).current_dir(dir.path());
        let is_abandoned = || number.metadata().is_ok_and(|m| m.len() > 1) && is_abandoned();
        let ended = run(command, &log, timeout, &is_abandoned).unwrap();
        assert!(!log.exists());
        let number = std::fs::read_to_string(number).unwrap();
        let inner = PathBuf::from("/proc").join(number.trim());
        let deadline = Instant::now() + LONG;
        // Whoever inherits what was killed needs a moment to take note of it.
        while is_running(&inner) {
            assert!(Instant::now() < deadline, "{} is left", inner.display());
            std::thread::sleep(POLL);
        }
        ended.end
    }

    fn is_running(process: &Path) -> bool {
        let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
        let state = status.lines().find(|line| line.starts_with("State:"));
        state.is_some_and(|state| !state.contains('Z') && !state.contains('X'))
    }

    #[test]
    fn nothing_is_left_of_a_group_whose_time_is_up_stopped_or_not() {
        let short = Duration::from_millis(300);
        assert_eq!(wrapped("wait", short, || false), End::TimedOut);
        // It may be woken up: that is done to all that build when nothing is timed any more.
        let stopped = "kill -STOP $!; kill -STOP $$; wait";
        assert_eq!(wrapped(stopped, short, || false), End::TimedOut);
    }

    #[test]
    fn nothing_is_left_of_a_group_that_is_abandoned_or_whose_leader_ended() {
        let is_abandoned = AtomicBool::new(false);
        let end = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                is_abandoned.store(true, Ordering::Relaxed);
            });
            wrapped("wait", LONG, || is_abandoned.load(Ordering::Relaxed))
        });
        assert_eq!(end, End::Abandoned);
        let ended = wrapped("exit 3", LONG, || false);
        assert!(matches!(ended, End::Status(status) if status.code() == Some(3)));
    }
}
