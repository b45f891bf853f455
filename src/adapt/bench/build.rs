//! One build: its turn at the compilers, further attempts, and its early end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::Built;
use crate::adapt::Cancellation;
use crate::adapt::disk::Disk;
use crate::adapt::job::Choices;
use crate::backend::{BackendError, Failure, Prepared};
use crate::cpu::Builder;
use crate::label::Outcome;
use crate::queue::{Verdict, verdict};

/// How often a build that nobody wants any more is told so: it may be between two calls.
const INSIST: Duration = Duration::from_millis(50);

/// The result of building one deployment; the outer error is something that no candidate is to
/// blame for.
pub(super) type Build = Result<Built, BackendError>;

/// What a deployment is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::adapt) enum Need {
    /// To learn of it, with one compiler, beside others. A run that is cancelled does without.
    Screening,
    /// To decide by it, with all compilers. A run that is cancelled waits for it.
    Decision,
}

/// A deployment to build.
pub(super) struct BuildJob {
    pub(super) prepared: Arc<dyn Prepared>,
    pub(super) choices: Choices,
    pub(super) need: Need,
    /// Compilers that it takes.
    pub(super) n_jobs: usize,
    pub(super) disk: Arc<Disk>,
    pub(super) cancellation: Cancellation,
}

impl BuildJob {
    /// Builds as soon as there are compilers for it. If the disk is full or somebody ended a
    /// compiler, builds again: at once if there was something to remove, then later and later.
    /// Returns what came of it and how long the compilers were at it.
    pub(super) async fn run(&self, compilers: &Semaphore) -> (Build, Duration) {
        let mut took = Duration::ZERO;
        let permits = compilers.acquire_many(self.n_jobs as u32);
        let _permits = tokio::select! {
            // The semaphore is never closed.
            permits = permits => permits,
            () = self.given_up() => return (Ok(Err(given_up())), took),
        };
        let mut n_attempts = 1;
        let mut has_made_room = false;
        loop {
            let started = Instant::now();
            tracing::debug!(n_attempts, "compile started");
            let result = self.attempt().await;
            took += started.elapsed();
            let took_ms = took.as_millis() as u64;
            tracing::debug!(outcome = outcome(&result), took_ms, "compile finished");
            let is_full = result.as_ref().is_err_and(BackendError::is_disk_full);
            if is_full && !std::mem::replace(&mut has_made_room, true) && self.make_room().await {
                continue;
            }
            let Some(wait) = wait(&result, n_attempts) else {
                return (result, took);
            };
            tracing::debug!(n_attempts, wait_ms = wait.as_millis() as u64, "retry");
            tokio::select! {
                () = tokio::time::sleep(wait) => n_attempts += 1,
                // No wait is as long as that of somebody who wants to go.
                () = self.cancellation.cancelled() => return (result, took),
            }
        }
    }

    async fn attempt(&self) -> Build {
        let (prepared, choices) = (Arc::clone(&self.prepared), self.choices.clone());
        let (n_jobs, disk) = (self.n_jobs, Arc::clone(&self.disk));
        let mut building = tokio::task::spawn_blocking(move || {
            let _builder = Builder::this_thread();
            let built = prepared.build(&choices.candidates, &choices.options, n_jobs);
            disk.built();
            built
        });
        let mut built = tokio::select! {
            built = &mut building => Some(built),
            () = self.given_up() => None,
        };
        while built.is_none() {
            self.prepared.abandon();
            built = tokio::time::timeout(INSIST, &mut building).await.ok();
        }
        match built {
            Some(Err(panic)) => std::panic::resume_unwind(panic.into_panic()),
            Some(Ok(result)) => result,
            None => Ok(Err(given_up())),
        }
    }

    /// Removes what is kept and not in use; returns whether that was anything.
    async fn make_room(&self) -> bool {
        let disk = Arc::clone(&self.disk);
        let made = tokio::task::spawn_blocking(move || disk.make_all_room());
        made.await.unwrap_or_default()
    }

    /// Returns once nobody wants it any more.
    async fn given_up(&self) {
        match self.need {
            Need::Screening => self.cancellation.cancelled().await,
            Need::Decision => std::future::pending().await,
        }
    }
}

/// Returns the word for what came of a build.
fn outcome(result: &Build) -> &'static str {
    match result {
        Ok(Ok(_)) => Outcome::Ok.name(),
        Ok(Err(failure)) => failure.outcome.name(),
        Err(_) => "error",
    }
}

fn given_up() -> Failure {
    Failure {
        subgraph: None,
        outcome: Outcome::DeviceLost,
        message: "the run was interrupted".to_owned(),
    }
}

/// Returns the time after which a build is tried again that no candidate is to blame for: by then
/// others may have freed some space, or whoever ended the compiler is done.
fn wait(result: &Build, n_attempts: u32) -> Option<Duration> {
    let outcome = match result {
        Ok(Err(failure)) => failure.outcome,
        Err(error) if error.is_disk_full() => Outcome::DeviceLost,
        _ => return None,
    };
    match verdict(outcome, n_attempts) {
        Verdict::Again(wait) => Some(wait),
        Verdict::Over => None,
    }
}
