//! The device itself: builds deployments, checks their numbers, takes their time.
//!
//! One worker at a time holds the device. A worker that crashed or hung is one failed trial; the
//! next request gets a new one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};
use tracing::Instrument as _;

use super::Trial;
use super::build::{Build, BuildJob, Need};
use super::usage::{Meter, Usage};
use crate::adapt::disk::Disk;
use crate::adapt::job::{Choices, Job};
use crate::adapt::{Cancellation, Error, Request};
use crate::backend::{Artifact, Prepared};
use crate::cpu::{Quiet, allowed_cpus, cpus_beside};
use crate::digest::Digest;
use crate::label::Latency;
use crate::measure::protocol::Verified;
use crate::measure::{Worker, WorkerError, WorkerSpec};
use crate::queue::{Verdict, verdict};

/// Time that a profile should take.
const PROFILE_TIME: Duration = Duration::from_millis(300);

/// Samples that a profile has at least and at most.
const REPEATS: std::ops::RangeInclusive<u32> = 12..=120;

/// Samples of a glance at the baseline, and the time that it should take.
const GLANCES: std::ops::RangeInclusive<u32> = 5..=40;
const GLANCE_TIME: Duration = Duration::from_millis(60);

/// Rounds of a comparison at least and at most, and the time that they should take.
const ROUNDS: std::ops::RangeInclusive<u32> = 60..=400;
const COMPARE_TIME: Duration = Duration::from_millis(2500);

/// The device of a target and what is needed to use it.
pub(super) struct Live {
    spec: WorkerSpec,
    /// Processors that something is timed on.
    cpus: Vec<usize>,
    worker: Option<Worker>,
    /// What is loaded in slot 1.
    glanced: Option<Digest>,
    prepared: Arc<dyn Prepared>,
    reference: PathBuf,
    /// Reference files of artifacts that are of another structure of the model.
    references: BTreeMap<Digest, PathBuf>,
    builds: JoinSet<Ended>,
    /// As many as compilers may run at once.
    compilers: Arc<Semaphore>,
    n_compilers: usize,
    /// What was built and not discarded yet, by its library.
    artifacts: BTreeMap<PathBuf, Artifact>,
    disk: Arc<Disk>,
    cancellation: Cancellation,
    /// Time that a worker has for one request.
    limit: Duration,
    meter: Meter,
}

/// A build that ended.
struct Ended {
    build: u64,
    result: Build,
    took: Duration,
    at: Instant,
}

impl Live {
    /// Prepares to measure a model; `reference` is its file of reference values.
    pub(super) fn new(request: &Request, job: &Job<'_>, reference: &Path) -> Self {
        let cpu = request.worker.cpu.or_else(device_cpu);
        let mut cpus: Vec<usize> = cpu.into_iter().collect();
        if job.target.threads > 1 {
            cpus.extend(cpu.map_or_else(Vec::new, cpus_beside));
        }
        Self {
            spec: WorkerSpec {
                cpu,
                ..request.worker.clone()
            },
            cpus,
            worker: None,
            glanced: None,
            prepared: Arc::clone(&job.prepared),
            reference: reference.to_owned(),
            references: BTreeMap::new(),
            builds: JoinSet::new(),
            compilers: Arc::new(Semaphore::new(request.jobs.max(1))),
            n_compilers: request.jobs.max(1),
            artifacts: BTreeMap::new(),
            disk: Arc::new(Disk::new(request, job)),
            cancellation: request.cancellation.clone(),
            limit: request.timeouts.trial_timeout,
            meter: Meter::new(Instant::now()),
        }
    }

    /// Returns what was used so far.
    pub(super) fn usage(&self) -> Usage {
        self.meter.usage()
    }

    /// Returns the budget of the disk.
    pub(super) fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Starts to build a deployment, as soon as a compiler is free.
    pub(super) fn launch(&mut self, build: u64, choices: &Choices, need: Need) {
        let job = BuildJob {
            prepared: Arc::clone(&self.prepared),
            choices: choices.clone(),
            need,
            n_jobs: match need {
                Need::Screening => 1,
                Need::Decision => self.n_compilers,
            },
            disk: Arc::clone(&self.disk),
            cancellation: self.cancellation.clone(),
        };
        let compilers = Arc::clone(&self.compilers);
        let span = tracing::debug_span!("build", build, ?need);
        let building = async move {
            let (result, took) = job.run(&compilers).await;
            let at = Instant::now();
            Ended {
                build,
                result,
                took,
                at,
            }
        };
        self.builds.spawn(building.instrument(span));
    }

