//! From trials to records: what an artifact did becomes labels and an evaluation.

use std::time::{SystemTime, UNIX_EPOCH};

use super::bench::{Trial, TrialError};
use super::job::{Choices, Job};
use crate::backend::{Artifact, Failure};
use crate::label::{
    Clock, Context, Cost, Evaluation, Label, Latency, Measurement, Outcome, Provenance, Purpose,
    Stage, TaskKey, shorten,
};
use crate::space::Candidate;

/// Largest relative distance of a right result to the reference.
pub(super) const TOLERANCE: f64 = 1e-4;

/// As [`TOLERANCE`], of a whole that rounds to integers on its way: a number that is off by 1e-7 may
/// become another integer, and what follows another number. Each step for itself is held to
/// [`TOLERANCE`].
pub(super) const ROUNDED_TOLERANCE: f64 = 0.1;

/// Samples that a label keeps.
const MAX_SAMPLES: usize = 64;

/// A label and the task it belongs to, an index; `None` for side tasks.
pub(super) type TaskLabel = (Option<usize>, Label);

/// Returns the labels of a trial: one for each subgraph and each conversion.
pub(super) fn labels(
    job: &Job<'_>,
    choices: &Choices,
    artifact: &Artifact,
    trial: &Trial,
) -> Vec<TaskLabel> {
    let Choices {
        candidates,
        options,
    } = choices;
    let mut labels = Vec::new();
    for (subgraph, &task) in job.task_of.iter().enumerate() {
        let steps = steps_of(artifact, subgraph);
        if steps.is_empty() {
            continue;
        }
        let divergence = steps
            .iter()
            .map(|&step| &trial.verified.steps[step])
            .filter(|check| check.compared)
            .map(|check| check.relative_l2.unwrap_or(f64::INFINITY))
            .fold(0.0, f64::max);
        let is_right = divergence <= TOLERANCE;
        let samples = sum_samples(trial, &steps);
        let mut label = base(job, job.task_key(task, options), artifact);
        label.candidate = candidates[subgraph].clone();
        label.content = Some(job.source.subgraphs[subgraph].content);
        label.divergence = divergence.is_finite().then_some(divergence);
        label.cost.measure_ns = trial.measure_ns / artifact.steps.len().max(1) as u64;
        label.outcome = match (is_right, trial.profile.gave_up) {
            (false, _) => Outcome::WrongOutput,
            // The whole was slow; which part of it was shows in the samples all the same.
            (true, _) => Outcome::Ok,
        };
        if is_right {
            label.measurement = Measurement::of(samples, Clock::Tsc, Context::Chain);
        } else {
            label.message = format!("relative distance {divergence:.1e} to the reference");
        }
        labels.push((Some(task), label));
    }
    for (step, spec) in artifact.steps.iter().enumerate() {
        if let (Some(what), None) = (&spec.conversion, is_border_copy(artifact, step)) {
            let mut label = base(job, job.side_key(what, options), artifact);
            label.measurement =
                Measurement::of(sum_samples(trial, &[step]), Clock::Tsc, Context::Chain);
            labels.push((None, label));
        }
    }
    labels
}

/// Returns the latency of a subgraph in a trial, nanoseconds; `None` if it has no steps of its own.
pub(super) fn latency(artifact: &Artifact, trial: &Trial, subgraph: usize) -> Option<f64> {
    let steps = steps_of(artifact, subgraph);
    let samples = (!steps.is_empty()).then(|| sum_samples(trial, &steps))?;
    Latency::of(&samples).map(|latency| latency.p25_ns)
}

/// Returns the label of a candidate that could not be built or run.
pub(super) fn failure(
    job: &Job<'_>,
    subgraph: usize,
    candidate: &Candidate,
    failure: &Failure,
) -> Label {
    let provenance = provenance(job, None);
    Label {
        task: job.tasks[job.task_of[subgraph]].key.clone(),
        candidate: candidate.clone(),
        stage: Stage::Measured,
        outcome: failure.outcome,
        message: shorten(&failure.message).to_owned(),
        measurement: None,
        energy_mj: None,
        divergence: None,
        content: None,
        cost: Cost::default(),
        provenance,
    }
}

