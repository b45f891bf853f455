//! Clocks: processor time of this thread, wall time, and the counter that artifacts read.
#![expect(unsafe_code, reason = "both clocks are read through unsafe interfaces")]

use std::hint::spin_loop;
use std::time::{Duration, Instant};

/// Shortest stretch over which the counter is compared with the system's clock; at 25 ns a
/// reading, the error is a few millionths.
const CALIBRATION: Duration = Duration::from_millis(20);

/// Converts readings of the counter to nanoseconds.
#[derive(Debug)]
pub(super) struct Counter {
    started: Instant,
    start_ticks: u64,
    ns_per_tick: f64,
}

impl Counter {
    /// Measures the rate of the counter, for as long as that takes.
    pub(super) fn calibrated() -> Self {
        let (started, start_ticks) = read_both();
        let mut counter = Self {
            started,
            start_ticks,
            ns_per_tick: 1.0,
        };
        while counter.started.elapsed() < CALIBRATION {
            spin_loop();
        }
        counter.recalibrate();
        counter
    }

    /// Measures the rate over all the time since the start, which is ever more exact.
    pub(super) fn recalibrate(&mut self) {
        let (now, ticks) = read_both();
        let elapsed_ns = (now - self.started).as_nanos() as f64;
        let n_ticks = ticks.wrapping_sub(self.start_ticks) as f64;
        if cfg!(target_arch = "x86_64") && n_ticks > 0.0 {
            self.ns_per_tick = elapsed_ns / n_ticks;
        }
    }

    /// Returns the time between two readings, nanoseconds; 0 if the counter went backwards, as it
    /// may when the thread moves to another socket.
    pub(super) fn ns_between(&self, start_ticks: u64, end_ticks: u64) -> u64 {
        (end_ticks.saturating_sub(start_ticks) as f64 * self.ns_per_tick).round() as u64
    }
}

/// Reads both clocks at one moment: a thread that is preempted between the two tries again.
fn read_both() -> (Instant, u64) {
    let read = |_| {
        let before = Instant::now();
        let ticks = ticks();
        (before.elapsed(), (before, ticks))
    };
    let quickest = (0..10).map(read).min_by_key(|(gap, _)| *gap);
    quickest.map_or_else(|| (Instant::now(), ticks()), |(_, readings)| readings)
}

/// Returns the processor time that this thread has used, nanoseconds.
pub(super) fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns the wall time since some moment, nanoseconds.
pub(super) fn wall_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a value of the right type, which the call fills in.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Reads the counter as artifacts do.
#[cfg(target_arch = "x86_64")]
pub(super) fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has this instruction.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Elsewhere artifacts write nanoseconds.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn ticks() -> u64 {
    0
}
