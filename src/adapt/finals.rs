//! From parts to a decision: the best compositions measured whole, against the untuned default and
//! what is locked, interleaved. What is chosen for a deployment as a whole, such as its
//! optimisation level, is chosen here: the best one is also built under all other options, and then
//! refined: for fewer threads than the target has, or to run some of its parts row by row.

use tracing::Instrument as _;

use super::Error;
use super::bench::Trial;
use super::composer;
use super::job::Choices;
use super::search::{Search, p25, wrong_step};
use super::trials::trial_span;
use super::vote::{Decision, Title, vote};
use crate::backend::Artifact;
use crate::label::Purpose;

/// Compositions that are measured whole in a round.
const K: usize = 3;

/// Rounds: each learns from the wholes that it measured.
const ROUNDS: usize = 3;

/// Compositions that take part in the last comparison, the default, what is locked and the best of
/// them under other options besides.
const FINALISTS: usize = 3;

/// How often the fastest is refined.
const REFINEMENTS: usize = 3;

/// A deployment that was built and whose numbers are right.
pub(super) struct Finalist {
    /// What it is built of.
    pub(super) choices: Choices,
    /// Its library.
    pub(super) artifact: Artifact,
    /// Latency of whole runs when it was measured alone, nanoseconds.
    run_ns: f64,
    /// Relative distance of its outputs to the reference.
    pub(super) divergence: f64,
}

/// A choice for every subgraph that comes from the lockfile.
pub(super) struct Known {
    /// What the lockfile has.
    pub(super) choices: Choices,
    /// Whether it is locked for this very deployment, and not put together from those of others.
    pub(super) is_locked: bool,
}

/// Measures compositions whole and decides. `known` is what the lockfile has for all subgraphs, if
/// it does.
///
/// # Errors
/// What stops the whole run.
pub(super) async fn decide(
    search: &mut Search<'_>,
    known: Option<Known>,
) -> Result<Decision, Error> {
    let defaults = search.job.choices(search.job.defaults());
    let n_others = search.job.backend.options().len().saturating_sub(1) as u32;
    let mut field: Vec<Finalist> = Vec::new();
    let is_locked = known.as_ref().is_some_and(|known| known.is_locked);
    let rivals_default = search.rivals_default;
    let is_baseline = |choices: &Choices| !rivals_default && *choices == defaults;
    let is_default = known.as_ref().is_some_and(|k| is_baseline(&k.choices));
    let earlier = match known.filter(|_| !is_default) {
        Some(known) => enter(search, known.choices, Spend::Anyway).await?,
        None => None,
    };
    let mut tried: Vec<Choices> = Vec::new();
    if rivals_default {
        // It was measured when the search began, and so it takes no evaluation.
        field.extend(enter(search, defaults.clone(), Spend::Anyway).await?);
    }
    for round in 0..ROUNDS {
        let k = if search.is_cancelled()? { 1 } else { K };
        let composed = composer::best(search.job, &search.session, k);
        let known = |choices: &Choices| {
            let mut known = field.iter().chain(&earlier).map(|f| &f.choices);
            is_baseline(choices) || tried.contains(choices) || known.any(|k| k == choices)
        };
        let fresh: Vec<Choices> = composed
            .into_iter()
            .map(|composed| search.job.choices(composed.candidates))
            .filter(|choices| !known(choices))
            .collect();
        if fresh.is_empty() || (round > 0 && search.is_cancelled()?) {
            break;
        }
        tried.extend_from_slice(&fresh);
        for choices in fresh {
            let kept = if field.is_empty() { 0 } else { n_others };
            let kept = kept + search.kept_for_threads();
            if let Some(finalist) = enter(search, choices, Spend::Keeping(kept)).await? {
                field.push(finalist);
            }
        }
    }
    field.sort_by(|lhs, rhs| lhs.run_ns.total_cmp(&rhs.run_ns));
    for loser in field.drain(FINALISTS.min(field.len())..) {
        search.bench.discard(&loser.artifact);
    }
    let best = field.first().into_iter().chain(&earlier);
    let best = best.min_by(|lhs, rhs| lhs.run_ns.total_cmp(&rhs.run_ns));
    let best = best.map_or(&defaults, |best| &best.choices).clone();
    let spend = Spend::Keeping(search.kept_for_threads());
    for choices in under_all_options(search, &best)? {
        let mut known = field.iter().chain(&earlier).map(|f| &f.choices);
        if !is_baseline(&choices)
            && known.all(|known| *known != choices)
            && let Some(finalist) = enter(search, choices, spend).await?
        {
            field.push(finalist);
        }
    }
    refine(search, &mut field, &defaults).await?;
    let title = match (is_locked, is_default) {
        (true, true) => Title::LockedDefault,
        (true, false) if earlier.is_some() => Title::Locked,
        _ => Title::Untuned,
    };
    vote(search, title, earlier.into_iter().chain(field).collect()).await
}

