//! The messages: what all commands say, and what is said of models and locks.

use serde::Serialize;

use super::search::{
    AccuracyChecked, AdaptFinished, AdaptStarted, DeploymentCompared, DeploymentRemoved,
    EvaluationFinished, Job, LockAwaited, Replayed, Surprise, TrialMoved, VariantMeasured,
    VariantsPlanned, VariantsStudied,
};

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
    VariantsStudied(VariantsStudied<'a>),
    VariantsPlanned(VariantsPlanned<'a>),
    VariantMeasured(VariantMeasured),
    AccuracyChecked(AccuracyChecked<'a>),
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
pub(in crate::report) fn line(message: &Message<'_>) -> String {
    // Messages hold no map with keys that are not strings, the one thing that fails.
    let mut line = serde_json::to_string(message).unwrap_or_default();
    line.push('\n');
    line
}
