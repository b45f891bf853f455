//! Decisions over noisy latencies.
//!
//! Samples of the two sides are taken in the same rounds, so slow phases of the machine hit both.
//! The figure is the ratio of lower quartiles: on a busy two-core machine 60 interleaved pairs give
//! it a 95 % error of 0.6–1.7 %, half of what means or unpaired medians reach. The interval is a
//! paired moving-block bootstrap (Künsch, *The jackknife and the bootstrap for general stationary
//! observations*, 1989): rounds stay together, and neighbouring rounds too.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::label::quantile;

/// Drift of the baseline above which a session is not to be trusted.
pub const MAX_DRIFT: f64 = 0.03;

/// Fewest rounds from which a decision may be made.
pub const MIN_ROUNDS: usize = 20;

const N_RESAMPLES: usize = 1000;

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
    let (baseline_ns, candidate_ns) = (&baseline_ns[..n], &candidate_ns[..n]);
    let ratio = ratio_p25(&mut baseline_ns.to_vec(), &mut candidate_ns.to_vec())?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let block = (n as f64).cbrt().ceil() as usize;
    let mut resample = || {
        let (mut baseline, mut candidate) = (Vec::with_capacity(n), Vec::with_capacity(n));
        while baseline.len() < n {
            let start = rng.random_range(0..n);
            for offset in 0..block.min(n - baseline.len()) {
                let round = (start + offset) % n;
                baseline.push(baseline_ns[round]);
                candidate.push(candidate_ns[round]);
            }
        }
        ratio_p25(&mut baseline, &mut candidate)
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
    Some(ratio_p25(&mut before_ns.to_vec(), &mut after_ns.to_vec())? - 1.0)
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

fn ratio_p25(baseline_ns: &mut [u64], candidate_ns: &mut [u64]) -> Option<f64> {
    baseline_ns.sort_unstable();
    candidate_ns.sort_unstable();
    let baseline = quantile(baseline_ns, 0.25)?;
    let candidate = quantile(candidate_ns, 0.25)?;
    (baseline > 0.0).then(|| candidate / baseline)
}
