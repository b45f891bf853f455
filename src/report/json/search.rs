//! Messages of a search, and of those of others.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::label::Purpose;
use crate::queue::{JobState, Priority, TrialState};

/// A model is about to be adapted to a target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AdaptStarted<'a> {
    /// Name of the model.
    pub model: &'a str,
    /// Name of the target.
    pub target: &'a str,
    /// Subgraphs in the model.
    pub n_subgraphs: usize,
    /// Distinct tasks among them.
    pub n_tasks: usize,
    /// Tasks whose labels are there already.
    pub n_reused_tasks: usize,
    /// Evaluations that may be spent.
    pub max_evaluations: u32,
}

/// One artifact was run on the device, or failed to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvaluationFinished {
    /// Evaluations spent, this one included.
    pub n_evaluations: u32,
    /// Evaluations that may be spent.
    pub max_evaluations: u32,
    /// Labels that it gave.
    pub n_labels: usize,
    /// Labels among them that are failures.
    pub n_failures: usize,
    /// Latency of the untuned baseline, nanoseconds.
    pub baseline_ns: f64,
    /// Latency that the best candidates known so far add up to, nanoseconds.
    pub best_ns: f64,
    /// What was used of the other budgets.
    #[serde(flatten)]
    pub spent: Spent,
    /// How long the search will still take, finals included, milliseconds; `null` as long as that
    /// cannot be told.
    pub time_left_ms: Option<u64>,
}

/// What a search has used of its budgets beside evaluations; a budget that is not limited is `null`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spent {
    /// Wall time, milliseconds.
    pub elapsed_ms: u64,
    /// Wall time that it may take, finals aside, milliseconds.
    pub max_time_ms: Option<u64>,
    /// Time of compilers, added up, milliseconds.
    pub compile_time_ms: u64,
    /// Time of compilers that it may take, milliseconds.
    pub max_compile_time_ms: Option<u64>,
    /// What the workspace keeps on disk, bytes.
    pub disk_bytes: u64,
    /// What it may keep, bytes.
    pub max_disk_bytes: u64,
}

/// A whole deployment was compared with the incumbent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeploymentCompared {
    /// Latency of the challenger over that of the incumbent.
    pub ratio: f64,
    /// Whether it replaces the incumbent.
    pub accepted: bool,
}

/// Variants of a model were looked at on samples.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantsStudied<'a> {
    /// Name of the model.
    pub model: &'a str,
    /// Subgraphs of the model.
    pub n_subgraphs: usize,
    /// Those of them that have variants.
    pub n_variable: usize,
    /// Samples that they were compared on.
    pub n_samples: usize,
    /// Error of the model with all variants, as a share of the limit; `null` if it is infinite.
    pub error: Option<f64>,
}

/// The fastest whole within the limits was planned.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantsPlanned<'a> {
    /// Name of the model.
    pub model: &'a str,
    /// Name of the target.
    pub target: &'a str,
    /// Subgraphs of the model.
    pub n_subgraphs: usize,
    /// Those of them that are not as the model says.
    pub n_varied: usize,
    /// Latency that it should have, nanoseconds.
    pub predicted_ns: f64,
    /// Latency that nothing within the limits should be below, nanoseconds.
    pub bound_ns: Option<f64>,
    /// Its error on samples, as a share of the limit.
    pub error: f64,
}

/// A variant of the model was searched.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantMeasured {
    /// Subgraphs that are not as the model says.
    pub n_varied: usize,
    /// Latency that was planned, nanoseconds, if it was.
    pub predicted_ns: Option<f64>,
    /// Latency of its fastest run, nanoseconds.
    pub measured_ns: f64,
    /// Latency of the untuned model, nanoseconds.
    pub baseline_ns: f64,
    /// Its error on samples, as a share of the limit; `null` if it is infinite.
    pub error: Option<f64>,
}

