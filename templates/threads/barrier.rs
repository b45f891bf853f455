//! Where threads wait for each other.
//!
//! A thread that waits turns round on the spot, as others are a microsecond away; where there are
//! more threads than processors it lets others go first after a while.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Turns before a thread lets others go first: some ten microseconds.
const SPINS: usize = 2000;

/// A place where a number of threads wait until all of them are there, any number of times.
#[repr(C)]
pub(super) struct Barrier {
    /// Threads that are there.
    arrived: Line,
    /// Goes up when all are. The last one changes it, so that nobody who leaves is counted again.
    round: Line,
}

/// A number that has its cache line to itself.
#[repr(C, align(64))]
struct Line(AtomicUsize);

impl Barrier {
    pub(super) const fn new() -> Self {
        Self {
            arrived: Line(AtomicUsize::new(0)),
            round: Line(AtomicUsize::new(0)),
        }
    }

    /// Waits until `n_threads` threads are here. What each of them did before, all see behind it.
    pub(super) fn wait(&self, n_threads: usize, let_others_go: impl Fn()) {
        let round = self.round.0.load(Ordering::Relaxed);
        if self.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == n_threads {
            self.arrived.0.store(0, Ordering::Relaxed);
            self.round.0.store(round.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut n_spins = 0;
        while self.round.0.load(Ordering::Acquire) == round {
            if n_spins < SPINS {
                n_spins += 1;
                spin_loop();
            } else {
                let_others_go();
            }
        }
    }
}
