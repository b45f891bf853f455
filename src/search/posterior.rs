//! What to believe about mappings, seen or not, and what may still be gained.
//!
//! A forest over log latency gives every mapping a prior; its spread is scaled so that it explains
//! the out-of-bag errors. Samples of a mapping are pooled with what the trees that did not see it
//! say (normal shrinkage), and ranked by one standard deviation above the mean, which keeps a lucky
//! sample from becoming the incumbent. A second forest predicts the chance of failure.

use std::sync::Arc;

use super::forest::{Forest, Prediction};
use super::record::Record;
use crate::space::{Mapping, SearchSpace};

/// How much slower than the best a candidate is taken to be that was given up as too slow.
const ABANDONED_LOG: f64 = 1.098_612_288_668_109_8; // ln 3
/// Relative standard deviation that is never undercut for mappings that were not seen.
const MIN_SPREAD: f64 = 0.01;
/// Relative standard deviation assumed while there is no forest.
const BLIND_SPREAD: f64 = 0.4;

/// A belief about a latency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Latency, nanoseconds.
    pub ns: f64,
    /// Its relative standard deviation.
    pub spread: f64,
    /// Evaluations behind it; 0 if it is only predicted.
    pub n_samples: u32,
}

/// Beliefs after some observations.
#[derive(Debug)]
pub(super) struct Posterior {
    learnt: Arc<Learnt>,
    /// Mappings that ran, with their beliefs, best first.
    ranking: Vec<(Mapping, Belief)>,
}

/// What is learnt about mappings from other mappings.
#[derive(Debug)]
struct Learnt {
    latency: Option<Forest>,
    /// Mappings that `latency` was fitted to, sorted.
    rows: Vec<Mapping>,
    failure: Option<Forest>,
    failure_rate: f64,
    /// Factor from the trees' variance to that of the error.
    inflation: f64,
    /// Mean of the log latencies seen, what is believed without a forest.
    mean_log: f64,
}

/// A normal belief about a log latency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Belief {
    pub(super) mean: f64,
    pub(super) variance: f64,
    pub(super) n_samples: u32,
}

impl Posterior {
    /// Learns from a record.
    pub(super) fn new(space: &SearchSpace, record: &Record, seed: u64) -> Self {
        Self::pooled(Arc::new(Learnt::new(space, record, seed)), record)
    }

    /// Takes note of further samples of mappings that ran before; what is learnt from them about
    /// others stays.
    pub(super) fn with_repeats(&self, record: &Record) -> Self {
        Self::pooled(self.learnt.clone(), record)
    }

    /// Pools samples with what the rest of the data says.
    fn pooled(learnt: Arc<Learnt>, record: &Record) -> Self {
        let noise = record.noise();
        let ranked = record.running().filter_map(|(mapping, entry)| {
            let log_ns = entry.log_ns()?;
            let prior = learnt.prior(mapping);
            let (own, prior_precision) = (1.0 / entry.variance(noise), 1.0 / prior.variance);
            let belief = Belief {
                mean: (log_ns * own + prior.mean * prior_precision) / (own + prior_precision),
                variance: 1.0 / (own + prior_precision),
                n_samples: entry.n_samples,
            };
            Some((mapping.clone(), belief))
        });
        let mut ranking: Vec<(Mapping, Belief)> = ranked.collect();
        ranking.sort_by(|lhs, rhs| lhs.1.cautious().total_cmp(&rhs.1.cautious()));
        Self { learnt, ranking }
    }

    /// Returns the mappings that ran with what is believed of them, best first.
    pub(super) fn ranking(&self) -> &[(Mapping, Belief)] {
        &self.ranking
    }

    /// Predicts mappings that were not seen, by their features.
    pub(super) fn predict(&self, rows: &[&[f64]]) -> Vec<Belief> {
        let learnt = &self.learnt;
        match &learnt.latency {
            Some(forest) => {
                let predictions = forest.predict(rows).into_iter();
                predictions.map(|p| learnt.belief(p)).collect()
            }
            None => vec![learnt.blind(); rows.len()],
        }
    }

    /// Predicts the chance that mappings run, by their features.
    pub(super) fn success(&self, rows: &[&[f64]]) -> Vec<f64> {
        match &self.learnt.failure {
            Some(forest) => {
                let chance = |p: Prediction| (1.0 - p.mean).clamp(0.02, 1.0);
                forest.predict(rows).into_iter().map(chance).collect()
            }
            None => vec![(1.0 - self.learnt.failure_rate).clamp(0.02, 1.0); rows.len()],
        }
    }

