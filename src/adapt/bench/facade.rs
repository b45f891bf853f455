//! The bench as the search sees it.

use std::path::Path;

use super::live::Live;
use super::replay::Replay;
use super::{Need, Usage};
use crate::adapt::job::{Choices, Job};
use crate::adapt::journal::{Entry, Journal, Stop};
use crate::adapt::locked::footprint;
use crate::adapt::{Error, Request};
use crate::backend::{Artifact, BackendError, Failure};
use crate::lock::Footprint;

/// The result of building one deployment.
pub(in crate::adapt) type Built = Result<Artifact, Failure>;

/// A build that ended, by its number; the outer error is the backend's.
pub(in crate::adapt) type Ended = (u64, Result<Built, BackendError>);

/// Builds and measures, and keeps a journal of it; or answers from the journal of an earlier run.
///
/// Outer errors stop the run: something is wrong that no candidate is to blame for, or the replay
/// and the journal have parted.
pub(in crate::adapt) struct Bench {
    pub(super) side: Side,
    n_builds: u64,
    stopped: Option<Stop>,
}

pub(super) enum Side {
    Live(Box<Live>, Journal),
    Replay(Replay),
}

impl Bench {
    /// Prepares to measure a model; `reference` is its file of reference values.
    pub(in crate::adapt) fn live(
        request: &Request,
        job: &Job<'_>,
        reference: &Path,
        journal: Journal,
    ) -> Self {
        Self::of(Side::Live(
            Box::new(Live::new(request, job, reference)),
            journal,
        ))
    }

    /// Answers from a journal; its header and what the store knew are gone through.
    pub(in crate::adapt) fn replay(entries: Vec<Entry>) -> Self {
        Self::of(Side::Replay(Replay::new(entries)))
    }

    fn of(side: Side) -> Self {
        Self {
            side,
            n_builds: 0,
            stopped: None,
        }
    }

    /// Returns what was used so far; nothing in a replay.
    pub(in crate::adapt) fn usage(&self) -> Usage {
        match &self.side {
            Side::Live(live, _) => live.usage(),
            Side::Replay(_) => Usage::default(),
        }
    }

    /// Returns what the workspace keeps on disk, bytes, as last seen; nothing in a replay.
    pub(in crate::adapt) fn disk_bytes(&self) -> u64 {
        match &self.side {
            Side::Live(live, _) => live.disk().used_bytes(),
            Side::Replay(_) => 0,
        }
    }

    /// Brings what is kept on disk within its budget.
    pub(in crate::adapt) fn tidy(&self) {
        if let Side::Live(live, _) = &self.side {
            live.disk().tidy();
        }
    }

    /// Takes in an artifact that was built for another structure of the model, with its reference
    /// values; a replay never asks for its numbers.
    pub(in crate::adapt) fn adopt(&mut self, artifact: &Artifact, reference: &Path) {
        if let Side::Live(live, _) = &mut self.side {
            live.adopt(artifact, reference);
        }
    }

    /// Returns the entry that the replay comes to next.
    pub(in crate::adapt) fn replays(&self) -> Option<&Entry> {
        match &self.side {
            Side::Live(..) => None,
            Side::Replay(replay) => replay.next(),
        }
    }

    /// Adds an entry to the journal, or goes along with the same one.
    ///
    /// # Errors
    /// If it cannot be written, or is another one.
    pub(in crate::adapt) fn note(&mut self, entry: &Entry) -> Result<(), Error> {
        match &mut self.side {
            Side::Live(_, journal) => Ok(journal.append(entry)?),
            Side::Replay(replay) => {
                replay.take("another decision", |known| (known == entry).then_some(()))
            }
        }
    }

