//! The right to work on a trial, for a while.

use std::time::Duration;

use super::TrialId;

/// How long a lease lasts that nobody renews. Runs renew theirs several times within it.
pub const LEASE: Duration = Duration::from_secs(10);

/// The right to move a trial on. Each time a trial is begun, by whomever, its fence grows: whoever
/// comes with an older one is refused, however late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The trial.
    pub trial: TrialId,
    /// Which of its beginnings this is.
    pub fence: i64,
}

/// Time since the machine was started: the same for all processes, and no setting of the clock
/// moves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uptime {
    /// Which start of which machine.
    pub boot: String,
    /// Milliseconds since then.
    pub ms: i64,
}

impl Uptime {
    /// Returns when a lease ends that is given now, milliseconds.
    pub fn lease_end_ms(&self) -> i64 {
        self.ms.saturating_add(LEASE.as_millis() as i64)
    }

    /// Returns whether a lease holds: one from before the machine was started again does not.
    pub fn is_before(&self, boot: &str, lease_end_ms: i64) -> bool {
        self.boot == boot && self.ms < lease_end_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_ends_with_its_time_and_with_its_machine() {
        let now = |boot: &str, ms| Uptime {
            boot: boot.to_owned(),
            ms,
        };
        let end_ms = now("a", 1000).lease_end_ms();
        assert_eq!(end_ms, 11_000);
        assert!(now("a", 10_999).is_before("a", end_ms));
        assert!(!now("a", 11_000).is_before("a", end_ms));
        assert!(!now("b", 0).is_before("a", end_ms));
        assert_eq!(now("a", i64::MAX).lease_end_ms(), i64::MAX);
    }
}
