//! Messages for machines: one object per line, first key `reason`.
//!
//! The first line is `started` with the version of this format, the last one `finished`. Fields
//! are added, never repurposed; units are part of the name. Where a field is a figure that is not
//! a number, it is `null`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::label::Purpose;
use crate::queue::{JobState, Priority, TrialState};

/// Version of the messages; goes up when a field is removed or changes its meaning.
pub const FORMAT_VERSION: u32 = 1;

/// A message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant is documented by its struct")]
pub enum Message<'a> {
    Started(Started<'a>),
    Diagnostic(Diagnostic<'a>),
    Created(Created<'a>),
    Target(Target<'a>),
    Model(Model<'a>),
    Subgraph(Subgraph<'a>),
    Check(Check<'a>),
    DeploymentDiff(DeploymentDiff<'a>),
    AdaptStarted(AdaptStarted<'a>),
    EvaluationFinished(EvaluationFinished),
    TrialMoved(TrialMoved),
    Surprise(Surprise),
    DeploymentCompared(DeploymentCompared),
    DeploymentRemoved(DeploymentRemoved<'a>),
    LockAwaited(LockAwaited<'a>),
    Replayed(Replayed<'a>),
    Job(Job<'a>),
    AdaptFinished(AdaptFinished<'a>),
    Deployed(Deployed<'a>),
    Finished(Finished),
}

/// A command starts; always the first line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Started<'a> {
    /// Version of the messages.
    pub format_version: u32,
    /// Version of the tool.
    pub version: &'a str,
    /// Name of the command.
    pub command: &'a str,
}

/// A command ended; always the last line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finished {
    /// Whether the exit code is 0.
    pub success: bool,
    /// Exit code of the process.
    pub exit_code: u8,
}

/// Something to know: a warning or an error.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnostic<'a> {
    /// `warning` or `error`.
    pub level: &'a str,
    /// Stable code, if it has one.
    pub code: Option<&'a str>,
    /// What is wrong.
    pub message: String,
    /// Causes, outermost first.
    pub causes: &'a [String],
    /// What to try next.
    pub help: &'a [String],
    /// Where, if it is in a file.
    pub place: Option<Place>,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Place {
    /// Path.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// A file was written, or would be.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Created<'a> {
    /// Path.
    pub path: &'a str,
    /// Whether nothing was written because of `--dry-run`.
    pub dry_run: bool,
    /// Content.
    pub content: &'a str,
}

/// A target: configured, or available as a shipped profile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Target<'a> {
    /// Name of the target; `null` for a profile that is only available.
    pub name: Option<&'a str>,
    /// Name of the backend; `null` for a profile that is only available.
    pub backend: Option<&'a str>,
    /// Profile as the configuration names it.
    pub profile: &'a str,
    /// Instruction set.
    pub isa: &'a str,
    /// Processor; empty if any will do.
    pub processor: &'a str,
    /// Threads that a model may use.
    pub threads: Option<u32>,
    /// Fingerprint of the device.
    pub fingerprint: String,
    /// Why it cannot be used on this machine; `null` if it can.
    pub obstacle: Option<String>,
}

/// A model and what it consists of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Model<'a> {
    /// Name of the model.
    pub name: &'a str,
    /// ONNX file.
    pub path: &'a str,
    /// Structure digest.
    pub structure: String,
    /// Content digest: structure and weights.
    pub content: String,
    /// Subgraphs.
    pub n_subgraphs: usize,
    /// Distinct ones: what is tuned.
    pub n_tasks: usize,
    /// Floating point operations of one run.
    pub flops: u64,
}

/// A distinct subgraph of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Subgraph<'a> {
    /// Name of the model.
    pub model: &'a str,
    /// Position of its first occurrence in the model.
    pub idx: usize,
    /// What it is.
    pub op: &'a str,
    /// Shapes of its outputs.
    pub outputs: &'a [Vec<usize>],
    /// Floating point operations of one run of it.
    pub flops: u64,
    /// How often the model has it.
    pub count: usize,
    /// Structure digest.
    pub structure: String,
}

/// Whether a deployment is locked and up to date.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check<'a> {
    /// Name of the model.
    pub model: &'a str,
    /// Name of the target.
    pub target: &'a str,
    /// Whether an adaptation is due.
    pub is_stale: bool,
    /// What differs.
    pub findings: Vec<Finding>,
}

/// One way in which lock and project differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Stable code, e.g. `structure-changed`.
    pub code: &'static str,
    /// What differs, for people.
    pub message: String,
}

/// A deployment that differs between two lockfiles.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeploymentDiff<'a> {
    /// Name of the model.
    pub model: &'a str,
    /// Name of the target.
    pub target: &'a str,
    /// `added`, `removed` or `changed`.
    pub change: &'a str,
    /// Fields that differ.
    pub fields: Vec<FieldDiff>,
    /// Subgraphs that differ.
    pub subgraphs: Vec<SubgraphDiff<'a>>,
}

/// A field that differs; `null` where a side does not have it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldDiff {
    /// Key as in the lockfile.
    pub key: String,
    /// Old value.
    pub old: Option<serde_json::Value>,
    /// New value.
    pub new: Option<serde_json::Value>,
}

/// A subgraph that differs; an index is `null` where a side does not have it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SubgraphDiff<'a> {
    /// What it is.
    pub op: &'a str,
    /// Position in the old deployment.
    pub old_idx: Option<usize>,
    /// Position in the new deployment.
    pub new_idx: Option<usize>,
    /// Choices that differ.
    pub fields: Vec<FieldDiff>,
}

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

/// A model was written as a crate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Deployed<'a> {
    /// Name of the model.
    pub model: &'a str,
    /// Name of the target.
    pub target: &'a str,
    /// Whether the choices come from the lock.
    pub tuned: bool,
    /// Name of the package.
    pub package: &'a str,
    /// Its manifest.
    pub manifest_path: String,
    /// Files that were new or had another content before.
    pub n_changed: usize,
}

/// Renders a message as one line.
pub(super) fn line(message: &Message<'_>) -> String {
    // Messages hold no map with keys that are not strings, the one thing that fails.
    let mut line = serde_json::to_string(message).unwrap_or_default();
    line.push('\n');
    line
}
