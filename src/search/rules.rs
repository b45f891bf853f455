//! Decisions that do not depend on what is searched.

/// A candidate slower than the best by this factor is given up.
pub const GIVE_UP_FACTOR: f64 = 3.0;

/// Gain that a challenger must show before it replaces what is locked.
pub const DEFAULT_MIN_GAIN: f64 = 0.03;

/// What holds unless a rival takes its place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Incumbent {
    /// The untuned default, as long as nothing is locked: nobody has to review a change, so any
    /// gain is worth taking that is no noise.
    Untuned,
    /// What is locked: replacing it is a diff that somebody reads, and worth it from this gain on.
    Locked {
        /// Share of its latency, e.g. 0.03.
        min_gain: f64,
    },
}

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

/// Chooses among the incumbent and its rivals: the fastest rival whose gain is beyond what noise
/// may show and, over what is locked, at least the gain that is asked for. `None` keeps the
/// incumbent.
///
/// The untuned default is the incumbent as long as nothing is locked, and a rival afterwards, so
/// that the result is never slower than it, noise aside.
pub fn elect(rivals: &[Rival], incumbent: Incumbent) -> Option<usize> {
    let min_gain = match incumbent {
        Incumbent::Untuned => 0.0,
        Incumbent::Locked { min_gain } => min_gain,
    };
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
    fn only_a_gain_above_the_noise_and_the_least_gain_replaces_what_is_locked() {
        let locked = Incumbent::Locked { min_gain: 0.03 };
        let check = |rivals: &[Rival], expected| assert_eq!(elect(rivals, locked), expected);
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
    }

    #[test]
    fn any_gain_above_the_noise_replaces_the_untuned_default() {
        let check = |rivals: &[Rival], expected| {
            assert_eq!(elect(rivals, Incumbent::Untuned), expected);
        };
        check(&[], None);
        check(&[rival(0.999, 0.9999)], Some(0));
        check(&[rival(0.98, 1.0)], None);
        check(&[rival(1.001, 0.999)], None);
        check(&[rival(0.99, 0.995), rival(0.90, 1.01)], Some(0));
        check(&[rival(f64::NAN, f64::NAN)], None);
    }

    #[test]
    fn giving_up_starts_at_three_times_the_best() {
        assert_eq!(give_up_ns(1000.5), 3002);
        assert_eq!(give_up_ns(f64::INFINITY), u64::MAX);
    }
}
