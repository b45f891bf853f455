//! Ends what builds start when the tool itself is ended, however that happens.
//!
//! A process of its own, the guard, holds the other end of a pipe and knows the process groups that
//! are to end with the tool. When the pipe closes, it kills them. (The signal that Linux can send
//! when a parent dies reaches the direct child only: not the linker that a compiler started, nor
//! the compiler that a wrapper did.)

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, BufRead, Write};
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
    /// Has a group end with this process, by the number of its leader, which was just started.
    pub fn group(leader: u32) -> Self {
        let group = leader.cast_signed();
        let mut state = lock();
        state.groups.insert(group);
        state.tell(&format!("+{group}\n"));
        Self { group }
    }

    /// Kills what is left of the group, stopped or not. Its leader must not have been waited for:
    /// until then the number belongs to nobody else.
    pub fn kill(&self) {
        signal_group(self.group, libc::SIGKILL);
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let mut state = lock();
        state.groups.remove(&self.group);
        state.tell(&format!("-{}\n", self.group));
    }
}

impl State {
    /// Tells the guard something; one that somebody killed is replaced, and told everything.
    fn tell(&mut self, line: &str) {
        let told = self.guard.as_mut().is_some_and(|guard| send(guard, line));
        if told || self.groups.is_empty() {
            return;
        }
        if let Some(mut gone) = self.guard.take() {
            let _ = gone.kill();
            let _ = gone.wait();
        }
        let Some(mut guard) = self.program.as_ref().and_then(start) else {
            return;
        };
        let lines = self.groups.iter().map(|group| format!("+{group}\n"));
        let all = lines.collect::<Vec<_>>().concat();
        if send(&mut guard, &all) {
            self.guard = Some(guard);
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
    fn only_the_guards_own_command_line_asks_for_one() {
        let asks = |args: &[&str]| is_requested(args.iter().map(OsString::from));
        assert!(asks(&["cargo-metainfer", "metainfer", "guard"]));
        assert!(!asks(&["cargo-metainfer", "metainfer", "guard", "x"]));
        assert!(!asks(&["cargo-metainfer", "metainfer", "adapt"]));
        assert!(!asks(&["cargo-metainfer", "guard"]));
    }
}
