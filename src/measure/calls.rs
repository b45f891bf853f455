//! The requests as calls.

use std::path::PathBuf;
use std::time::Duration;

use super::protocol::{Profile, Request, Response, Verified};
use super::{Worker, WorkerError};
use crate::backend::Artifact;

impl Worker {
    /// Loads an artifact into a slot; what was there is dropped.
    ///
    /// # Errors
    /// See [`Worker::request`].
    pub async fn load(
        &mut self,
        slot: u32,
        artifact: Artifact,
        limit: Duration,
    ) -> Result<(), WorkerError> {
        let artifact = Box::new(artifact);
        match self
            .request(&Request::Load { slot, artifact }, limit)
            .await?
        {
            Response::Loaded => Ok(()),
            other => Err(WorkerError::unexpected(&other)),
        }
    }

    /// Compares the artifact in a slot with a reference file.
    ///
    /// # Errors
    /// See [`Worker::request`].
    pub async fn verify(
        &mut self,
        slot: u32,
        reference: PathBuf,
        limit: Duration,
    ) -> Result<Verified, WorkerError> {
        match self
            .request(&Request::Verify { slot, reference }, limit)
            .await?
        {
            Response::Verified(verified) => Ok(verified),
            other => Err(WorkerError::unexpected(&other)),
        }
    }

    /// Samples every step of the artifact in a slot.
    ///
    /// # Errors
    /// See [`Worker::request`].
    pub async fn profile(
        &mut self,
        slot: u32,
        warmup: u32,
        repeats: u32,
        give_up_ns: Option<u64>,
        limit: Duration,
    ) -> Result<Profile, WorkerError> {
        let request = Request::Profile {
            slot,
            warmup,
            repeats,
            give_up_ns,
        };
        match self.request(&request, limit).await? {
            Response::Profiled(profile) => Ok(profile),
            other => Err(WorkerError::unexpected(&other)),
        }
    }

    /// Samples whole runs of several slots in turn, in a random order each round; returns the
    /// samples of each slot, nanoseconds, by round.
    ///
    /// # Errors
    /// See [`Worker::request`].
    pub async fn compare(
        &mut self,
        slots: Vec<u32>,
        warmup: u32,
        rounds: u32,
        seed: u64,
        limit: Duration,
    ) -> Result<Vec<Vec<u64>>, WorkerError> {
        let n_slots = slots.len();
        let request = Request::Compare {
            slots,
            warmup,
            rounds,
            seed,
        };
        match self.request(&request, limit).await? {
            Response::Compared { slots_ns } if slots_ns.len() == n_slots => Ok(slots_ns),
            other => Err(WorkerError::unexpected(&other)),
        }
    }

    /// Runs the artifact in a slot once on the inputs that a file has, and writes the outputs to
    /// another one.
    ///
    /// # Errors
    /// See [`Worker::request`].
    pub async fn run(
        &mut self,
        slot: u32,
        inputs: PathBuf,
        outputs: PathBuf,
        limit: Duration,
    ) -> Result<(), WorkerError> {
        let request = Request::Run {
            slot,
            inputs,
            outputs,
        };
        match self.request(&request, limit).await? {
            Response::Ran => Ok(()),
            other => Err(WorkerError::unexpected(&other)),
        }
    }
}
