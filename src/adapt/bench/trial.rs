//! What an artifact did on the device, or how it failed to.

use serde::{Deserialize, Serialize};

use crate::label::Outcome;
use crate::measure::WorkerError;
use crate::measure::protocol::{Profile, StepCheck, Verified};

/// What an artifact did on the device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::adapt) struct Trial {
    /// How its numbers compare with the reference.
    pub(in crate::adapt) verified: Verified,
    /// How long it took.
    pub(in crate::adapt) profile: Profile,
    /// Wall time of the trial.
    pub(in crate::adapt) measure_ns: u64,
}

/// How a trial ended instead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct TrialError {
    /// How.
    pub outcome: Outcome,
    /// What the worker, or whoever waited for it, says.
    pub message: String,
    /// Whether the worker is gone.
    pub is_fatal: bool,
}

impl Trial {
    /// Adds the samples of another trial of the same artifact.
    pub(in crate::adapt) fn with(mut self, other: Self) -> Self {
        self.profile.run_ns.extend(other.profile.run_ns);
        let steps = self.profile.steps_ns.iter_mut();
        for (samples, more) in steps.zip(other.profile.steps_ns) {
            samples.extend(more);
        }
        self.measure_ns += other.measure_ns;
        self
    }

    /// Stands for whole runs that took so long and were checked before.
    pub(in crate::adapt) fn whole(run_ns: f64) -> Self {
        let unchecked = StepCheck {
            relative_l2: None,
            compared: false,
        };
        Self {
            verified: Verified {
                steps: Vec::new(),
                run: unchecked,
            },
            profile: Profile {
                run_ns: vec![run_ns as u64],
                steps_ns: Vec::new(),
                gave_up: false,
            },
            measure_ns: 0,
        }
    }
}

impl From<WorkerError> for TrialError {
    fn from(error: WorkerError) -> Self {
        Self {
            outcome: error.outcome(),
            message: error.message(),
            is_fatal: error.is_fatal(),
        }
    }
}
