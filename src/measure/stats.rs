//! Decisions over noisy latencies.
//!
//! Samples of the two sides are taken in the same rounds, so slow phases of the machine hit both.
//! The figure is the ratio of lower quartiles: on a busy two-core machine 60 interleaved pairs give
//! it a 95 % error of 0.6–1.7 %, half of what means or unpaired medians reach. The interval is a
//! paired moving-block bootstrap (Künsch, *The jackknife and the bootstrap for general stationary
//! observations*, 1989): rounds stay together, and neighbouring rounds too.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::label::Latency;

/// Drift of the baseline above which a session is not to be trusted.
pub const MAX_DRIFT: f64 = 0.03;

/// Fewest rounds from which a decision may be made.
pub const MIN_ROUNDS: usize = 20;

const N_RESAMPLES: usize = 500;

/// How a candidate's latency compares with a baseline's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Lower quartile of the candidate over that of the baseline; below 1 is faster.
    pub ratio: f64,
    /// 95 % interval of `ratio`.
    pub interval: (f64, f64),
    /// Rounds.
    pub n: usize,
}

/// Compares samples of two sides, nanoseconds: `baseline_ns[i]` and `candidate_ns[i]` are of the
/// same round; surplus samples of one side are left out. `None` without samples, or if the
/// baseline's are zero. Equal input and seed give an equal result.
pub fn compare(baseline_ns: &[u64], candidate_ns: &[u64], seed: u64) -> Option<Comparison> {
    let n = baseline_ns.len().min(candidate_ns.len());
    let baseline = Ranked::new(&baseline_ns[..n]);
    let candidate = Ranked::new(&candidate_ns[..n]);
    let ratio_p25 = |n_times: &[u32]| {
        let (baseline, candidate) = (baseline.p25(n_times)?, candidate.p25(n_times)?);
        (baseline > 0.0).then(|| candidate / baseline)
    };
    let ratio = ratio_p25(&vec![1; n])?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // Not below the four rounds after which a worker moves the memory of all sides.
    let block = ((n as f64).cbrt().ceil() as usize).max(4);
    let mut n_times = vec![0; n];
    let mut resample = || {
        n_times.fill(0);
        for drawn in (0..n).step_by(block) {
            let start = rng.random_range(0..n);
            for offset in 0..block.min(n - drawn) {
                n_times[(start + offset) % n] += 1;
            }
        }
        ratio_p25(&n_times)
    };
    let mut ratios: Vec<f64> = (0..N_RESAMPLES).filter_map(|_| resample()).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let bound = |q: f64| ratios.get((q * (ratios.len() as f64 - 1.0)).round() as usize);
    let interval = (
        bound(0.025).map_or(ratio, |&low| low.min(ratio)),
        bound(0.975).map_or(ratio, |&high| high.max(ratio)),
    );
    Some(Comparison { ratio, interval, n })
}

/// Returns by which share the baseline became slower from one batch to another, from samples in
/// nanoseconds; negative if faster. `None` without samples.
pub fn drift(before_ns: &[u64], after_ns: &[u64]) -> Option<f64> {
    let p25 = |samples_ns: &[u64]| Latency::of(samples_ns).map(|latency| latency.p25_ns);
    let before = p25(before_ns)?;
    (before > 0.0).then_some(p25(after_ns)? / before - 1.0)
}

/// Returns whether a drift is too large for what was measured in between.
pub fn has_drifted(drift: f64) -> bool {
    drift.abs() > MAX_DRIFT
}

impl Comparison {
    /// Returns whether the candidate is faster by at least `min_gain` (0.03 is 3 %), beyond what
    /// noise may show.
    pub fn is_faster(&self, min_gain: f64) -> bool {
        self.n >= MIN_ROUNDS && self.ratio <= 1.0 - min_gain && self.interval.1 < 1.0
    }

    /// Returns whether the candidate is slower by at least `max_loss`, beyond what noise may show.
    pub fn is_slower(&self, max_loss: f64) -> bool {
        self.n >= MIN_ROUNDS && self.ratio >= 1.0 + max_loss && self.interval.0 > 1.0
    }
}

/// Samples with their order, so that a resample need not be sorted.
struct Ranked<'a> {
    samples_ns: &'a [u64],
    /// Rounds, ascending by sample.
    order: Vec<usize>,
}

impl<'a> Ranked<'a> {
    fn new(samples_ns: &'a [u64]) -> Self {
        let mut order: Vec<usize> = (0..samples_ns.len()).collect();
        order.sort_unstable_by_key(|&round| samples_ns[round]);
        Self { samples_ns, order }
    }

