//! Ends what builds start when the tool itself is ended, however that happens.
//!
//! A process of its own, the guard, holds the other end of a pipe and knows the process groups that
//! are to end with the tool. When the pipe closes, it kills them. (The signal that Linux can send
//! when a parent dies reaches the direct child only: not the linker that a compiler started, nor
//! the compiler that a wrapper did.)

#![expect(
    unsafe_code,
    reason = "what a child does between fork and exec has no safe interface"
)]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, BufRead, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::affinity::signal_group;

/// Groups of this process, and who is told of them.
static STATE: Mutex<State> = Mutex::new(State {
    program: None,
    guard: None,
    groups: BTreeSet::new(),
});

#[derive(Debug)]
struct State {
    /// What is started as a guard; without it there is none.
    program: Option<PathBuf>,
    guard: Option<Child>,
    groups: BTreeSet<libc::pid_t>,
}

/// A process group that ends with this process, as long as this lives.
#[derive(Debug)]
pub struct Guarded {
    group: libc::pid_t,
}

/// Has a guard started with the first group that needs one; `program` is this tool. Without it,
/// groups are only ended by whoever waits for them.
pub fn guard_with(program: PathBuf) {
    lock().program = Some(program);
}

impl Guarded {
    /// Starts a command as the leader of a group that ends with this process.
    ///
    /// # Errors
    /// [`io::Error`] if it cannot be started.
    pub fn spawn(command: &mut Command) -> io::Result<(Child, Self)> {
        command.process_group(0);
        if let Some(pipe) = lock().pipe() {
            announce_itself(command, pipe);
        }
        let started = command.spawn();
        let mut state = lock();
        match started {
            Ok(child) => {
                let group = child.id().cast_signed();
                state.groups.insert(group);
                Ok((child, Self { group }))
            }
            Err(error) => {
                // The guard knows a number that may soon be somebody else's.
                state.dismiss();
                state.pipe();
                Err(error)
            }
        }
    }

    /// Kills what is left of the group, stopped or not. Its leader must not have been waited for:
    /// until then the number belongs to nobody else.
    pub fn kill(&self) {
        signal_group(self.group, libc::SIGKILL);
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        lock().forget(self.group);
    }
}

/// Has a child tell the guard of itself before it becomes what it is to be: there is no moment in
/// which it has children that the guard does not know of.
fn announce_itself(command: &mut Command, pipe: OwnedFd) {
    let tell = move || {
        // SAFETY: the call has no arguments and cannot fail.
        let line = Line::of(unsafe { libc::getpid() });
        // SAFETY: the pointer is to so many bytes, which are only read.
        let _ = unsafe { libc::write(pipe.as_raw_fd(), line.bytes.as_ptr().cast(), line.len) };
        Ok(())
    };
    // SAFETY: the closure allocates nothing and takes no locks.
    unsafe { command.pre_exec(tell) };
}

/// `+NUMBER`, written without an allocation. It is short enough to be in the pipe as a whole.
struct Line {
    bytes: [u8; 16],
    len: usize,
}

impl Line {
    fn of(number: libc::pid_t) -> Self {
        let mut digits = [0; 10];
        let (mut rest, mut n_digits) = (number.unsigned_abs(), 0);
        while n_digits == 0 || rest > 0 {
            digits[n_digits] = b'0' + (rest % 10) as u8;
            (rest, n_digits) = (rest / 10, n_digits + 1);
        }
        let mut bytes = [b'\n'; 16];
        bytes[0] = b'+';
        for (idx, digit) in digits[..n_digits].iter().rev().enumerate() {
            bytes[1 + idx] = *digit;
        }
        let len = n_digits + 2;
        Self { bytes, len }
    }
}

