//! Decisions that do not depend on what is searched.

/// A candidate slower than the best by this factor is given up.
pub const GIVE_UP_FACTOR: f64 = 3.0;

/// Gain that a challenger must show before it replaces what is locked.
pub const DEFAULT_MIN_GAIN: f64 = 0.03;

/// How a deployment compares with the incumbent, from interleaved runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rival {
    /// Its latency over that of the incumbent; below 1 is faster.
    pub ratio: f64,
    /// Upper end of the 95 % interval of `ratio`.
    pub upper: f64,
}

/// Returns the latency from which on a candidate is given up, nanoseconds.
pub fn give_up_ns(best_ns: f64) -> u64 {
    (best_ns * GIVE_UP_FACTOR).ceil() as u64
}

/// Chooses among the incumbent and its rivals: the fastest rival whose gain is at least `min_gain`
/// and beyond what noise may show. `None` keeps the incumbent.
///
/// The untuned default is the incumbent as long as nothing is locked, and a rival afterwards, so
/// that the result is never slower than it, noise aside.
pub fn elect(rivals: &[Rival], min_gain: f64) -> Option<usize> {
    let wins = |rival: &Rival| rival.ratio <= 1.0 - min_gain && rival.upper < 1.0;
    let winners = rivals.iter().enumerate().filter(|(_, rival)| wins(rival));
    let fastest = winners.min_by(|(_, lhs), (_, rhs)| lhs.ratio.total_cmp(&rhs.ratio));
    fastest.map(|(idx, _)| idx)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rival(ratio: f64, upper: f64) -> Rival {
        Rival { ratio, upper }
    }

    #[test]
    fn only_a_gain_above_the_noise_replaces_the_incumbent() {
        let check = |rivals: &[Rival], expected| assert_eq!(elect(rivals, 0.03), expected);
        check(&[], None);
        check(&[rival(0.98, 0.99)], None);
        check(&[rival(0.90, 1.01)], None);
        check(&[rival(f64::NAN, f64::NAN)], None);
        check(
            &[
                rival(1.20, 1.25),
                rival(0.95, 0.97),
                rival(0.80, 1.10),
                rival(0.94, 0.99),
            ],
            Some(3),
        );
        assert_eq!(elect(&[rival(1.0, 0.99)], 0.0), Some(0));
    }

    #[test]
    fn giving_up_starts_at_three_times_the_best() {
        assert_eq!(give_up_ns(1000.5), 3002);
        assert_eq!(give_up_ns(f64::INFINITY), u64::MAX);
    }
}
