//! Threads that run a program together.
//!
//! Between runs they look out for the next one for a while, which finds them at once, and then
//! sleep until they are woken.

use std::hint::spin_loop;
use std::io;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle, yield_now};

use super::barrier::Barrier;

/// Turns that a thread looks out for the next run, some ten microseconds; waking it takes longer.
const SPINS: usize = 2000;

/// What all threads do in a run, each with its number; they may wait for each other at the barrier.
type Job<'a> = &'a dyn Fn(usize, &Barrier);

/// Threads beside that of the caller. They end when it is dropped.
pub(super) struct Pool {
    board: Arc<Board>,
    helpers: Vec<JoinHandle<()>>,
}

/// What the threads know of each other.
struct Board {
    n_threads: usize,
    barrier: Barrier,
    /// Goes up with each run.
    round: AtomicUsize,
    /// Points to the `Job` of the run; null if there will be no more.
    job: AtomicPtr<()>,
}

impl Pool {
    /// Starts threads until there are `n_threads` with that of the caller, which is number 0. Each
    /// calls `at_start` with its number first.
    ///
    /// # Errors
    /// If the system gives no more threads; those that were started end.
    pub(super) fn new(
        n_threads: usize,
        at_start: impl Fn(usize) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let board = Board {
            n_threads,
            barrier: Barrier::new(),
            round: AtomicUsize::new(0),
            job: AtomicPtr::new(null_mut()),
        };
        let mut pool = Self {
            board: Arc::new(board),
            helpers: Vec::new(),
        };
        let at_start = Arc::new(at_start);
        for number in 1..n_threads {
            let (board, at_start) = (Arc::clone(&pool.board), Arc::clone(&at_start));
            let thread = thread::Builder::new().name(format!("metainfer-{number}"));
            pool.helpers.push(thread.spawn(move || {
                at_start(number);
                help(&board, number);
            })?);
        }
        Ok(pool)
    }

    /// Does a job on all threads, and returns when all have done it.
    ///
    /// # Safety
    /// The job may be done by several threads at once, and does not unwind.
    pub(super) unsafe fn run(&mut self, job: Job<'_>) {
        let pointer = (&raw const job).cast_mut().cast();
        self.call(pointer);
        job(0, &self.board.barrier);
        self.board.barrier.wait(self.board.n_threads, yield_now);
    }

    /// Shows all threads a job, or that there will be none.
    fn call(&self, job: *mut ()) {
        self.board.job.store(job, Ordering::Relaxed);
        self.board.round.fetch_add(1, Ordering::Release);
        for helper in &self.helpers {
            helper.thread().unpark();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.call(null_mut());
        for helper in self.helpers.drain(..) {
            // A thread that panicked has ended, too.
            let _ = helper.join();
        }
    }
}

/// Does one job after the other.
fn help(board: &Board, number: usize) {
    for round in 1_usize.. {
        let mut n_spins = 0;
        while board.round.load(Ordering::Acquire) < round {
            if n_spins < SPINS {
                n_spins += 1;
                spin_loop();
            } else {
                thread::park();
            }
        }
        let job = board.job.load(Ordering::Relaxed).cast_const();
        if job.is_null() {
            return;
        }
        // SAFETY: whoever calls for a run keeps its job until all have come to the barrier below.
        let job = unsafe { *job.cast::<Job<'_>>() };
        job(number, &board.barrier);
        board.barrier.wait(board.n_threads, yield_now);
    }
}
