//! The last comparison: the untuned default, what is locked and the finalists in turn. One of them
//! is elected.

use super::Error;
use super::bench::Trial;
use super::finals::{Finalist, divergence};
use super::job::{Choices, Job};
use super::ledger;
use super::search::{Baseline, Search};
use crate::backend::Artifact;
use crate::event::Event;
use crate::label::{Evaluation, Latency, Outcome, Purpose};
use crate::lock::Footprint;
use crate::measure::stats::compare;
use crate::queue::TrialState;
use crate::search::{Incumbent, Rival, elect};

/// Who is challenged by all others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Title {
    /// The untuned default, as nothing is locked.
    Untuned,
    /// The untuned default, as it is what is locked.
    LockedDefault,
    /// The first finalist, as it is what is locked.
    Locked,
}

/// What was decided.
pub(super) struct Decision {
    /// What is to be locked.
    pub(super) choices: Choices,
    /// Whether that is what all was compared with.
    pub(super) is_baseline: bool,
    /// Latency of a run, nanoseconds.
    pub(super) latency_ns: f64,
    /// Latency of the untuned default in the same rounds, nanoseconds.
    pub(super) baseline_ns: f64,
    /// Relative distance of the outputs to the reference.
    pub(super) divergence: f64,
    /// What it needs of memory and disk.
    pub(super) footprint: Option<Footprint>,
    /// Says that it was made: what comes after it belongs to another adaptation. To be recorded
    /// once the decision is locked.
    pub(super) confirmation: Evaluation,
}

/// Compares the default and the finalists in turn, and elects one.
pub(super) async fn vote(
    search: &mut Search<'_>,
    title: Title,
    field: Vec<Finalist>,
) -> Result<Decision, Error> {
    let Some(Baseline { artifact, first_ns }) = &search.baseline else {
        return Err(Error::Panicked);
    };
    let (default, first_ns) = (artifact.clone(), *first_ns);
    let seed = search.request.search.seed;
    let (ticket, turn) = search.confirm().await?;
    let mut rivals: Vec<&Finalist> = field.iter().collect();
    let mut is_repeated = false;
    let (artifacts, samples) = loop {
        let mut artifacts = vec![&default];
        artifacts.extend(rivals.iter().map(|finalist| &finalist.artifact));
        match search.bench.compare(&artifacts, first_ns, seed).await? {
            Ok(samples) => break (artifacts, samples),
            // Nobody is to blame for a worker that somebody ended.
            Err(error) if !error.outcome.is_final() && !is_repeated => {
                search.bench.reset();
                is_repeated = true;
            }
            // One of them must be to blame, though each of them ran before: the last one goes.
            Err(error) => {
                search.bench.reset();
                if rivals.pop().is_none() {
                    return Err(Error::Device(error));
                }
            }
        }
    };
    let latency = |idx: usize| Latency::of(&samples[idx]).map_or(f64::INFINITY, |l| l.p25_ns);
    let min_gain = search.request.search.min_gain;
    let (champion, incumbent) = match title {
        Title::Locked if !rivals.is_empty() => (1, Incumbent::Locked { min_gain }),
        Title::LockedDefault => (0, Incumbent::Locked { min_gain }),
        Title::Locked | Title::Untuned => (0, Incumbent::Untuned),
    };
    let challengers: Vec<usize> = (0..samples.len()).filter(|&idx| idx != champion).collect();
    let rated: Vec<Rival> = challengers
        .iter()
        .map(
            |&idx| match compare(&samples[champion], &samples[idx], seed) {
                Some(comparison) => Rival {
                    ratio: comparison.ratio,
                    upper: comparison.interval.1,
                },
                None => Rival {
                    ratio: f64::INFINITY,
                    upper: f64::INFINITY,
                },
            },
        )
        .collect();
    let elected = elect(&rated, incumbent).map(|idx| challengers[idx]);
    let winner = elected.unwrap_or(champion);
    for (rival, &idx) in rated.iter().zip(&challengers) {
        if idx != 0 {
            let accepted = elected == Some(idx);
            search.reporter.report(&Event::DeploymentCompared {
                ratio: rival.ratio,
                accepted,
            });
        }
    }
    let (baseline_ns, latency_ns) = (latency(0), latency(winner));
    let (choices, divergence) = if winner == 0 {
        let divergence = default_divergence(search, &default).await?;
        (search.job.choices(search.job.defaults()), divergence)
    } else {
        let finalist = rivals[winner - 1];
        (finalist.choices.clone(), finalist.divergence)
    };
    let time_ms = search.session.stamp(ledger::now_ms());
    drop(turn);
    search.trials.advance(ticket, TrialState::Recorded).await?;
    let footprint = search.bench.footprint(artifacts[winner])?;
    let confirmation = confirmation(search.job, artifacts[winner], latency_ns, time_ms);
    for artifact in artifacts {
        search.bench.discard(artifact);
    }
    Ok(Decision {
        choices,
        is_baseline: winner == 0,
        latency_ns,
        baseline_ns,
        divergence,
        footprint,
        confirmation: Evaluation {
            ratio_to_baseline: Some(latency_ns / baseline_ns),
            ..confirmation
        },
    })
}

fn confirmation(job: &Job<'_>, artifact: &Artifact, latency_ns: f64, time_ms: u64) -> Evaluation {
    let trial = Trial::whole(latency_ns);
    Evaluation {
        outcome: Outcome::Ok,
        run_p25_ns: Some(latency_ns),
        ..ledger::evaluation(job, artifact, Purpose::Confirm, Ok(&trial), 0, time_ms)
    }
}

async fn default_divergence(search: &mut Search<'_>, artifact: &Artifact) -> Result<f64, Error> {
    let trial = search.bench.run(artifact, None, None).await??;
    Ok(divergence(&trial))
}