    /// Returns the next build that ends; `None` if none is under way.
    ///
    /// # Errors
    /// [`Error::Panicked`] if the build did.
    pub(super) async fn built(&mut self) -> Option<Result<(u64, Build), Error>> {
        let joined = self.builds.join_next().await?;
        Some(self.ended(joined))
    }

    /// Returns a build that has ended, if there is one.
    ///
    /// # Errors
    /// As [`Self::built`].
    pub(super) fn ready(&mut self) -> Option<Result<(u64, Build), Error>> {
        let joined = self.builds.try_join_next()?;
        Some(self.ended(joined))
    }

    fn ended(&mut self, joined: Result<Ended, JoinError>) -> Result<(u64, Build), Error> {
        let ended = joined.map_err(|_| Error::Panicked)?;
        let artifact = match &ended.result {
            Ok(Ok(artifact)) => {
                let library = artifact.library.clone();
                self.artifacts.insert(library, artifact.clone());
                Some(artifact.digest)
            }
            _ => None,
        };
        self.meter.built(artifact, ended.took, ended.at);
        Ok((ended.build, ended.result))
    }

    /// Checks and times an artifact in slot 0. `expected_ns` is about how long a run takes, and
    /// `give_up_ns` how long it may take. A worker that somebody ended is replaced, later and later.
    ///
    /// # Errors
    /// [`WorkerError`] says how the trial ended instead.
    pub(super) async fn run(
        &mut self,
        artifact: &Artifact,
        expected_ns: Option<f64>,
        give_up_ns: Option<u64>,
    ) -> Result<Trial, WorkerError> {
        let started = Instant::now();
        let mut n_attempts = 1;
        tracing::debug!(artifact = %artifact.digest.short(), "measure started");
        let ended = loop {
            let ended = self.attempt(artifact, expected_ns, give_up_ns).await;
            let Err(error) = &ended else {
                break ended;
            };
            tracing::debug!(
                n_attempts,
                outcome = error.outcome().name(),
                "measure failed"
            );
            if error.is_fatal() {
                self.reset();
            }
            match verdict(error.outcome(), n_attempts) {
                Verdict::Again(wait) if error.is_fatal() => tokio::time::sleep(wait).await,
                _ => break ended,
            }
            n_attempts += 1;
        };
        let took_ms = started.elapsed().as_millis() as u64;
        tracing::debug!(is_ok = ended.is_ok(), took_ms, "measure finished");
        self.meter
            .measured(&[artifact.digest], started, Instant::now());
        ended
    }

    async fn attempt(
        &mut self,
        artifact: &Artifact,
        expected_ns: Option<f64>,
        give_up_ns: Option<u64>,
    ) -> Result<Trial, WorkerError> {
        let started = Instant::now();
        let _quiet = self.quiet();
        let verified = self.verified(0, artifact).await?;
        let limit = self.limit;
        let worker = self.worker()?;
        let expected = if let Some(ns) = expected_ns {
            ns
        } else {
            let probe = worker.profile(0, 1, 3, None, limit).await?;
            probe.run_ns.iter().copied().min().unwrap_or(1) as f64
        };
        let repeats = within(PROFILE_TIME, expected, REPEATS);
        let profile = worker.profile(0, 3, repeats, give_up_ns, limit).await?;
        let measure_ns = started.elapsed().as_nanos() as u64;
        Ok(Trial {
            verified,
            profile,
            measure_ns,
        })
    }

    /// Checks an artifact's numbers in slot 0 and takes no time.
    ///
    /// # Errors
    /// [`WorkerError`] says how the trial ended instead.
    pub(super) async fn check(&mut self, artifact: &Artifact) -> Result<Trial, WorkerError> {
        Ok(Trial {
            verified: self.verified(0, artifact).await?,
            ..Trial::whole(0.0)
        })
    }

    /// Loads an artifact into a slot and compares its numbers with the reference.
    async fn verified(&mut self, slot: u32, artifact: &Artifact) -> Result<Verified, WorkerError> {
        let reference = self.references.get(&artifact.digest);
        let reference = reference.unwrap_or(&self.reference).clone();
        let limit = self.limit;
        let worker = self.worker()?;
        worker.load(slot, artifact.clone(), limit).await?;
        worker.verify(slot, reference, limit).await
    }

