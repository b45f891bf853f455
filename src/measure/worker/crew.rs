//! The threads that run artifacts of several threads.
//!
//! Artifacts of as many threads share them: two sets of threads on the same processors would be in
//! each other's way while they look out for the next run.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::pool::Pool;
use super::refusal::Refusal;
use crate::cpu::move_to_cpu;

/// Threads beside that of the worker, for artifacts of so many threads.
#[derive(Clone)]
pub(super) struct Crew(Arc<Mutex<Pool>>);

/// The crew that was asked for last.
#[derive(Debug)]
pub(super) struct Crews {
    /// Processors for all threads but the first.
    cpus: Vec<usize>,
    last: Option<(usize, Crew)>,
}

impl Crews {
    /// There are none yet. Each thread stays on one of the processors, as far as there are any.
    pub(super) fn on(cpus: Vec<usize>) -> Self {
        Self { cpus, last: None }
    }

    /// Returns a crew of so many threads; `None` if the worker's own is enough.
    pub(super) fn of(&mut self, n_threads: usize) -> Result<Option<Crew>, Refusal> {
        if n_threads <= 1 {
            return Ok(None);
        }
        if let Some((n, crew)) = &self.last
            && *n == n_threads
        {
            return Ok(Some(crew.clone()));
        }
        let cpus = self.cpus.clone();
        let settle = move |number: usize| {
            // A thread that is not where it should be is slower, and as right.
            let _ = cpus.get(number - 1).map(|&cpu| move_to_cpu(cpu));
        };
        let pool = Pool::new(n_threads, settle).map_err(|error| {
            Refusal::device_lost(format!("cannot start {n_threads} threads: {error}"))
        })?;
        let crew = Crew(Arc::new(Mutex::new(pool)));
        self.last = Some((n_threads, crew.clone()));
        Ok(Some(crew))
    }
}

impl Crew {
    /// Does something with the threads.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Pool) -> T) -> T {
        // A pool that somebody panicked with is between two runs all the same.
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Crew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[expect(unsafe_code, reason = "jobs are run")]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::cpu::{allowed_cpus, cpus_beside};

    /// In each round, every thread sees what all others did before the barrier, and nothing of what
    /// they do behind the next one; also where there are more threads than processors.
    #[test]
    fn no_thread_passes_the_barrier_before_all_are_there() {
        for (n_threads, n_rounds) in [(1, 100), (2, 5000), (3, 2000), (7, 300)] {
            let marks: Vec<AtomicUsize> = (0..n_threads).map(|_| AtomicUsize::new(0)).collect();
            let n_wrong = AtomicUsize::new(0);
            let mut pool = Pool::new(n_threads, |_| {}).unwrap();
            // SAFETY: the job shares atomic numbers only, and does not panic.
            unsafe {
                pool.run(&|thread, barrier| {
                    for round in 1..=n_rounds {
                        marks[thread].store(round, Ordering::Relaxed);
                        barrier.wait(n_threads, std::thread::yield_now);
                        let mut seen = marks.iter().map(|mark| mark.load(Ordering::Relaxed));
                        let are_equal = seen.all(|mark| mark == round);
                        n_wrong.fetch_add(usize::from(!are_equal), Ordering::Relaxed);
                        barrier.wait(n_threads, std::thread::yield_now);
                    }
                });
            }
            assert_eq!(n_wrong.into_inner(), 0, "{n_threads} threads");
        }
    }

    #[test]
    fn each_run_is_done_once_by_each_thread_whether_they_sleep_or_not() {
        let mut pool = Pool::new(3, |_| {}).unwrap();
        let n_done: Vec<AtomicUsize> = (0..3).map(|_| AtomicUsize::new(0)).collect();
        for round in 1..=600 {
            if round % 200 == 0 {
                // Long enough for all to fall asleep.
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            // SAFETY: as above.
            unsafe {
                pool.run(&|thread, _| {
                    n_done[thread].fetch_add(1, Ordering::Relaxed);
                });
            }
            let n_done = n_done.iter().map(|n| n.load(Ordering::Relaxed));
            assert!(n_done.into_iter().all(|n| n == round), "round {round}");
        }
    }

    #[test]
    fn threads_start_on_their_processors_and_end_with_their_pool() {
        let cpus = allowed_cpus();
        let (first, others) = (cpus[0], cpus_beside(cpus[0]));
        assert!(!others.contains(&first) && others.len() + 1 == cpus.len());
        let started = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&started);
        let last = *cpus.last().unwrap();
        let pool = Pool::new(4, move |number| {
            move_to_cpu(last).unwrap();
            log.lock().unwrap().push((number, allowed_cpus()));
        });
        drop(pool.unwrap());
        // Nobody else has the log any more: all threads have ended.
        let mut started = Arc::into_inner(started).unwrap().into_inner().unwrap();
        started.sort();
        assert_eq!(started, [1, 2, 3].map(|number| (number, vec![last])));
    }

    #[test]
    fn a_crew_is_shared_by_artifacts_of_as_many_threads() {
        let mut crews = Crews::on(Vec::new());
        assert!(crews.of(1).unwrap().is_none() && crews.of(0).unwrap().is_none());
        let [first, again] = [(); 2].map(|()| crews.of(2).unwrap().unwrap());
        assert!(Arc::ptr_eq(&first.0, &again.0));
        let other = crews.of(3).unwrap().unwrap();
        assert!(!Arc::ptr_eq(&first.0, &other.0));
    }
}
