//! Builds yield to what is timed.
//!
//! Builds use all processors while nothing is timed, and keep off the cores that somebody times
//! on. Where they have no other core, they stand still.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::affinity::{allowed_cpus, cpus_off_core, set_cpus, signal_group, this_thread};

/// Who builds, and where somebody times; of this process.
static STATE: Mutex<State> = Mutex::new(State {
    builders: BTreeMap::new(),
    timed: Vec::new(),
    cpus: Vec::new(),
});

#[derive(Debug)]
struct State {
    /// Threads of this process and process groups that it started, by their numbers.
    builders: BTreeMap<libc::pid_t, Kind>,
    /// Processors that are timed on: one entry for each that times.
    timed: Vec<usize>,
    /// All that may be used; set when the first builder comes, before any of them is kept off.
    cpus: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Thread,
    Group,
}

/// A thread or a process group that builds, as long as this lives.
#[derive(Debug)]
pub struct Builder {
    number: libc::pid_t,
    /// A thread is registered and leaves by itself.
    _thread: PhantomData<*const ()>,
}

/// Processors that something is timed on, as long as this lives.
#[derive(Debug)]
pub struct Quiet {
    cpus: Vec<usize>,
}

impl Builder {
    /// Registers this thread. What it starts meanwhile keeps to the same processors at first.
    pub fn this_thread() -> Self {
        Self::register(this_thread(), Kind::Thread)
    }

    /// Registers a process group, by the number of its leader, which was just started.
    pub fn group(leader: u32) -> Self {
        Self::register(leader.cast_signed(), Kind::Group)
    }

    fn register(number: libc::pid_t, kind: Kind) -> Self {
        let mut state = lock();
        if state.cpus.is_empty() {
            state.cpus = allowed_cpus();
        }
        state.builders.insert(number, kind);
        state.place(number, kind, &state.free());
        Self {
            number,
            _thread: PhantomData,
        }
    }
}

impl Drop for Builder {
    fn drop(&mut self) {
        let mut state = lock();
        if state.builders.remove(&self.number) == Some(Kind::Thread) {
            // A thread that cannot go back is slower, and as right as before.
            let _ = set_cpus(self.number, &state.cpus);
        }
    }
}

impl Quiet {
    /// Keeps builders off the cores of some processors. Returns once they are gone from there.
    pub fn on(cpus: &[usize]) -> Self {
        let mut state = lock();
        state.timed.extend(cpus);
        state.place_all();
        Self {
            cpus: cpus.to_vec(),
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let mut state = lock();
        for cpu in &self.cpus {
            if let Some(idx) = state.timed.iter().position(|timed| timed == cpu) {
                state.timed.swap_remove(idx);
            }
        }
        state.place_all();
    }
}

impl State {
    fn place_all(&self) {
        let free = self.free();
        for (&number, &kind) in &self.builders {
            self.place(number, kind, &free);
        }
    }

    /// Puts a builder where it may run now: on a free processor, if there is one. One that is gone
    /// meanwhile needs no place.
    fn place(&self, number: libc::pid_t, kind: Kind, free: &[usize]) {
        let cpus = if free.is_empty() { &self.cpus } else { free };
        match kind {
            Kind::Thread => drop(set_cpus(number, cpus)),
            Kind::Group => {
                for thread in threads_below(number) {
                    let _ = set_cpus(thread, cpus);
                }
                let must_stop = free.is_empty() && !self.timed.is_empty();
                signal_group(
                    number,
                    if must_stop {
                        libc::SIGSTOP
                    } else {
                        libc::SIGCONT
                    },
                );
            }
        }
    }

    /// Returns the processors on no core that is timed on.
    fn free(&self) -> Vec<usize> {
        let off: Vec<Vec<usize>> = self.timed.iter().map(|&cpu| cpus_off_core(cpu)).collect();
        let is_free = |cpu: &&usize| off.iter().all(|off| off.contains(cpu));
        self.cpus.iter().filter(is_free).copied().collect()
    }
}

/// Returns the threads of a process and of those that it started, such as a linker: what they
/// start from now on keeps to their processors.
fn threads_below(process: libc::pid_t) -> Vec<libc::pid_t> {
    let mut processes = vec![process];
    let mut threads = Vec::new();
    while let Some(process) = processes.pop() {
        let path = Path::new("/proc").join(process.to_string()).join("task");
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            let number = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<i32>().ok());
            threads.extend(number);
            // Where the system does not say, they stay where they are.
            let children = std::fs::read_to_string(entry.path().join("children"));
            let children = children.unwrap_or_default();
            processes.extend(
                children
                    .split(' ')
                    .filter_map(|child| child.parse::<i32>().ok()),
            );
        }
    }
    threads
}

/// A thread that panicked while it held the lock left the state as it was.
fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    use super::*;

    /// Starts a group of two processes, and returns it with the number of the second one.
    fn sleepers() -> (Child, u32) {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 20 & wait"]).process_group(0);
        let child = command.spawn().unwrap();
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        let second = || {
            let children = std::fs::read_to_string(&children).unwrap();
            children.trim().parse().ok()
        };
        wait_until(|| second().is_some());
        let second = second().unwrap();
        (child, second)
    }

    fn end(mut child: Child) {
        signal_group(child.id().cast_signed(), libc::SIGKILL);
        child.wait().unwrap();
    }

    fn allowed(process: u32) -> String {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let line = status.lines().find(|l| l.starts_with("Cpus_allowed_list:"));
        line.unwrap().split_whitespace().nth(1).unwrap().to_owned()
    }

    fn is_stopped(process: u32) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        status.lines().any(|line| line.starts_with("State:\tT"))
    }

    fn wait_until(condition: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !condition() {
            assert!(Instant::now() < deadline, "it did not come to pass");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// One test, as the state is that of the whole process.
    #[test]
    fn builders_yield_cores_that_are_timed_on_and_stand_still_where_there_is_no_other() {
        let cpus = allowed_cpus();
        let last = *cpus.last().unwrap();
        let others = cpus_off_core(last);
        let (child, second) = sleepers();
        let everywhere = allowed(child.id());
        let builder = Builder::group(child.id());
        std::thread::spawn(move || {
            let thread = Builder::this_thread();
            let quiet = Quiet::on(&[last]);
            if !others.is_empty() {
                assert_eq!(allowed_cpus(), others);
                let started = std::thread::spawn(allowed_cpus).join().unwrap();
                assert_eq!(started, others);
                assert_eq!(allowed(second), allowed(child.id()));
                let (late, late_second) = sleepers();
                let late_builder = Builder::group(late.id());
                assert_eq!(allowed(late.id()), allowed(child.id()));
                assert_eq!(allowed(late_second), allowed(child.id()));
                end(late);
                drop(late_builder);
            }
            drop(quiet);
            assert_eq!(allowed_cpus(), cpus);
            let quiet = Quiet::on(&cpus);
            wait_until(|| is_stopped(child.id()) && is_stopped(second));
            drop(quiet);
            wait_until(|| !is_stopped(child.id()) && !is_stopped(second));
            drop(thread);
            assert_eq!(allowed_cpus(), cpus);
            assert_eq!(allowed(child.id()), everywhere);
            assert_eq!(allowed(second), everywhere);
            end(child);
        })
        .join()
        .unwrap();
        drop(builder);
    }
}