    /// Returns the lower quartile of the resample that has round `i` `n_times[i]` times, as
    /// [`quantile`](crate::label::quantile) defines it; `None` if it is empty.
    fn p25(&self, n_times: &[u32]) -> Option<f64> {
        let position = 0.25 * self.samples_ns.len().checked_sub(1)? as f64;
        let (below, above) = (position.floor() as u32, position.ceil() as u32);
        let mut n_seen = 0;
        let mut low = None;
        for &round in &self.order {
            n_seen += n_times[round];
            let sample = self.samples_ns[round] as f64;
            if low.is_none() && n_seen > below {
                low = Some(sample);
            }
            if let Some(low) = low
                && n_seen > above
            {
                return Some(low + (sample - low) * position.fract());
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const N_TRIALS: u64 = 100;

    /// Samples of two sides whose true latencies have `ratio`: independent noise of `noise`, slow
    /// phases of several rounds that hit both, and single samples that were preempted.
    fn sample(seed: u64, ratio: f64, noise: f64, n: usize) -> (Vec<u64>, Vec<u64>) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut phase = 1.0;
        let (mut baseline, mut candidate) = (Vec::new(), Vec::new());
        for _ in 0..n {
            if rng.random_bool(0.1) {
                phase = if rng.random_bool(0.3) { 1.4 } else { 1.0 };
            }
            let mut side = |latency_ns: f64| {
                let normal: f64 = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
                let preempted = if rng.random_bool(0.05) { 1.8 } else { 1.0 };
                (latency_ns * phase * preempted * (1.0 + noise * normal)) as u64
            };
            baseline.push(side(1e6));
            candidate.push(side(1e6 * ratio));
        }
        (baseline, candidate)
    }

    fn share_accepted(ratio: f64, noise: f64, n: usize) -> f64 {
        let accepted = (0..N_TRIALS).filter(|&seed| {
            let (baseline, candidate) = sample(seed, ratio, noise, n);
            compare(&baseline, &candidate, seed)
                .unwrap()
                .is_faster(0.03)
        });
        accepted.count() as f64 / N_TRIALS as f64
    }

    #[test]
    fn equal_sides_are_hardly_ever_told_apart_however_noisy() {
        for noise in [0.01, 0.03, 0.1, 0.3] {
            let share = share_accepted(1.0, noise, 60);
            assert!(share < 0.05, "{share} at {noise}");
        }
    }

    #[test]
    fn a_gain_of_5_percent_is_found_in_60_rounds_of_3_percent_noise() {
        let share = share_accepted(0.95, 0.03, 60);
        assert!(share >= 0.9, "{share}");
    }

    #[test]
    fn a_gain_below_the_threshold_is_not_accepted() {
        assert!(share_accepted(0.99, 0.01, 60) < 0.05);
    }

    #[test]
    fn nothing_is_decided_without_enough_rounds() {
        let few = compare(&[100; 19], &[50; 19], 0).unwrap();
        assert!((few.ratio - 0.5).abs() < 1e-12 && !few.is_faster(0.03));
        let enough = compare(&[100; 20], &[50; 21], 0).unwrap();
        assert!(enough.is_faster(0.03) && !enough.is_slower(0.03) && enough.n == 20);
        assert!(compare(&[50; 20], &[100; 20], 0).unwrap().is_slower(0.03));
        assert_eq!(compare(&[], &[1], 0), None);
        assert_eq!(compare(&[0; 30], &[1; 30], 0), None);
    }

    #[test]
    fn a_drift_above_3_percent_is_reported_either_way() {
        let drift = |after| drift(&[1000, 1010, 5000], after).unwrap();
        assert!(!has_drifted(drift(&[1020, 1030, 9000])));
        assert!(has_drifted(drift(&[1050, 1060, 1070])));
        assert!(has_drifted(drift(&[900, 910, 920])));
        assert_eq!(super::drift(&[], &[1]), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn the_ratio_is_that_of_the_quartiles_and_inside_its_interval(
            rounds in vec((1..1_000_000_u64, 1..1_000_000_u64), 1..80),
            seed in any::<u64>(),
        ) {
            let (baseline, candidate): (Vec<_>, Vec<_>) = rounds.into_iter().unzip();
            let comparison = compare(&baseline, &candidate, seed).unwrap();
            let p25 = |samples: &[u64]| Latency::of(samples).unwrap().p25_ns;
            let expected = p25(&candidate) / p25(&baseline);
            prop_assert!((comparison.ratio / expected - 1.0).abs() < 1e-12);
            let (low, high) = comparison.interval;
            prop_assert!(low <= comparison.ratio && comparison.ratio <= high);
            prop_assert_eq!(compare(&baseline, &candidate, seed), Some(comparison));
        }
    }
}
