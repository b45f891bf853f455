//! How busy the device is.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::digest::Digest;

/// What the device and the compilers were used for.
#[derive(Debug)]
pub(super) struct Meter {
    usage: Usage,
    /// What is built and was not run yet, with when it was built.
    waiting: BTreeMap<Digest, Instant>,
    /// Since when the device does nothing.
    free_since: Instant,
}

/// What a run used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::adapt) struct Usage {
    /// Time in which the device was measuring.
    pub(in crate::adapt) busy: Duration,
    /// Time in which something was built and waited for a device that did nothing.
    pub(in crate::adapt) starved: Duration,
    /// Time that builds took, added up.
    pub(in crate::adapt) compiling: Duration,
}

impl Usage {
    /// Returns the share of the time in which there was something to measure that the device was
    /// measuring; `None` if there was nothing.
    pub(in crate::adapt) fn utilisation(&self) -> Option<f64> {
        let wanted = self.busy + self.starved;
        (!wanted.is_zero()).then(|| self.busy.as_secs_f64() / wanted.as_secs_f64())
    }
}

impl Meter {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            usage: Usage::default(),
            waiting: BTreeMap::new(),
            free_since: now,
        }
    }

    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// Takes note of what was built at some time, which took so long.
    pub(super) fn built(&mut self, artifact: Option<Digest>, took: Duration, at: Instant) {
        self.usage.compiling += took;
        if let Some(artifact) = artifact {
            self.waiting.insert(artifact, at);
        }
    }

    /// Takes note that an artifact will not be run.
    pub(super) fn dropped(&mut self, artifact: &Digest) {
        self.waiting.remove(artifact);
    }

    /// Takes note that the device was at work on artifacts from some time to another.
    pub(super) fn measured(&mut self, artifacts: &[Digest], from: Instant, to: Instant) {
        if let Some(&first) = self.waiting.values().min() {
            self.usage.starved += from.saturating_duration_since(first.max(self.free_since));
        }
        self.usage.busy += to.saturating_duration_since(from);
        self.free_since = to;
        for artifact in artifacts {
            self.waiting.remove(artifact);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_starved_while_something_built_waits_for_it_and_it_does_nothing() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let artifact = |n: u8| Digest::of_bytes("test", &[n]);
        let mut meter = Meter::new(start);
        assert_eq!(meter.usage().utilisation(), None);
        meter.built(Some(artifact(1)), Duration::from_millis(100), at(100));
        // Measured at once; the next one is built meanwhile.
        meter.measured(&[artifact(1)], at(100), at(400));
        meter.built(Some(artifact(2)), Duration::from_millis(150), at(250));
        // The device did nothing from 400 on, and something waited since 250.
        meter.measured(&[artifact(2)], at(450), at(850));
        // Nothing waited until 1000.
        meter.built(None, Duration::from_millis(50), at(900));
        meter.built(Some(artifact(3)), Duration::ZERO, at(1000));
        meter.measured(&[artifact(3)], at(1050), at(1150));
        let usage = meter.usage();
        assert_eq!(usage.busy, Duration::from_millis(800));
        assert_eq!(usage.starved, Duration::from_millis(100));
        assert_eq!(usage.compiling, Duration::from_millis(300));
        let utilisation = usage.utilisation().unwrap();
        assert!((utilisation - 800.0 / 900.0).abs() < 1e-9, "{utilisation}");
        meter.built(Some(artifact(4)), Duration::ZERO, at(1200));
        meter.dropped(&artifact(4));
        meter.measured(&[], at(1500), at(1600));
        assert_eq!(meter.usage().starved, Duration::from_millis(100));
    }
}