impl State {
    /// Returns an end of the guard's pipe for a child; starts a guard if there is none, or if
    /// somebody killed it. It is told of everything.
    fn pipe(&mut self) -> Option<OwnedFd> {
        let is_alive = |guard: &mut Child| matches!(guard.try_wait(), Ok(None));
        if !self.guard.as_mut().is_some_and(is_alive) {
            self.dismiss();
            let mut guard = start(self.program.as_ref()?)?;
            let lines = self.groups.iter().map(|group| format!("+{group}\n"));
            let all = lines.collect::<Vec<_>>().concat();
            if !send(&mut guard, &all) {
                return None;
            }
            self.guard = Some(guard);
        }
        let stdin = self.guard.as_ref()?.stdin.as_ref()?;
        stdin.as_fd().try_clone_to_owned().ok()
    }

    /// Ends the guard, without a harm to anybody.
    fn dismiss(&mut self) {
        if let Some(mut guard) = self.guard.take() {
            let _ = guard.kill();
            let _ = guard.wait();
        }
    }

    fn forget(&mut self, group: libc::pid_t) {
        self.groups.remove(&group);
        if let Some(guard) = &mut self.guard {
            send(guard, &format!("-{group}\n"));
        }
    }
}

/// Starts a guard. A system that refuses it leaves everything else as it is.
fn start(program: &PathBuf) -> Option<Child> {
    let started = Command::new(program)
        .args(["metainfer", "guard"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C is for the tool: the guard is there until the tool is gone.
        .process_group(0)
        .spawn();
    if let Err(error) = &started {
        tracing::debug!(%error, "no guard");
    }
    started.ok()
}

fn send(guard: &mut Child, text: &str) -> bool {
    let stdin = guard.stdin.as_mut();
    stdin.is_some_and(|stdin| stdin.write_all(text.as_bytes()).is_ok())
}

/// A thread that panicked while it held the lock left the state as it was.
fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether the command line asks for a guard: `PROGRAM metainfer guard`.
pub fn is_requested(args: impl IntoIterator<Item = OsString>) -> bool {
    let args: Vec<OsString> = args.into_iter().skip(1).take(3).collect();
    args == ["metainfer", "guard"]
}

/// Runs a guard over standard input until it closes.
pub fn main() -> ExitCode {
    for group in left_at_end(io::stdin().lock()) {
        signal_group(group, libc::SIGKILL);
    }
    ExitCode::SUCCESS
}

/// Returns the groups that came and did not go. A line that was cut off says nothing.
fn left_at_end(lines: impl BufRead) -> BTreeSet<libc::pid_t> {
    let mut groups = BTreeSet::new();
    for line in lines.lines().map_while(Result::ok) {
        // Numbers 0 and 1 are the guard's own group, and everybody.
        let number = |text: &str| text.parse().ok().filter(|&group| group > 1);
        if let Some(group) = line.strip_prefix('+').and_then(number) {
            groups.insert(group);
        } else if let Some(group) = line.strip_prefix('-').and_then(number) {
            groups.remove(&group);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_that_went_are_left_alone_and_so_is_what_makes_no_sense() {
        let left = left_at_end(&b"+12\n+34\n+0\n-12\n+1\n+-5\n?\n+56\n-\n"[..]);
        assert_eq!(Vec::from_iter(left), [34, 56]);
    }

    #[test]
    fn a_child_writes_what_the_guard_reads() {
        for number in [2, 10, 4_194_304, libc::pid_t::MAX] {
            let line = Line::of(number);
            let text = &line.bytes[..line.len];
            assert_eq!(text, format!("+{number}\n").as_bytes());
            assert_eq!(Vec::from_iter(left_at_end(text)), [number]);
        }
    }

    #[test]
    fn a_command_that_cannot_be_started_is_an_error() {
        let started = Guarded::spawn(&mut Command::new("/nowhere/rustc"));
        assert_eq!(started.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn only_the_guards_own_command_line_asks_for_one() {
        let asks = |args: &[&str]| is_requested(args.iter().map(OsString::from));
        assert!(asks(&["cargo-metainfer", "metainfer", "guard"]));
        assert!(!asks(&["cargo-metainfer", "metainfer", "guard", "x"]));
        assert!(!asks(&["cargo-metainfer", "metainfer", "adapt"]));
        assert!(!asks(&["cargo-metainfer", "guard"]));
    }
}
