//! Whose turn it is on a device.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{JobId, TrialId};
use crate::label::Purpose;

/// How much a job matters to whoever waits for it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Background work: it may take as long as it takes.
    Low,
    /// Somebody ran a command and waits for its end.
    #[default]
    Normal,
    /// Somebody edits a model and wants to see what the change costs.
    High,
}

/// A compiled trial that waits for the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// The job that it belongs to.
    pub job: JobId,
    /// The trial.
    pub trial: TrialId,
    /// How much the job matters.
    pub priority: Priority,
    /// Why it is run.
    pub purpose: Purpose,
    /// Since when it waits, milliseconds of the machine's time.
    pub since_ms: i64,
}

/// Waiting so long counts as much as one rank: nothing waits for ever, and what matters little does
/// not come first more often than once in so many ranks.
const AGEING: Duration = Duration::from_secs(20);

impl Priority {
    /// All priorities, ascending.
    pub const ALL: [Self; 3] = [Self::Low, Self::Normal, Self::High];

    /// Returns the word for it in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }

    /// Returns the priority of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|priority| priority.name() == name)
    }
}

impl Waiting {
    /// Returns milliseconds of waiting that its rank is worth: of its job first, and final
    /// candidates before exploration within it.
    fn rank_ms(&self, now_ms: i64) -> i64 {
        let is_final = self.purpose != Purpose::Screening;
        let rank = 2 * self.priority as i64 + i64::from(is_final);
        let waited = now_ms.saturating_sub(self.since_ms).max(0);
        waited.saturating_add(rank * AGEING.as_millis() as i64)
    }
}

/// Returns the trial whose turn it is; the one that came first among equals.
pub fn first(waiting: &[Waiting], now_ms: i64) -> Option<&Waiting> {
    waiting
        .iter()
        .max_by_key(|w| (w.rank_ms(now_ms), std::cmp::Reverse((w.since_ms, w.trial))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn waiting(trial: i64, priority: Priority, purpose: Purpose, since_ms: i64) -> Waiting {
        Waiting {
            job: JobId(trial),
            trial: TrialId(trial),
            priority,
            purpose,
            since_ms,
        }
    }

    fn first_of(waiting: &[Waiting], now_ms: i64) -> Option<i64> {
        first(waiting, now_ms).map(|waiting| waiting.trial.0)
    }

    #[test]
    fn priority_goes_before_purpose_and_purpose_before_time() {
        use Priority::{High, Low, Normal};
        use Purpose::{Confirm, Final, Screening};
        assert_eq!(first_of(&[], 0), None);
        let queue = [
            waiting(1, Low, Final, 0),
            waiting(2, Normal, Screening, 5),
            waiting(3, Normal, Final, 10),
            waiting(4, High, Screening, 20),
            waiting(5, Normal, Confirm, 30),
        ];
        for (n_served, expected) in [4, 3, 5, 2, 1].into_iter().enumerate() {
            let served = [4, 3, 5, 2, 1];
            let rest: Vec<Waiting> = queue
                .iter()
                .filter(|w| !served[..n_served].contains(&w.trial.0))
                .copied()
                .collect();
            assert_eq!(first_of(&rest, 100), Some(expected));
        }
    }

    #[test]
    fn what_waited_long_enough_goes_before_what_matters_more() {
        let old = waiting(1, Priority::Low, Purpose::Screening, 0);
        let now_ms = 5 * AGEING.as_millis() as i64 + 1;
        let new = waiting(2, Priority::High, Purpose::Final, now_ms);
        assert_eq!(first_of(&[new, old], now_ms - 2), Some(2));
        assert_eq!(first_of(&[new, old], now_ms), Some(1));
    }

    proptest! {
        /// However many trials of higher priority come, each is served within a bounded number of
        /// turns.
        #[test]
        fn nothing_starves(n_rivals in 1usize..6, turn_ms in 100i64..3000) {
            let low = waiting(0, Priority::Low, Purpose::Screening, 0);
            let mut next = 1;
            let mut rivals = Vec::new();
            let mut now_ms = 0;
            let mut n_turns = 0;
            loop {
                while rivals.len() < n_rivals {
                    rivals.push(waiting(next, Priority::High, Purpose::Final, now_ms));
                    next += 1;
                }
                let all: Vec<Waiting> = rivals.iter().copied().chain([low]).collect();
                let Some(served) = first_of(&all, now_ms) else { break };
                if served == 0 {
                    break;
                }
                rivals.retain(|rival| rival.trial.0 != served);
                now_ms += turn_ms;
                n_turns += 1;
                let most = 5 * AGEING.as_millis() as i64 / turn_ms + 2 * n_rivals as i64 + 2;
                prop_assert!(n_turns <= most, "{n_turns} turns, at most {most}");
            }
        }
    }
}