    /// Takes a few samples of an artifact in slot 1, to see whether the device is as fast as it was;
    /// returns the lower quartile, nanoseconds.
    ///
    /// # Errors
    /// [`WorkerError`] if it fails.
    pub(super) async fn glance(
        &mut self,
        artifact: &Artifact,
        run_ns: f64,
    ) -> Result<f64, WorkerError> {
        let started = Instant::now();
        let _quiet = self.quiet();
        let limit = self.limit;
        let is_loaded = self.glanced.as_ref() == Some(&artifact.digest) && self.worker.is_some();
        let worker = self.worker()?;
        if !is_loaded {
            worker.load(1, artifact.clone(), limit).await?;
        }
        let repeats = within(GLANCE_TIME, run_ns, GLANCES);
        let profile = worker.profile(1, 2, repeats, None, limit).await?;
        self.glanced = Some(artifact.digest);
        self.meter.measured(&[], started, Instant::now());
        let latency = Latency::of(&profile.run_ns);
        Ok(latency.map_or(run_ns, |latency| latency.p25_ns))
    }

    /// Times deployments in turn, in two blocks apart in time; returns the samples of each.
    ///
    /// # Errors
    /// [`WorkerError`] if one of them fails.
    pub(super) async fn compare(
        &mut self,
        artifacts: &[&Artifact],
        expected_ns: f64,
        seed: u64,
    ) -> Result<Vec<Vec<u64>>, WorkerError> {
        let started = Instant::now();
        let _quiet = self.quiet();
        self.glanced = None;
        let slots: Vec<u32> = (0..artifacts.len() as u32).collect();
        for (&slot, artifact) in slots.iter().zip(artifacts) {
            self.verified(slot, artifact).await?;
        }
        let limit = self.limit;
        let worker = self.worker()?;
        let rounds = within(COMPARE_TIME, expected_ns * artifacts.len() as f64, ROUNDS);
        let mut samples = vec![Vec::new(); artifacts.len()];
        for block in 0..2 {
            let n_rounds = rounds.div_ceil(2);
            let taken = worker.compare(
                slots.clone(),
                3,
                n_rounds,
                seed.wrapping_add(block),
                limit * 2,
            );
            for (all, new) in samples.iter_mut().zip(taken.await?) {
                all.extend(new);
            }
            if block == 0 {
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
        }
        let digests: Vec<Digest> = artifacts.iter().map(|artifact| artifact.digest).collect();
        self.meter.measured(&digests, started, Instant::now());
        Ok(samples)
    }

    /// Takes in an artifact of another structure of the model, with its reference values. Its files
    /// belong to whoever built it.
    pub(super) fn adopt(&mut self, artifact: &Artifact, reference: &Path) {
        self.references
            .insert(artifact.digest, reference.to_owned());
    }

    /// Removes an artifact's files.
    pub(super) fn discard(&mut self, artifact: &Artifact) {
        self.meter.dropped(&artifact.digest);
        if self.references.contains_key(&artifact.digest) {
            return;
        }
        self.artifacts.remove(&artifact.library);
        self.prepared.discard(artifact);
    }

    /// Keeps builds off the cores of the device.
    fn quiet(&self) -> Quiet {
        Quiet::on(&self.cpus)
    }

    /// Returns the worker, starting one if there is none or the last one is gone.
    fn worker(&mut self) -> Result<&mut Worker, WorkerError> {
        if self
            .worker
            .as_ref()
            .is_none_or(|worker| worker.pid().is_none())
        {
            self.reset();
        }
        match &mut self.worker {
            Some(worker) => Ok(worker),
            empty => Ok(empty.insert(Worker::spawn(&self.spec)?)),
        }
    }

    /// Drops the worker, so that the next request gets a new one.
    pub(super) fn reset(&mut self) {
        self.glanced = None;
        self.worker = None;
    }
}

impl Drop for Live {
    /// Removes the files of what a run that could not go on has left.
    fn drop(&mut self) {
        for artifact in self.artifacts.values() {
            self.prepared.discard(artifact);
        }
    }
}

/// Returns the processor that measurements are made on if none is asked for: the last one, if there
/// are others. Compilers do not run meanwhile, or keep off its core.
fn device_cpu() -> Option<usize> {
    let cpus = allowed_cpus();
    cpus.last().copied().filter(|_| cpus.len() > 1)
}

/// Returns how often something that takes `each_ns` fits into `time`, within bounds.
fn within(time: Duration, each_ns: f64, bounds: std::ops::RangeInclusive<u32>) -> u32 {
    let n = time.as_nanos() as f64 / each_ns.max(1.0);
    (n as u32).clamp(*bounds.start(), *bounds.end())
}