    /// Returns whether the run is to end, and why; somebody's word goes before a budget that is
    /// spent. `why` is asked on the device only.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub(in crate::adapt) fn stop(
        &mut self,
        why: impl FnOnce() -> Option<Stop>,
    ) -> Result<Option<Stop>, Error> {
        if self.stopped == Some(Stop::Cancelled) {
            return Ok(self.stopped);
        }
        let stop = match &mut self.side {
            Side::Live(_, journal) => {
                let is_new = |stop: &Stop| self.stopped.is_none() || *stop == Stop::Cancelled;
                let stop = why().filter(is_new);
                journal.ask(stop)?;
                stop
            }
            Side::Replay(replay) => replay.ask(),
        };
        self.stopped = stop.or(self.stopped);
        Ok(self.stopped)
    }

    /// Starts to build a deployment; returns its number.
    ///
    /// # Errors
    /// See [`Bench`].
    pub(in crate::adapt) fn launch(&mut self, choices: &Choices, need: Need) -> Result<u64, Error> {
        self.n_builds += 1;
        let build = self.n_builds;
        self.note(&Entry::Launched {
            build,
            choices: choices.clone(),
        })?;
        match &mut self.side {
            Side::Live(live, _) => live.launch(build, choices, need),
            Side::Replay(replay) => replay.n_building += 1,
        }
        Ok(build)
    }

    /// Waits for the next build that ends; `None` if none is under way.
    ///
    /// # Errors
    /// See [`Bench`]; the inner error is the backend's.
    pub(in crate::adapt) async fn built(&mut self) -> Result<Option<Ended>, Error> {
        match &mut self.side {
            Side::Live(live, journal) => {
                let ended = live.built().await.transpose()?;
                ended.map(|ended| noted(journal, ended)).transpose()
            }
            Side::Replay(replay) if replay.n_building > 0 => Ok(Some(ended_build(replay)?)),
            Side::Replay(_) => Ok(None),
        }
    }

    /// Returns a build that has ended, if there is one.
    ///
    /// # Errors
    /// As [`Self::built`].
    pub(in crate::adapt) fn ready(&mut self) -> Result<Option<Ended>, Error> {
        match &mut self.side {
            Side::Live(live, journal) => {
                if let Some(ended) = live.ready().transpose()? {
                    return noted(journal, ended).map(Some);
                }
                journal.append(&Entry::Idle)?;
                Ok(None)
            }
            Side::Replay(replay) if matches!(replay.next(), Some(Entry::Built { .. })) => {
                ended_build(replay).map(Some)
            }
            Side::Replay(replay) => replay.take("a look at what is built", |entry| match entry {
                Entry::Idle => Some(None),
                _ => None,
            }),
        }
    }

    /// Returns what an artifact needs of memory and disk; `None` if somebody removed its files.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(in crate::adapt) fn footprint(
        &mut self,
        artifact: &Artifact,
    ) -> Result<Option<Footprint>, Error> {
        match &mut self.side {
            Side::Live(..) => {
                let footprint = footprint(artifact);
                self.note(&Entry::Weighed { footprint })?;
                Ok(footprint)
            }
            Side::Replay(replay) => replay.take("a look at sizes", |entry| match entry {
                Entry::Weighed { footprint } => Some(*footprint),
                _ => None,
            }),
        }
    }

    /// Removes an artifact's files.
    pub(in crate::adapt) fn discard(&mut self, artifact: &Artifact) {
        if let Side::Live(live, _) = &mut self.side {
            live.discard(artifact);
        }
    }

    /// Drops the worker, so that the next request gets a new one.
    pub(in crate::adapt) fn reset(&mut self) {
        if let Side::Live(live, _) = &mut self.side {
            live.reset();
        }
    }

    /// Gives up what is being built; nothing is built any more when this returns.
    pub(in crate::adapt) async fn abandon_builds(&mut self) {
        match &mut self.side {
            Side::Live(live, _) => {
                // What went wrong with it goes wrong again where it matters.
                while let Some(ended) = live.built().await {
                    if let Ok((_, Ok(Ok(artifact)))) = ended {
                        live.discard(&artifact);
                    }
                }
            }
            Side::Replay(replay) => replay.n_building = 0,
        }
    }
}

/// Notes a build that ended.
fn noted(journal: &mut Journal, (build, result): Ended) -> Result<Ended, Error> {
    if let Ok(result) = &result {
        let mut result = result.clone();
        if let Ok(artifact) = &mut result {
            // Where values are is for the worker only, and most of it.
            for step in &mut artifact.steps {
                step.traces.clear();
            }
        }
        journal.append(&Entry::Built { build, result })?;
    }
    Ok((build, result))
}

/// Takes the end of a build from a journal.
fn ended_build(replay: &mut Replay) -> Result<Ended, Error> {
    let (build, result) = replay.take("the end of a build", |entry| match entry {
        Entry::Built { build, result } => Some((*build, result.clone())),
        _ => None,
    })?;
    replay.n_building = replay.n_building.saturating_sub(1);
    Ok((build, Ok(result)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_replay_is_stopped_where_the_run_was_whatever_it_was_told_before() {
        let told = || Entry::Glanced { result: Ok(1.0) };
        let stop = Stop::Cancelled;
        let mut bench = Bench::replay(vec![
            told(),
            told(),
            Entry::Stopped { stop, n_asked: 2 },
            Entry::Idle,
        ]);
        let artifact = Artifact {
            digest: crate::digest::Digest::of_bytes("test", b"default"),
            library: "x.so".into(),
            weights: "x.bin".into(),
            arena_bytes: 0,
            threads: 1,
            fills: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            resolutions: Vec::new(),
            steps: Vec::new(),
            compile_ns: 0,
        };
        let asked = |bench: &mut Bench| bench.stop(|| None).unwrap();
        assert_eq!(asked(&mut bench), None);
        for _ in 0..2 {
            bench.glance(&artifact, 1.0).await.unwrap().unwrap();
            assert_eq!(asked(&mut bench), None);
        }
        assert_eq!(asked(&mut bench), Some(stop));
        assert_eq!(asked(&mut bench), Some(stop));
        assert!(bench.ready().unwrap().is_none());
        let over = bench.glance(&artifact, 1.0).await;
        assert!(matches!(over, Err(Error::JournalEnds { n_entries: 4 })));
    }
}
