//! What was seen of each mapping: pooled latencies, failures, and the noise between samples.

use std::collections::BTreeMap;

use crate::label::Outcome;
use crate::space::Mapping;

/// What one evaluation says about a mapping.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Observation {
    /// It ran.
    Ok {
        /// Latency, nanoseconds: lower quartile of the repeats.
        ns: f64,
        /// Interquartile range of the repeats over their median.
        dispersion: f64,
    },
    /// It failed. [`Outcome::DeviceLost`] says nothing about the mapping, and so it may be proposed
    /// again; all others are never tried again.
    Failed(Outcome),
}

/// Spread of repeated evaluations that is assumed before there are any, relative.
const PRIOR_NOISE: f64 = 0.02;
/// How many repeats that assumption is worth.
const PRIOR_WEIGHT: f64 = 4.0;

/// All observations of a task.
#[derive(Debug, Clone, Default)]
pub(super) struct Record {
    entries: BTreeMap<Mapping, Entry>,
    n_observations: u64,
}

/// What was seen of one mapping. Latencies are pooled as logarithms.
#[derive(Debug, Clone, Default)]
pub(super) struct Entry {
    pub(super) n_samples: u32,
    pub(super) failure: Option<Outcome>,
    mean_log_ns: f64,
    squares: f64,
    dispersion: f64,
}

impl Record {
    /// Takes note of an observation; a latency that is not a positive number is none.
    pub(super) fn add(&mut self, mapping: &Mapping, observation: Observation) {
        match observation {
            Observation::Ok { ns, dispersion } if ns > 0.0 && ns.is_finite() => {
                let dispersion = if dispersion.is_finite() {
                    dispersion.max(0.0)
                } else {
                    0.0
                };
                self.entries
                    .entry(mapping.clone())
                    .or_default()
                    .pool(ns.ln(), dispersion);
            }
            Observation::Failed(outcome) if outcome != Outcome::Ok && outcome.is_final() => {
                self.entries.entry(mapping.clone()).or_default().failure = Some(outcome);
            }
            Observation::Ok { .. } | Observation::Failed(_) => return,
        }
        self.n_observations += 1;
    }

    pub(super) fn get(&self, mapping: &Mapping) -> Option<&Entry> {
        self.entries.get(mapping)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Mapping, &Entry)> {
        self.entries.iter()
    }

    /// Returns the number of different mappings that were seen.
    pub(super) fn n_mappings(&self) -> usize {
        self.entries.len()
    }

    /// Returns the number of observations that counted.
    pub(super) fn n_observations(&self) -> u64 {
        self.n_observations
    }

    /// Returns the mappings that ran and did not fail.
    pub(super) fn running(&self) -> impl Iterator<Item = (&Mapping, &Entry)> {
        self.iter().filter(|(_, entry)| entry.log_ns().is_some())
    }

    /// Returns the share of the mappings seen that failed, other than by being slow.
    pub(super) fn failure_rate(&self) -> f64 {
        let n_failed = self
            .entries
            .values()
            .filter(|entry| entry.has_broken())
            .count();
        n_failed as f64 / self.n_mappings().max(1) as f64
    }

    /// Returns the standard deviation of log latency between evaluations of one mapping.
    pub(super) fn noise(&self) -> f64 {
        let repeated = self.entries.values().filter(|entry| entry.n_samples > 1);
        let (squares, n) = repeated.fold((0.0, 0.0), |(squares, n), entry| {
            (squares + entry.squares, n + f64::from(entry.n_samples - 1))
        });
        ((squares + PRIOR_WEIGHT * PRIOR_NOISE * PRIOR_NOISE) / (n + PRIOR_WEIGHT)).sqrt()
    }
}

impl Entry {
    fn pool(&mut self, log_ns: f64, dispersion: f64) {
        self.n_samples += 1;
        let n = f64::from(self.n_samples);
        let delta = log_ns - self.mean_log_ns;
        self.mean_log_ns += delta / n;
        self.squares += delta * (log_ns - self.mean_log_ns);
        self.dispersion += (dispersion - self.dispersion) / n;
    }

    /// Returns the mean log latency, if it ran and did not fail.
    pub(super) fn log_ns(&self) -> Option<f64> {
        (self.n_samples > 0 && self.failure.is_none()).then_some(self.mean_log_ns)
    }

    /// Returns the variance of [`log_ns`](Self::log_ns), given the noise between evaluations. The
    /// spread of the repeats within an evaluation counts with a quarter, as a quartile of a few
    /// dozen of them is that much steadier than one.
    pub(super) fn variance(&self, noise: f64) -> f64 {
        let within = self.dispersion / 4.0;
        (noise * noise + within * within) / f64::from(self.n_samples.max(1))
    }

    /// Returns whether it failed for another reason than being slow.
    pub(super) fn has_broken(&self) -> bool {
        self.failure
            .is_some_and(|outcome| outcome != Outcome::Abandoned)
    }
}
