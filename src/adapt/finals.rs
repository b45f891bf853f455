//! From parts to a decision: the best compositions measured whole, against the untuned default and
//! what is locked, interleaved.

use super::Error;
use super::bench::Trial;
use super::composer::{self, Composed};
use super::ledger;
use super::search::{Search, p25, wrong_step};
use crate::backend::Artifact;
use crate::event::Event;
use crate::label::{Latency, Outcome, Purpose};
use crate::measure::stats::compare;
use crate::search::{Rival, elect};
use crate::space::Candidate;
use crate::store::Batch;

/// Compositions that are measured whole in a round.
const K: usize = 3;

/// Rounds: each learns from the wholes that it measured.
const ROUNDS: usize = 3;

/// Deployments that take part in the last comparison, the default and the incumbent besides.
const FINALISTS: usize = 3;

/// A deployment that was built and whose numbers are right.
pub(super) struct Finalist {
    /// By subgraph.
    pub(super) candidates: Vec<Candidate>,
    /// Its library.
    pub(super) artifact: Artifact,
    /// Latency of whole runs when it was measured alone, nanoseconds.
    run_ns: f64,
    /// Relative distance of its outputs to the reference.
    pub(super) divergence: f64,
}

/// What was decided.
pub(super) struct Decision {
    /// The choice for each subgraph.
    pub(super) candidates: Vec<Candidate>,
    /// Latency of a run, nanoseconds.
    pub(super) latency_ns: f64,
    /// Latency of the untuned default in the same rounds, nanoseconds.
    pub(super) baseline_ns: f64,
    /// Relative distance of the outputs to the reference.
    pub(super) divergence: f64,
}

/// Measures compositions whole and decides. `locked` is what is locked for this very structure, if
/// anything is.
///
/// # Errors
/// What stops the whole run.
pub(super) async fn decide(
    search: &mut Search<'_>,
    locked: Option<Vec<Candidate>>,
) -> Result<Decision, Error> {
    let defaults = search.job.defaults();
    let mut field: Vec<Finalist> = Vec::new();
    let incumbent = match locked.filter(|locked| *locked != defaults) {
        Some(locked) => enter(search, locked).await?,
        None => None,
    };
    for round in 0..ROUNDS {
        let k = if search.request.cancellation.is_cancelled() {
            1
        } else {
            K
        };
        let composed = composer::best(search.job, &search.session, k);
        let known = |candidates: &Vec<Candidate>| {
            *candidates == defaults
                || field
                    .iter()
                    .chain(&incumbent)
                    .any(|f| f.candidates == *candidates)
        };
        let fresh: Vec<Composed> = composed
            .into_iter()
            .filter(|composed| !known(&composed.candidates))
            .collect();
        if fresh.is_empty() || (round > 0 && search.request.cancellation.is_cancelled()) {
            break;
        }
        for composed in fresh {
            if let Some(finalist) = enter(search, composed.candidates).await? {
                field.push(finalist);
            }
        }
    }
    field.sort_by(|lhs, rhs| lhs.run_ns.total_cmp(&rhs.run_ns));
    field.truncate(FINALISTS);
    let decision = vote(search, incumbent, field).await?;
    Ok(decision)
}

