//! Builds yield to what is timed.
//!
//! Builds use all processors while nothing is timed, and keep off the cores that somebody times
//! on. Where they have no other core, they stand still.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::affinity::{allowed_cpus, cpus_off_core, set_cpus, signal, this_thread};

/// Who builds, and where somebody times; of this process.
static STATE: Mutex<State> = Mutex::new(State {
    builders: BTreeMap::new(),
    timed: Vec::new(),
    cpus: Vec::new(),
});

#[derive(Debug)]
struct State {
    /// Threads of this process and processes that it started, by their numbers.
    builders: BTreeMap<libc::pid_t, Kind>,
    /// Processors that are timed on: one entry for each that times.
    timed: Vec<usize>,
    /// All that may be used; set when the first builder comes, before any of them is kept off.
    cpus: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Thread,
    Process,
}

/// A thread or a process that builds, as long as this lives.
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

    /// Registers a process that was started.
    pub fn process(number: u32) -> Self {
        Self::register(number.cast_signed(), Kind::Process)
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
            Kind::Process => {
                for thread in threads_of(number) {
                    let _ = set_cpus(thread, cpus);
                }
                let must_stop = free.is_empty() && !self.timed.is_empty();
                signal(
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

/// Returns the threads of a process.
fn threads_of(process: libc::pid_t) -> Vec<libc::pid_t> {
    let path = Path::new("/proc").join(process.to_string()).join("task");
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.collect()
}

/// A thread that panicked while it held the lock left the state as it was.
fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("20").spawn().unwrap()
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
        let mut child = sleeper();
        let everywhere = allowed(child.id());
        let builder = Builder::process(child.id());
        std::thread::spawn(move || {
            let thread = Builder::this_thread();
            let quiet = Quiet::on(&[last]);
            if !others.is_empty() {
                assert_eq!(allowed_cpus(), others);
                let started = std::thread::spawn(allowed_cpus).join().unwrap();
                assert_eq!(started, others);
                let mut late = sleeper();
                let late_builder = Builder::process(late.id());
                assert_eq!(allowed(late.id()), allowed(child.id()));
                late.kill().unwrap();
                late.wait().unwrap();
                drop(late_builder);
            }
            drop(quiet);
            assert_eq!(allowed_cpus(), cpus);
            let quiet = Quiet::on(&cpus);
            wait_until(|| is_stopped(child.id()));
            drop(quiet);
            wait_until(|| !is_stopped(child.id()));
            drop(thread);
            assert_eq!(allowed_cpus(), cpus);
            assert_eq!(allowed(child.id()), everywhere);
            child.kill().unwrap();
            child.wait().unwrap();
        })
        .join()
        .unwrap();
        drop(builder);
    }
}
