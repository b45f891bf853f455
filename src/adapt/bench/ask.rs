//! What the device is asked, and what it says: noted in the journal, or read from it.

use super::facade::{Bench, Side};
use super::{Trial, TrialError};
use crate::adapt::Error;
use crate::adapt::journal::Entry;
use crate::backend::Artifact;
use crate::measure::WorkerError;

impl Bench {
    /// Checks and times an artifact. `expected_ns` is about how long a run takes, and `give_up_ns`
    /// how long it may take.
    ///
    /// # Errors
    /// See [`Bench`]; the inner error says how the trial ended instead.
    pub(in crate::adapt) async fn run(
        &mut self,
        artifact: &Artifact,
        expected_ns: Option<f64>,
        give_up_ns: Option<u64>,
    ) -> Result<Result<Trial, TrialError>, Error> {
        let digest = artifact.digest;
        match &mut self.side {
            Side::Live(live, _) => {
                let result = live.run(artifact, expected_ns, give_up_ns).await;
                self.answer(result, |result| Entry::Ran {
                    artifact: digest,
                    result,
                })
            }
            Side::Replay(replay) => replay.take("a run of another artifact", |entry| match entry {
                Entry::Ran { artifact, result } if *artifact == digest => Some(result.clone()),
                _ => None,
            }),
        }
    }

    /// Checks an artifact's numbers and takes no time.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(in crate::adapt) async fn check(
        &mut self,
        artifact: &Artifact,
    ) -> Result<Result<Trial, TrialError>, Error> {
        let digest = artifact.digest;
        match &mut self.side {
            Side::Live(live, _) => {
                let result = live.check(artifact).await;
                self.answer(result, |result| Entry::Checked {
                    artifact: digest,
                    result,
                })
            }
            Side::Replay(replay) => replay.take("a check", |entry| match entry {
                Entry::Checked { artifact, result } if *artifact == digest => Some(result.clone()),
                _ => None,
            }),
        }
    }

    /// Takes a few samples of an artifact that takes `run_ns`, to see whether the device is as fast
    /// as it was; returns the lower quartile, nanoseconds.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(in crate::adapt) async fn glance(
        &mut self,
        artifact: &Artifact,
        run_ns: f64,
    ) -> Result<Result<f64, TrialError>, Error> {
        match &mut self.side {
            Side::Live(live, _) => {
                let result = live.glance(artifact, run_ns).await;
                self.answer(result, |result| Entry::Glanced { result })
            }
            Side::Replay(replay) => replay.take("a look at the default", |entry| match entry {
                Entry::Glanced { result } => Some(result.clone()),
                _ => None,
            }),
        }
    }

    /// Times deployments in turn, in two blocks apart in time; returns the samples of each.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(in crate::adapt) async fn compare(
        &mut self,
        artifacts: &[&Artifact],
        expected_ns: f64,
        seed: u64,
    ) -> Result<Result<Vec<Vec<u64>>, TrialError>, Error> {
        let digests: Vec<_> = artifacts.iter().map(|artifact| artifact.digest).collect();
        match &mut self.side {
            Side::Live(live, _) => {
                let result = live.compare(artifacts, expected_ns, seed).await;
                self.answer(result, |result| Entry::Compared {
                    artifacts: digests,
                    result,
                })
            }
            Side::Replay(replay) => replay.take("another comparison", |entry| match entry {
                Entry::Compared { artifacts, result } if *artifacts == digests => {
                    Some(result.clone())
                }
                _ => None,
            }),
        }
    }

    /// Notes what the device said and hands it out.
    fn answer<T: Clone>(
        &mut self,
        result: Result<T, WorkerError>,
        entry: impl FnOnce(Result<T, TrialError>) -> Entry,
    ) -> Result<Result<T, TrialError>, Error> {
        let result = result.map_err(TrialError::from);
        self.note(&entry(result.clone()))?;
        Ok(result)
    }
}
