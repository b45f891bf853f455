//! Faults that hit the running tool from outside.

use std::path::PathBuf;
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};

use super::clock::Clock;
use super::dice::Dice;
use super::fault::{Fault, STRIKES, log, struck};
use super::{proc, store};

/// Address space that is left to a worker that is to run out of it, bytes.
const LITTLE: u64 = 64 << 10;

/// How long memory is short.
const SHORTAGE: Duration = Duration::from_millis(400);

/// The tool waits for the store so long; then it gives up.
const STORE_PATIENCE: Duration = Duration::from_secs(10);

/// Who hits one run of the tool.
pub(super) struct Striker<'a> {
    pub(super) clock: &'a Clock,
    store: PathBuf,
    log: PathBuf,
    dice: Dice,
    /// Ends of the times in which somebody had the store for longer than the tool waits; shared, as
    /// all runs use one store.
    hangs: &'a Mutex<Vec<Instant>>,
    /// What is to happen, and when.
    due: Vec<(Instant, Deed)>,
    holders: Vec<JoinHandle<Result<()>>>,
    /// What happened.
    pub(super) struck: Vec<Fault>,
}

/// Something to do at a time.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Begin(Fault),
    /// The end of a shortage.
    Relieve(Pid),
}

impl<'a> Striker<'a> {
    /// Returns one that has done nothing yet.
    pub(super) fn new(
        clock: &'a Clock,
        store: PathBuf,
        log: PathBuf,
        dice: Dice,
        hangs: &'a Mutex<Vec<Instant>>,
    ) -> Self {
        Self {
            clock,
            store,
            log,
            dice,
            hangs,
            due: Vec::new(),
            holders: Vec::new(),
            struck: Vec::new(),
        }
    }

    /// Takes note of an evaluation: something may happen soon after it.
    pub(super) fn plan(&mut self) {
        if let Some(fault) = struck(&STRIKES, self.dice.chance()) {
            let delay = Duration::from_secs_f64(self.dice.chance() * 0.3);
            self.due.push((Instant::now() + delay, Deed::Begin(fault)));
        }
    }

    /// Does what is due to a tool.
    pub(super) fn strike(&mut self, tool: u32) -> Result<()> {
        let now = Instant::now();
        let (due, later) = self.due.iter().partition(|(at, _)| *at <= now);
        self.due = later;
        let due: Vec<(Instant, Deed)> = due;
        for (_, deed) in due {
            match deed {
                Deed::Begin(fault) => {
                    if self.begin(fault, tool)? {
                        self.struck.push(fault);
                        log(&self.log, fault)?;
                    }
                }
                Deed::Relieve(pid) => limit_memory(pid, None),
            }
        }
        Ok(())
    }

    /// Returns whether the fault could be made.
    fn begin(&mut self, fault: Fault, tool: u32) -> Result<bool> {
        match fault {
            Fault::ToolKilled => Ok(signal(Some(tool), Signal::KILL)),
            Fault::Interrupt => Ok(signal(Some(tool), Signal::INT)),
            Fault::WorkerKilled => Ok(signal(proc::worker_of(tool), Signal::KILL)),
            Fault::DeviceHang => Ok(signal(proc::worker_of(tool), Signal::STOP)),
            Fault::OutOfMemory => Ok(self.starve(tool)),
            Fault::ClockJump => self.clock.jump(&mut self.dice).map(|()| true),
            Fault::StoreLocked => {
                let time = Duration::from_secs_f64(0.3 + 3.0 * self.dice.chance());
                self.hold(time);
                Ok(true)
            }
            Fault::StoreHang => {
                let time = STORE_PATIENCE + Duration::from_secs(3);
                if let Ok(mut hangs) = self.hangs.lock() {
                    hangs.push(Instant::now() + time);
                }
                self.hold(time);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn hold(&mut self, time: Duration) {
        let path = self.store.clone();
        let holder = std::thread::spawn(move || store::hold(&path, time));
        self.holders.push(holder);
    }

    fn starve(&mut self, tool: u32) -> bool {
        let Some(worker) = proc::worker_of(tool) else {
            return false;
        };
        let (Some(used), Some(pid)) = (proc::memory(worker, "VmSize"), pid(worker)) else {
            return false;
        };
        limit_memory(pid, Some(used + LITTLE));
        self.due
            .push((Instant::now() + SHORTAGE, Deed::Relieve(pid)));
        true
    }

    /// Waits until nobody has the store any more.
    ///
    /// # Errors
    /// If it could not be had.
    pub(super) fn finish(&mut self) -> Result<()> {
        for holder in self.holders.drain(..) {
            match holder.join() {
                Ok(held) => held?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(())
    }
}

fn pid(number: u32) -> Option<Pid> {
    Pid::from_raw(number.cast_signed())
}

/// Returns whether there was somebody to get it.
fn signal(to: Option<u32>, signal: Signal) -> bool {
    let to = to.and_then(pid);
    to.is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// Sets the soft limit; a process that is gone has none.
fn limit_memory(pid: Pid, bytes: Option<u64>) {
    let limit = Rlimit {
        current: bytes,
        maximum: None,
    };
    let _ = prlimit(Some(pid), Resource::As, limit);
}