/// A deployment was run on samples that nothing was fitted to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AccuracyChecked<'a> {
    /// Name of the model.
    pub model: &'a str,
    /// Name of the target.
    pub target: &'a str,
    /// Samples.
    pub n_samples: usize,
    /// Mean KL divergence from the untuned model, nats; `null` if the model is no classifier.
    pub kl: Option<f64>,
    /// Relative L2 distance from it; `null` if it is infinite.
    pub relative_l2: Option<f64>,
    /// Share of the samples on which both name the same class.
    pub agreement: Option<f64>,
    /// By how much the share of right answers falls; `null` without labels.
    pub top1_drop: Option<f64>,
    /// Standard error of that.
    pub standard_error: Option<f64>,
    /// The limits that it does not keep to, in words; empty if it passes.
    pub missed: &'a str,
}

/// What was locked is no longer in the project, and was removed from the lock.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeploymentRemoved<'a> {
    /// Name of the model.
    pub model: &'a str,
    /// Name of the target.
    pub target: &'a str,
}

/// Another process holds a lock; the run waits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LockAwaited<'a> {
    /// Lock file.
    pub path: &'a str,
    /// Who holds it, if that is known.
    pub holder: Option<&'a str>,
}

/// A model was adapted to a target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AdaptFinished<'a> {
    /// Name of the model.
    pub model: &'a str,
    /// Name of the target.
    pub target: &'a str,
    /// Evaluations spent.
    pub n_evaluations: u32,
    /// Labels reused from earlier runs.
    pub n_reused_labels: usize,
    /// Latency of the untuned baseline, nanoseconds.
    pub baseline_ns: f64,
    /// Latency of the locked deployment, nanoseconds.
    pub latency_ns: f64,
    /// Memory for all values of a run, bytes, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arena_bytes: Option<u64>,
    /// Packed weights, bytes, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_bytes: Option<u64>,
    /// Compiled kernels, bytes, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_bytes: Option<u64>,
    /// Whether the lock changed.
    pub lock_changed: bool,
    /// Whether the run was interrupted and kept the best so far.
    pub interrupted: bool,
    /// Share of the time in which there was something to measure that the device was measuring.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<f64>,
    /// What was used of the other budgets; not there if nothing was searched.
    #[serde(flatten)]
    pub spent: Option<Spent>,
    /// About half way: how long the search was said to take still, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_way_estimated_ms: Option<u64>,
    /// How long it took from there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_way_actual_ms: Option<u64>,
}

/// A trial reached another state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrialMoved {
    /// Its number in the queue.
    pub trial: i64,
    /// Why it is run.
    pub purpose: Purpose,
    /// The state.
    pub state: TrialState,
}

/// What a run is at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Job<'a> {
    /// Its number.
    pub id: i64,
    /// Directory of the workspace.
    pub workspace: &'a str,
    /// Name of the model.
    pub model: &'a str,
    /// Name of the target.
    pub target: &'a str,
    /// Who works on it, or did.
    pub holder: &'a str,
    /// How far it is.
    pub state: JobState,
    /// How much it matters.
    pub priority: Priority,
    /// Whether somebody asked for it to end.
    pub cancelled: bool,
    /// Evaluations that are spent.
    pub n_evaluations: u32,
    /// Evaluations that may be spent.
    pub max_evaluations: u32,
    /// Trials that are not over, by state.
    pub n_trials: BTreeMap<&'static str, u32>,
    /// When it began, milliseconds since the Unix epoch.
    pub started_ms: u64,
    /// What its workspace keeps on disk, bytes.
    pub disk_bytes: u64,
}

/// A candidate took another time than was believed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Surprise {
    /// Index of the subgraph.
    pub subgraph: usize,
    /// Latency that was believed, nanoseconds.
    pub predicted_ns: f64,
    /// Latency that was measured, nanoseconds.
    pub measured_ns: f64,
    /// Latency that was measured once more, nanoseconds, if it ran.
    pub again_ns: Option<f64>,
}

/// A run was gone through again from its journal, with the same decisions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replayed<'a> {
    /// Name of the model.
    pub model: &'a str,
    /// Name of the target.
    pub target: &'a str,
    /// Entries of the journal.
    pub n_entries: usize,
    /// Evaluations that they are of.
    pub n_evaluations: u32,
    /// Whether the run came to a decision.
    pub is_complete: bool,
}