/// Builds a deployment and runs it; `None` if it does not build, crashes, gives wrong numbers, or
/// if the budget is spent.
async fn enter(
    search: &mut Search<'_>,
    candidates: Vec<Candidate>,
) -> Result<Option<Finalist>, Error> {
    let Some(Ok(artifact)) = search.build(std::slice::from_ref(&candidates)).await?.pop() else {
        return Ok(None);
    };
    let is_new = !search.session.evaluated.contains(&artifact.digest);
    let reservation = if is_new {
        match search.session.budget.reserve() {
            Some(reservation) => Some(reservation),
            None => return Ok(None),
        }
    } else {
        None
    };
    let expected = search.baseline.as_ref().map(|baseline| baseline.first_ns);
    let trial: Trial = match search.bench.run(&artifact, expected, None).await {
        Ok(trial) => trial,
        Err(error) => {
            search.bench.reset();
            if let Some(reservation) = reservation {
                search.session.budget.spend(reservation);
                let evaluation =
                    ledger::evaluation(search.job, &artifact, Purpose::Final, Err(&error), 0);
                search
                    .store
                    .record(Batch::of(evaluation, Vec::new()))
                    .await?;
            }
            return Ok(None);
        }
    };
    if let Some(reservation) = reservation {
        search.session.budget.spend(reservation);
        search
            .record(&candidates, &artifact, &trial, Purpose::Final, 1.0)
            .await?;
    }
    if wrong_step(&artifact, &trial).is_some() {
        return Ok(None);
    }
    let divergence = trial.verified.run.relative_l2.unwrap_or(f64::INFINITY);
    if divergence > ledger::TOLERANCE {
        return Ok(None);
    }
    Ok(Some(Finalist {
        candidates,
        run_ns: p25(&trial),
        artifact,
        divergence,
    }))
}

/// Compares the default, the incumbent and the finalists in turn, and elects one.
async fn vote(
    search: &mut Search<'_>,
    incumbent: Option<Finalist>,
    field: Vec<Finalist>,
) -> Result<Decision, Error> {
    let Some(baseline) = &search.baseline else {
        return Err(Error::Panicked);
    };
    let default = baseline.artifact.clone();
    let rivals: Vec<&Finalist> = incumbent.iter().chain(&field).collect();
    let mut artifacts = vec![&default];
    artifacts.extend(rivals.iter().map(|finalist| &finalist.artifact));
    let seed = search.request.search.seed;
    let samples = match search
        .bench
        .compare(&artifacts, baseline.first_ns, seed)
        .await
    {
        Ok(samples) => samples,
        Err(error) => return Err(Error::Worker(error)),
    };
    let latency = |idx: usize| Latency::of(&samples[idx]).map_or(f64::INFINITY, |l| l.p25_ns);
    // The incumbent is what is locked, or else the default; all others challenge it.
    let champion = usize::from(incumbent.is_some());
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
    let elected = elect(&rated, search.request.search.min_gain).map(|idx| challengers[idx]);
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
    let baseline_ns = latency(0);
    let decision = if winner == 0 {
        Decision {
            candidates: search.job.defaults(),
            latency_ns: baseline_ns,
            baseline_ns,
            divergence: default_divergence(search, &default).await?,
        }
    } else {
        let finalist = rivals[winner - 1];
        Decision {
            candidates: finalist.candidates.clone(),
            latency_ns: latency(winner),
            baseline_ns,
            divergence: finalist.divergence,
        }
    };
    confirm(search, artifacts[winner], &decision).await?;
    for finalist in rivals {
        search.bench.discard(&finalist.artifact);
    }
    Ok(decision)
}

/// Records the decision: what comes after it belongs to another adaptation.
async fn confirm(
    search: &Search<'_>,
    artifact: &Artifact,
    decision: &Decision,
) -> Result<(), Error> {
    let trial = Trial::whole(decision.latency_ns);
    let mut evaluation = ledger::evaluation(search.job, artifact, Purpose::Confirm, Ok(&trial), 0);
    evaluation.outcome = Outcome::Ok;
    evaluation.run_p25_ns = Some(decision.latency_ns);
    evaluation.ratio_to_baseline = Some(decision.latency_ns / decision.baseline_ns);
    search
        .store
        .record(Batch::of(evaluation, Vec::new()))
        .await?;
    Ok(())
}

async fn default_divergence(search: &mut Search<'_>, artifact: &Artifact) -> Result<f64, Error> {
    let trial = search.bench.run(artifact, None, None).await?;
    Ok(trial.verified.run.relative_l2.unwrap_or(f64::INFINITY))
}