/// Returns the evaluation that a trial was, which ended at `time_ms`.
pub(super) fn evaluation(
    job: &Job<'_>,
    artifact: &Artifact,
    purpose: Purpose,
    trial: Result<&Trial, &TrialError>,
    n_labels: usize,
    time_ms: u64,
) -> Evaluation {
    let (outcome, message, run_p25_ns, measure_ns) = match trial {
        Ok(trial) => {
            let latency = Latency::of(&trial.profile.run_ns);
            let outcome = if trial.profile.gave_up {
                Outcome::Abandoned
            } else {
                Outcome::Ok
            };
            (
                outcome,
                String::new(),
                latency.map(|l| l.p25_ns),
                trial.measure_ns,
            )
        }
        Err(error) => (error.outcome, shorten(&error.message).to_owned(), None, 0),
    };
    Evaluation {
        adaptation: job.adaptation(),
        artifact: artifact.digest,
        purpose,
        outcome,
        message,
        run_p25_ns: run_p25_ns.filter(|_| outcome == Outcome::Ok),
        ratio_to_baseline: None,
        n_labels: n_labels as u32,
        cost: Cost {
            compile_ns: artifact.compile_ns,
            measure_ns,
        },
        time_ms,
    }
}

/// Returns the steps that belong to a subgraph, with the copies that only give it a border.
fn steps_of(artifact: &Artifact, subgraph: usize) -> Vec<usize> {
    let all = artifact.steps.iter().enumerate();
    all.filter(|(idx, step)| {
        step.subgraph == Some(subgraph) || is_border_copy(artifact, *idx) == Some(subgraph)
    })
    .map(|(idx, _)| idx)
    .collect()
}

/// Returns the subgraph that a copy within one layout is for: the one that follows it.
fn is_border_copy(artifact: &Artifact, step: usize) -> Option<usize> {
    let what = artifact.steps[step].conversion.as_ref()?;
    let (from, rest) = what.split_once('→')?;
    let (to, _) = rest.split_once(' ')?;
    let following = artifact.steps[step..].iter().find_map(|step| step.subgraph);
    following.filter(|_| from == to)
}

/// Adds up the samples of several steps, sample by sample.
fn sum_samples(trial: &Trial, steps: &[usize]) -> Vec<u64> {
    let n = trial.profile.run_ns.len();
    let every = n.div_ceil(MAX_SAMPLES).max(1);
    (0..n)
        .step_by(every)
        .map(|sample| {
            let each = steps
                .iter()
                .filter_map(|&step| trial.profile.steps_ns[step].get(sample));
            each.sum::<u64>().max(1)
        })
        .collect()
}

fn base(job: &Job<'_>, task: TaskKey, artifact: &Artifact) -> Label {
    Label {
        task,
        candidate: Candidate::default(),
        stage: Stage::Measured,
        outcome: Outcome::Ok,
        message: String::new(),
        measurement: None,
        energy_mj: None,
        divergence: None,
        content: None,
        cost: Cost {
            compile_ns: artifact.compile_ns / artifact.steps.len().max(1) as u64,
            measure_ns: 0,
        },
        provenance: provenance(job, Some(artifact)),
    }
}

fn provenance(job: &Job<'_>, artifact: Option<&Artifact>) -> Provenance {
    Provenance {
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        toolchain: job.backend.toolchain().to_owned(),
        artifact: artifact.map(|artifact| artifact.digest),
        time_ms: now_ms(),
    }
}

/// Returns milliseconds since the Unix epoch; a clock before it counts as the epoch.
pub(super) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_millis() as u64)
}
