//! What becomes of a trial whose attempt ended.

use std::time::Duration;

use crate::label::Outcome;

/// How often a trial is begun at most.
pub const MOST_ATTEMPTS: u32 = 4;

/// Time before the first further attempt; four times as long before each one after it.
const BACK_OFF: Duration = Duration::from_millis(250);

/// What becomes of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is over: what it did is to be recorded, failure or not.
    Over,
    /// It is to be begun again, after some time.
    Again(Duration),
}

/// Judges an attempt, the `n_attempts`th one. Only what the candidate is not to blame for is tried
/// again, and not for ever.
pub fn verdict(outcome: Outcome, n_attempts: u32) -> Verdict {
    if outcome.is_final() || n_attempts >= MOST_ATTEMPTS {
        return Verdict::Over;
    }
    Verdict::Again(BACK_OFF * 4u32.pow(n_attempts.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lost_device_is_tried_again_later_and_later_and_not_for_ever() {
        for outcome in [
            Outcome::Ok,
            Outcome::CompileError,
            Outcome::RunTimeout,
            Outcome::WrongOutput,
            Outcome::OutOfMemory,
        ] {
            assert_eq!(verdict(outcome, 1), Verdict::Over);
        }
        let waits: Vec<Verdict> = (1..=4).map(|n| verdict(Outcome::DeviceLost, n)).collect();
        let again = |ms| Verdict::Again(Duration::from_millis(ms));
        assert_eq!(waits, [again(250), again(1000), again(4000), Verdict::Over]);
    }
}
