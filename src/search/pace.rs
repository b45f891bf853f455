//! How long a search will still take, from how long its evaluations took.

use std::time::Duration;

/// Intervals between evaluations that the pace is measured by: the latest ones.
const WINDOW: usize = 15;

/// Intervals that are needed to say anything.
const FEWEST: usize = 3;

/// Share of the time for evaluations that finals take on top, to compare the best.
const FINALS: f64 = 0.1;

/// The pace of one search. All times are since it began.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pace {
    /// When evaluations ended.
    ends: Vec<Duration>,
    /// What was estimated when, and how much was left by it.
    estimates: Vec<(Duration, Duration)>,
}

/// What is left of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Left {
    /// Evaluations.
    pub n_evaluations: u32,
    /// Time in which they must end, if it is limited.
    pub time: Option<Duration>,
}

/// How good an estimate was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HalfWay {
    /// What was said to be left about half way.
    pub estimated: Duration,
    /// What was left.
    pub actual: Duration,
}

impl Pace {
    /// Takes note that an evaluation ended; returns how long the search will still take, finals
    /// included. `None` as long as too little is known.
    pub fn evaluated(&mut self, at: Duration, left: Left) -> Option<Duration> {
        self.ends.push(at);
        let estimate = self.estimate(at, left)?;
        self.estimates.push((at, estimate));
        Some(estimate)
    }

    fn estimate(&self, at: Duration, left: Left) -> Option<Duration> {
        let latest = &self.ends[self.ends.len().saturating_sub(WINDOW + 1)..];
        let intervals = latest
            .windows(2)
            .map(|ends| ends[1].saturating_sub(ends[0]));
        let mut intervals: Vec<Duration> = intervals.collect();
        if intervals.len() < FEWEST {
            return None;
        }
        intervals.sort_unstable();
        let pace = intervals[intervals.len() / 2];
        let evaluations = pace.saturating_mul(left.n_evaluations);
        let evaluations = left.time.map_or(evaluations, |time| evaluations.min(time));
        let finals = at.saturating_add(evaluations).as_secs_f64() * FINALS;
        let finals = Duration::try_from_secs_f64(finals).unwrap_or(Duration::MAX);
        Some(evaluations.saturating_add(finals))
    }

    /// Returns how good the estimate was that was made nearest to the middle of a search that ended
    /// at some time; `None` if none was made.
    pub fn half_way(&self, end: Duration) -> Option<HalfWay> {
        let distance = |at: Duration| at.abs_diff(end / 2);
        let nearest = self.estimates.iter().min_by_key(|&&(at, _)| distance(at));
        nearest.map(|&(at, estimated)| HalfWay {
            estimated,
            actual: end.saturating_sub(at),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn left(n_evaluations: u32) -> Left {
        Left {
            n_evaluations,
            time: None,
        }
    }

    #[test]
    fn half_way_the_estimate_is_near_the_truth() {
        let mut pace = Pace::default();
        // Two seconds each, but for one in ten that takes 20, and finals of 20.
        let mut at = Duration::ZERO;
        for n in 1..=100 {
            at += SECOND * if n % 10 == 0 { 20 } else { 2 };
            let said = pace.evaluated(at, left(100 - n));
            assert_eq!(said.is_some(), n > 3, "{n}");
        }
        let half_way = pace.half_way(at + SECOND * 20).unwrap();
        let ratio = half_way.estimated.as_secs_f64() / half_way.actual.as_secs_f64();
        assert!((0.5..1.5).contains(&ratio), "{half_way:?}");
    }

    #[test]
    fn a_pause_does_not_change_the_estimate() {
        let mut pace = Pace::default();
        let mut at = Duration::ZERO;
        for _ in 0..10 {
            at += SECOND;
            pace.evaluated(at, left(50));
        }
        let before = pace.evaluated(at + SECOND, left(50)).unwrap();
        let after = pace.evaluated(at + SECOND * 100, left(50)).unwrap();
        assert!(after < before + SECOND * 11, "{before:?} {after:?}");
    }

    #[test]
    fn nothing_is_said_before_there_is_data_or_without_any() {
        let mut pace = Pace::default();
        for n in 1..=3 {
            assert_eq!(pace.evaluated(SECOND * n, left(9)), None);
        }
        assert_eq!(pace.half_way(SECOND * 4), None);
        let said = pace.evaluated(SECOND * 4, left(8)).unwrap();
        assert_eq!(said, Duration::from_millis(9200));
        let half_way = pace.half_way(SECOND * 14).unwrap();
        assert_eq!(half_way.actual, SECOND * 10);
    }

    proptest! {
        /// Whatever the clock does, an estimate says no more than the limit and the finals allow.
        #[test]
        fn an_estimate_is_bounded_by_the_time_that_is_left(
            steps in prop::collection::vec((0u64..1 << 40, any::<u32>()), 0..40), time in 0u64..1 << 40,
        ) {
            let mut pace = Pace::default();
            let time = Duration::from_millis(time);
            for (n, &(at, n_evaluations)) in steps.iter().enumerate() {
                let at = Duration::from_millis(at);
                let said = pace.evaluated(at, Left { n_evaluations, time: Some(time) });
                prop_assert_eq!(said.is_some(), n >= FEWEST);
                let most = time + (at + time).mul_f64(FINALS) + SECOND;
                prop_assert!(said.is_none_or(|said| said <= most));
            }
        }
    }
}
