//! The states of a trial.

use serde::{Deserialize, Serialize};

/// Number of a trial, unique in its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TrialId(pub i64);

/// How far a trial is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialState {
    /// Proposed.
    Queued,
    /// A compiler is at work.
    Compiling,
    /// There is an artifact, which waits for the device.
    Compiled,
    /// It has the device.
    Measuring,
    /// What it did is in the store.
    Recorded,
    /// How it failed is in the store.
    Failed,
    /// Nobody wants it any more, or whoever had it is gone.
    Dropped,
}

impl TrialState {
    /// All states, in the order in which they are reached.
    pub const ALL: [Self; 7] = [
        Self::Queued,
        Self::Compiling,
        Self::Compiled,
        Self::Measuring,
        Self::Recorded,
        Self::Failed,
        Self::Dropped,
    ];

    /// Returns the word for it in files and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Compiling => "compiling",
            Self::Compiled => "compiled",
            Self::Measuring => "measuring",
            Self::Recorded => "recorded",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
        }
    }

    /// Returns the state of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Returns whether nothing follows, unless the trial is begun again.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Recorded | Self::Failed | Self::Dropped)
    }

    /// Returns whether one state may follow another: forward one at a time, to an end from
    /// anywhere, and back to the start if an attempt came to nothing.
    pub fn may_become(self, next: Self) -> bool {
        match (self, next) {
            (Self::Queued, Self::Compiling)
            | (Self::Compiling, Self::Compiled)
            | (Self::Compiled, Self::Measuring)
            | (Self::Measuring, Self::Recorded) => true,
            (from, Self::Failed | Self::Dropped | Self::Queued) => !from.is_over(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_and_read_back() {
        for state in TrialState::ALL {
            assert_eq!(TrialState::of_name(state.name()), Some(state));
        }
        assert_eq!(TrialState::of_name("lost"), None);
    }

    #[test]
    fn a_trial_goes_forward_step_by_step_and_ends_once() {
        for (before, after) in [
            (TrialState::Queued, TrialState::Compiled),
            (TrialState::Queued, TrialState::Measuring),
            (TrialState::Compiling, TrialState::Measuring),
            (TrialState::Compiled, TrialState::Recorded),
            (TrialState::Recorded, TrialState::Failed),
            (TrialState::Failed, TrialState::Queued),
            (TrialState::Dropped, TrialState::Recorded),
        ] {
            assert!(!before.may_become(after), "{before:?} to {after:?}");
        }
        for [before, after] in [
            [TrialState::Queued, TrialState::Compiling],
            [TrialState::Compiling, TrialState::Compiled],
            [TrialState::Compiled, TrialState::Measuring],
            [TrialState::Measuring, TrialState::Recorded],
            [TrialState::Measuring, TrialState::Queued],
            [TrialState::Compiling, TrialState::Failed],
            [TrialState::Queued, TrialState::Dropped],
        ] {
            assert!(before.may_become(after), "{before:?} to {after:?}");
        }
    }
}
