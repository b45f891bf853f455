//! Jobs as they are kept.

use serde::{Deserialize, Serialize};

use super::Priority;
use crate::digest::Digest;

/// Number of a job, unique in its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub i64);

/// What a job is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSpec {
    /// Directory of the workspace.
    pub workspace: String,
    /// Name of the model.
    pub model: String,
    /// Name of the target.
    pub target: String,
    /// Key under which its evaluations are counted.
    pub adaptation: Digest,
    /// The device that its trials take turns on.
    pub device: String,
    /// Who works on it, e.g. a command and its process.
    pub holder: String,
    /// How much it matters.
    pub priority: Priority,
    /// Evaluations that it may spend.
    pub max_evaluations: u32,
}

/// What a job has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    /// Evaluations.
    pub n_evaluations: u32,
    /// What its workspace keeps on disk, bytes.
    pub disk_bytes: u64,
}

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// A run works on it.
    Running,
    /// The run is gone without a word; the next one goes on from there.
    Lost,
    /// It is locked.
    Done,
    /// It was stopped, and the best so far is locked.
    Interrupted,
    /// It could not be finished.
    Failed,
}

/// A job as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its number.
    pub id: JobId,
    /// Directory of the workspace.
    pub workspace: String,
    /// Name of the model.
    pub model: String,
    /// Name of the target.
    pub target: String,
    /// Who works on it, or did.
    pub holder: String,
    /// How much it matters.
    pub priority: Priority,
    /// How far it is.
    pub state: JobState,
    /// Whether somebody asked for it to end.
    pub is_cancelled: bool,
    /// Evaluations that it may spend.
    pub max_evaluations: u32,
    /// What it has used.
    pub used: Used,
    /// Trials of it that are not over, by state, in the order of [`TrialState::ALL`].
    ///
    /// [`TrialState::ALL`]: super::TrialState::ALL
    pub n_open: [u32; 4],
    /// When it began, milliseconds since the Unix epoch.
    pub started_ms: u64,
}

impl JobState {
    /// Returns the word for it in files and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Lost => "lost",
            Self::Done => "done",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
        }
    }

    /// Returns the state of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        let all = [
            Self::Running,
            Self::Lost,
            Self::Done,
            Self::Interrupted,
            Self::Failed,
        ];
        all.into_iter().find(|state| state.name() == name)
    }
}
