//! The device: builds deployments, checks their numbers, takes their time.
//!
//! One worker at a time holds the device. A worker that crashed or hung is one failed trial; the
//! next request gets a new one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use super::job::Choices;
use super::{Error, Request};
use crate::backend::{Artifact, BackendError, Failure, Prepared};
use crate::digest::Digest;
use crate::label::Latency;
use crate::measure::protocol::{Profile, StepCheck, Verified};
use crate::measure::worker::{OffCore, allowed_cpus};
use crate::measure::{Worker, WorkerError, WorkerSpec};

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
pub(super) struct Bench {
    spec: WorkerSpec,
    worker: Option<Worker>,
    /// What is loaded in slot 1.
    glanced: Option<Digest>,
    prepared: Arc<dyn Prepared>,
    reference: PathBuf,
    jobs: usize,
    /// Time that a worker has for one request.
    limit: Duration,
}

/// What an artifact did on the device.
#[derive(Debug)]
pub(super) struct Trial {
    /// How its numbers compare with the reference.
    pub(super) verified: Verified,
    /// How long it took.
    pub(super) profile: Profile,
    /// Wall time of the trial.
    pub(super) measure_ns: u64,
}

impl Trial {
    /// Stands for whole runs that took so long and were checked before.
    pub(super) fn whole(run_ns: f64) -> Self {
        let unchecked = StepCheck {
            relative_l2: None,
            compared: false,
        };
        Self {
            verified: Verified {
                steps: Vec::new(),
                run: unchecked,
            },
            profile: Profile {
                run_ns: vec![run_ns as u64],
                steps_ns: Vec::new(),
                gave_up: false,
            },
            measure_ns: 0,
        }
    }
}

/// The result of building one deployment.
pub(super) type Built = Result<Artifact, Failure>;

/// Deployments that are being built.
pub(super) struct Building {
    task: JoinHandle<Result<Result<Vec<Built>, BackendError>, Error>>,
}

impl Building {
    /// Waits for them.
    ///
    /// # Errors
    /// [`BackendError`] if something other than a candidate is wrong.
    pub(super) async fn finish(self) -> Result<Result<Vec<Built>, BackendError>, Error> {
        self.task.await.map_err(|_| Error::Panicked)?
    }
}

impl Bench {
    /// Prepares to measure a model; `reference` is its file of reference values.
    pub(super) fn new(request: &Request, prepared: Arc<dyn Prepared>, reference: &Path) -> Self {
        Self {
            spec: WorkerSpec {
                cpu: request.worker.cpu.or_else(device_cpu),
                ..request.worker.clone()
            },
            worker: None,
            glanced: None,
            prepared,
            reference: reference.to_owned(),
            jobs: request.jobs.max(1),
            limit: request.trial_limit,
        }
    }

    /// Starts to build deployments, as many at once as may be. What is built beside something that
    /// is measured keeps off the core of the device.
    pub(super) fn start(&self, deployments: Vec<Choices>, is_beside: bool) -> Building {
        let jobs = self.jobs(is_beside);
        let parallel = deployments.len().clamp(1, jobs);
        let jobs = (jobs / parallel).max(1);
        let prepared = Arc::clone(&self.prepared);
        let device = self.spec.cpu.filter(|_| is_beside);
        let build = async move {
            let mut built = Vec::new();
            for chunk in deployments.chunks(parallel) {
                let tasks = chunk.iter().map(|choices| {
                    let (prepared, choices) = (Arc::clone(&prepared), choices.clone());
                    tokio::task::spawn_blocking(move || {
                        let _off_core = device.and_then(OffCore::of);
                        prepared.build(&choices.candidates, &choices.options, jobs)
                    })
                });
                for task in tasks.collect::<Vec<_>>() {
                    match task.await.map_err(|_| Error::Panicked)? {
                        Ok(result) => built.push(result),
                        Err(error) => return Ok(Err(error)),
                    }
                }
            }
            Ok(Ok(built))
        };
        Building {
            task: tokio::spawn(build),
        }
    }

    /// Returns how many compilers may run at once.
    pub(super) fn jobs(&self, is_beside: bool) -> usize {
        self.jobs.saturating_sub(usize::from(is_beside)).max(1)
    }

    /// Checks and times an artifact in slot 0. `expected_ns` is about how long a run takes, and
    /// `give_up_ns` how long it may take. A worker that somebody ended is replaced once.
    ///
    /// # Errors
    /// [`WorkerError`] says how the trial ended instead.
    pub(super) async fn run(
        &mut self,
        artifact: &Artifact,
        expected_ns: Option<f64>,
        give_up_ns: Option<u64>,
    ) -> Result<Trial, WorkerError> {
        match self.attempt(artifact, expected_ns, give_up_ns).await {
            Err(error) if error.is_fatal() && !error.outcome().is_final() => {
                self.reset();
                self.attempt(artifact, expected_ns, give_up_ns).await
            }
            ended => ended,
        }
    }

    async fn attempt(
        &mut self,
        artifact: &Artifact,
        expected_ns: Option<f64>,
        give_up_ns: Option<u64>,
    ) -> Result<Trial, WorkerError> {
        let started = Instant::now();
        let (reference, limit) = (self.reference.clone(), self.limit);
        let worker = self.worker()?;
        worker.load(0, artifact.clone(), limit).await?;
        let verified = worker.verify(0, reference, limit).await?;
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
        let (reference, limit) = (self.reference.clone(), self.limit);
        let worker = self.worker()?;
        worker.load(0, artifact.clone(), limit).await?;
        let verified = worker.verify(0, reference, limit).await?;
        Ok(Trial {
            verified,
            ..Trial::whole(0.0)
        })
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
        let limit = self.limit;
        let is_loaded = self.glanced.as_ref() == Some(&artifact.digest) && self.worker.is_some();
        let worker = self.worker()?;
        if !is_loaded {
            worker.load(1, artifact.clone(), limit).await?;
        }
        let repeats = within(GLANCE_TIME, run_ns, GLANCES);
        let profile = worker.profile(1, 2, repeats, None, limit).await?;
        self.glanced = Some(artifact.digest);
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
        let (reference, limit) = (self.reference.clone(), self.limit);
        self.glanced = None;
        let worker = self.worker()?;
        let slots: Vec<u32> = (0..artifacts.len() as u32).collect();
        for (slot, artifact) in slots.iter().zip(artifacts) {
            worker.load(*slot, (*artifact).clone(), limit).await?;
            worker.verify(*slot, reference.clone(), limit).await?;
        }
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
        Ok(samples)
    }

    /// Removes an artifact's files.
    pub(super) fn discard(&self, artifact: &Artifact) {
        self.prepared.discard(artifact);
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

/// Returns the processor that measurements are made on if none is asked for: the last one, if there
/// are others. Compilers do not run meanwhile, or keep off its core.
pub(super) fn device_cpu() -> Option<usize> {
    let cpus = allowed_cpus();
    cpus.last().copied().filter(|_| cpus.len() > 1)
}

/// Returns how often something that takes `each_ns` fits into `time`, within bounds.
fn within(time: Duration, each_ns: f64, bounds: std::ops::RangeInclusive<u32>) -> u32 {
    let n = time.as_nanos() as f64 / each_ns.max(1.0);
    (n as u32).clamp(*bounds.start(), *bounds.end())
}