/// Tries other ways to run the fastest finalist as a whole, and refines the best of them once
/// more. Those that are no faster leave.
async fn refine(
    search: &mut Search<'_>,
    field: &mut Vec<Finalist>,
    defaults: &Choices,
) -> Result<(), Error> {
    for _ in 0..REFINEMENTS {
        let by_speed = |lhs: &&Finalist, rhs: &&Finalist| lhs.run_ns.total_cmp(&rhs.run_ns);
        let best = field.iter().min_by(by_speed);
        let (best, mut best_ns) = best.map_or((defaults, f64::INFINITY), |best| {
            (&best.choices, best.run_ns)
        });
        let best = best.clone();
        if search.is_cancelled()? {
            break;
        }
        let mut gained = false;
        for options in search
            .job
            .prepared
            .refinements(&best.candidates, &best.options)
        {
            let choices = Choices {
                options,
                ..best.clone()
            };
            if field.iter().any(|known| known.choices == choices) {
                continue;
            }
            let Some(finalist) = enter(search, choices, Spend::Keeping(0)).await? else {
                continue;
            };
            if finalist.run_ns < best_ns {
                (gained, best_ns) = (true, finalist.run_ns);
                field.push(finalist);
            } else {
                search.bench.discard(&finalist.artifact);
            }
        }
        if !gained {
            break;
        }
    }
    Ok(())
}

/// Returns the candidates of a deployment under each of the backend's options; none if the run
/// is to end.
///
/// # Errors
/// If the journal cannot be written.
fn under_all_options(search: &mut Search<'_>, best: &Choices) -> Result<Vec<Choices>, Error> {
    if search.is_cancelled()? {
        return Ok(Vec::new());
    }
    let options = search.job.backend.options().iter();
    let under = options.map(|options| Choices {
        options: options.clone(),
        ..best.clone()
    });
    Ok(under.collect())
}

/// Whether running a deployment may take an evaluation that no earlier run spent.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Spend {
    /// If there are more left than these.
    Keeping(u32),
    /// It runs even if none is left: what is locked and the default are compared in any case.
    Anyway,
}

/// Builds a deployment and runs it; `None` if it does not build, crashes, gives wrong numbers, or
/// if there is no evaluation for it.
async fn enter(
    search: &mut Search<'_>,
    choices: Choices,
    spend: Spend,
) -> Result<Option<Finalist>, Error> {
    let (ticket, Ok(artifact)) = search.build(&choices, Purpose::Final).await? else {
        return Ok(None);
    };
    let is_new = !search.session.evaluated.contains(&artifact.digest);
    let n_left = search.session.budget.n_left();
    let may_spend = match spend {
        Spend::Keeping(n_kept) => n_left > n_kept,
        Spend::Anyway => true,
    };
    let reservation = (is_new && may_spend).then(|| search.session.budget.reserve());
    let reservation = reservation.flatten();
    if is_new && reservation.is_none() && spend != Spend::Anyway {
        search.bench.discard(&artifact);
        search.trials.drop(ticket).await?;
        return Ok(None);
    }
    let turn = search.trials.patient_turn(ticket).await?;
    let expected = search.baseline.as_ref().map(|baseline| baseline.first_ns);
    let span = trial_span(&artifact, Purpose::Final);
    let trial = search.bench.run(&artifact, expected, None);
    let trial = trial.instrument(span).await?;
    drop(turn);
    if let Some(reservation) = reservation {
        search.session.budget.spend(reservation);
        search.session.evaluated.insert(artifact.digest);
        match &trial {
            Ok(trial) => {
                let purpose = Purpose::Final;
                search
                    .record(ticket, &choices, &artifact, trial, purpose, 1.0)
                    .await?;
            }
            Err(error) => {
                search
                    .record_failure(ticket, &artifact, error, Purpose::Final, Vec::new())
                    .await?;
            }
        }
    } else {
        search.trials.drop(ticket).await?;
    }
    if trial.is_err() {
        search.bench.reset();
    }
    let tolerance = search.job.source.tolerance();
    let right = trial
        .ok()
        .filter(|trial| is_right(&artifact, trial, tolerance));
    let Some(trial) = right else {
        search.bench.discard(&artifact);
        return Ok(None);
    };
    Ok(Some(Finalist {
        choices,
        run_ns: p25(&trial),
        artifact,
        divergence: divergence(&trial),
    }))
}

/// Returns the relative distance of the outputs to the reference.
pub(super) fn divergence(trial: &Trial) -> f64 {
    trial.verified.run.relative_l2.unwrap_or(f64::INFINITY)
}

/// Returns whether the numbers of each step, and those of the whole within `tolerance`, are those of
/// the reference.
pub(super) fn is_right(artifact: &Artifact, trial: &Trial, tolerance: f64) -> bool {
    wrong_step(artifact, trial).is_none() && divergence(trial) <= tolerance
}
