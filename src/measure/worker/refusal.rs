//! What a worker answers when it cannot do what was asked.

use crate::label::Outcome;

/// A request that could not be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refusal {
    pub(super) outcome: Outcome,
    pub(super) message: String,
}

impl Refusal {
    /// The candidate is to blame.
    pub(super) fn run_error(message: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::RunError,
            message: message.into(),
        }
    }

    /// There is not enough memory for it.
    pub(super) fn out_of_memory(message: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::OutOfMemory,
            message: message.into(),
        }
    }

    /// Something around it is to blame, so it may be tried again.
    pub(super) fn device_lost(message: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::DeviceLost,
            message: message.into(),
        }
    }
}