    /// Returns the expected improvement of log latency over the best belief (Jones et al., 1998);
    /// 0 if nothing ran yet.
    pub(super) fn expected_improvement(&self, belief: &Belief) -> f64 {
        let Some((_, best)) = self.ranking.first() else {
            return 0.0;
        };
        let spread = belief.variance.sqrt();
        let gap = best.mean - belief.mean;
        if spread <= 0.0 {
            return gap.max(0.0);
        }
        let z = gap / spread;
        (gap * normal_cdf(z) + spread * normal_pdf(z)).max(0.0)
    }
}

impl Learnt {
    fn new(space: &SearchSpace, record: &Record, seed: u64) -> Self {
        let running = record.running().filter_map(|(_, entry)| entry.log_ns());
        let best_log = running.fold(f64::INFINITY, f64::min);
        let mut mappings = Vec::new();
        let (mut rows, mut targets) = (Vec::new(), Vec::new());
        let (mut all_rows, mut broken) = (Vec::new(), Vec::new());
        for (mapping, entry) in record.iter() {
            let Some(features) = space.encode(mapping) else {
                continue;
            };
            let is_slow = best_log.is_finite() && !entry.has_broken();
            let slow = is_slow.then_some(best_log + ABANDONED_LOG);
            if let Some(log_ns) = entry.log_ns().or(slow) {
                mappings.push(mapping.clone());
                rows.push(features.clone());
                targets.push(log_ns);
            }
            broken.push(f64::from(u8::from(entry.has_broken())));
            all_rows.push(features);
        }
        let is_mixed = broken.contains(&0.0) && broken.contains(&1.0);
        let fit = |rows: &[Vec<f64>], targets: &[f64]| {
            let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
            Forest::fit(&rows, targets, seed)
        };
        let latency = fit(&rows, &targets);
        Self {
            inflation: latency
                .as_ref()
                .map_or(1.0, |f| inflation(f, &targets, record.noise())),
            latency,
            rows: mappings,
            failure: is_mixed.then(|| fit(&all_rows, &broken)).flatten(),
            failure_rate: record.failure_rate(),
            mean_log: targets.iter().sum::<f64>() / targets.len().max(1) as f64,
        }
    }

    /// Returns what other mappings say about one that ran.
    fn prior(&self, mapping: &Mapping) -> Belief {
        let out_of_bag = || {
            let row = self.rows.binary_search(mapping).ok()?;
            *self.latency.as_ref()?.out_of_bag().get(row)?
        };
        out_of_bag().map_or(self.blind(), |prediction| self.belief(prediction))
    }

    fn belief(&self, prediction: Prediction) -> Belief {
        Belief {
            mean: prediction.mean,
            variance: (prediction.variance * self.inflation).max(MIN_SPREAD * MIN_SPREAD),
            n_samples: 0,
        }
    }

    fn blind(&self) -> Belief {
        Belief {
            mean: self.mean_log,
            variance: BLIND_SPREAD * BLIND_SPREAD,
            n_samples: 0,
        }
    }
}

/// Returns the factor that scales the trees' variance to the out-of-bag errors, less what is noise.
fn inflation(forest: &Forest, targets: &[f64], noise: f64) -> f64 {
    let (mut errors, mut variances) = (0.0, 0.0);
    for (prediction, target) in forest.out_of_bag().iter().zip(targets) {
        if let Some(prediction) = prediction {
            errors += ((prediction.mean - target).powi(2) - noise.powi(2)).max(0.0);
            variances += prediction.variance;
        }
    }
    if variances > 0.0 {
        (errors / variances).clamp(0.25, 4.0)
    } else {
        1.0
    }
}

impl Belief {
    /// Returns the log latency that is likely not exceeded: what little was seen of counts less.
    fn cautious(&self) -> f64 {
        self.mean + self.variance.sqrt()
    }

    /// Returns the belief as a latency.
    pub(super) fn estimate(&self) -> Estimate {
        Estimate {
            ns: self.mean.exp(),
            spread: self.variance.sqrt(),
            n_samples: self.n_samples,
        }
    }
}

fn normal_pdf(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// Abramowitz and Stegun 26.2.17, absolute error below 7.5e-8.
fn normal_cdf(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let coefficients = [
        1.330_274_429,
        -1.821_255_978,
        1.781_477_937,
        -0.356_563_782,
        0.319_381_53,
    ];
    let tail = normal_pdf(z) * coefficients.iter().fold(0.0, |sum, c| (sum + c) * t);
    if z > 0.0 { 1.0 - tail } else { tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_distribution_is_right() {
        for (z, expected) in [
            (0.0, 0.5),
            (1.0, 0.841_344_746),
            (-1.96, 0.024_997_895),
            (6.0, 1.0),
        ] {
            assert!(
                (normal_cdf(z) - expected).abs() < 1e-7,
                "{z}: {}",
                normal_cdf(z)
            );
        }
    }
}
