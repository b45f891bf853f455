//! Jobs and trials of all runs of this user on this machine, beside their labels.

use super::store::Sqlite;
use super::uptime::uptime;
use super::{jobs, trials};
use crate::digest::Digest;
use crate::label::Purpose;
use crate::queue::{
    Job, JobId, JobSpec, JobState, Lease, Priority, TrialId, TrialState, Used, Waiting, first,
};
use crate::store::{Batch, LabelStore, Pending, Recorded, StoreError};

/// The queue of a store. What is done with it is done in one transaction each, so that runs may
/// come and go at any time.
#[derive(Debug, Clone)]
pub struct Queue {
    store: Sqlite,
}

/// A trial that was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begun {
    /// The right to move it on.
    pub lease: Lease,
    /// How often it was begun without coming to an end, this time included.
    pub n_attempts: u32,
}

/// What a run is to do about its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Orders {
    /// To end it.
    pub is_cancelled: bool,
    /// How much it matters now.
    pub priority: Priority,
}

impl Queue {
    /// Returns the queue of a store.
    pub fn of(store: Sqlite) -> Self {
        Self { store }
    }

    /// Opens a job. Whoever does so holds the workspace: earlier runs in it are gone, and their
    /// trials are free.
    pub fn open(&self, spec: JobSpec) -> Pending<'_, JobId> {
        self.store.run("write", move |connection| {
            jobs::open(connection, &spec, &uptime())
        })
    }

    /// Renews the lease of a job and of its trials, which lasts for [`LEASE`](crate::queue::LEASE).
    pub fn renew(&self, job: JobId, used: Used) -> Pending<'_, Orders> {
        self.store.run("write", move |connection| {
            jobs::renew(connection, job, used, &uptime())
        })
    }

    /// Closes a job and drops what is left of its trials.
    pub fn close(&self, job: JobId, state: JobState, used: Used) -> Pending<'_, ()> {
        self.store.run("write", move |connection| {
            jobs::close(connection, job, state, used)
        })
    }

    /// Begins a trial of a job. `key` says what is compiled. `None` if another run that is alive is
    /// at it: whoever wants it may wait for its labels.
    pub fn begin(&self, job: JobId, key: Digest, purpose: Purpose) -> Pending<'_, Option<Begun>> {
        self.store.run("write", move |connection| {
            trials::begin(connection, job, key, purpose, &uptime())
        })
    }

    /// Moves a trial on.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] if it was begun again by somebody else, or does not lead there.
    pub fn advance(&self, lease: Lease, next: TrialState) -> Pending<'_, ()> {
        let moved = self.store.run("write", move |connection| {
            trials::advance(connection, lease, next, &uptime())
        });
        Box::pin(async move {
            let moved = moved.await?;
            moved.then_some(()).ok_or_else(|| self.fenced())
        })
    }

    /// Ends a trial and records what it did, both or neither.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] if it was begun again by somebody else: nothing is recorded then.
    pub fn finish(&self, lease: Lease, end: TrialState, batch: Batch) -> Pending<'_, Recorded> {
        if let Err(error) = batch.check() {
            return Box::pin(async { Err(error) });
        }
        let recorded = self.store.run("write", move |connection| {
            trials::finish(connection, lease, end, &batch, &uptime())
        });
        Box::pin(async move { recorded.await?.ok_or_else(|| self.fenced()) })
    }

    /// Returns the trial whose turn it is on a device, among those of all runs.
    pub fn turn(&self, device: String) -> Pending<'_, Option<TrialId>> {
        self.store.run("read", move |connection| {
            let now = uptime();
            let waiting: Vec<Waiting> = trials::waiting(connection, &device, &now)?;
            Ok(first(&waiting, now.ms).map(|waiting| waiting.trial))
        })
    }

    /// Returns all jobs that are kept, the oldest first.
    pub fn jobs(&self) -> Pending<'_, Vec<Job>> {
        self.store
            .run("read", move |connection| jobs::list(connection, &uptime()))
    }

    /// Asks for a job to end with the best so far; returns whether it is at work.
    pub fn cancel(&self, job: JobId) -> Pending<'_, bool> {
        self.store.run("write", move |connection| {
            jobs::cancel(connection, job, &uptime())
        })
    }

    /// Changes how much a job matters; returns whether it is at work.
    pub fn prioritise(&self, job: JobId, priority: Priority) -> Pending<'_, bool> {
        self.store.run("write", move |connection| {
            jobs::prioritise(connection, job, priority, &uptime())
        })
    }

    fn fenced(&self) -> StoreError {
        StoreError::Fenced {
            store: self.store.name().to_owned(),
        }
    }
}
