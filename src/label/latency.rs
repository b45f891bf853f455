//! Quantiles of latencies.

use serde::{Deserialize, Serialize};

/// Quantiles of a latency, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Lower quartile: the figure that decides, being robust against preemption.
    pub p25_ns: f64,
    /// Median.
    pub p50_ns: f64,
    /// Interquartile range over the median; 0 if the median is.
    pub dispersion: f64,
}

impl Latency {
    /// Summarises samples, in nanoseconds and any order; `None` if there are none.
    pub fn of(samples_ns: &[u64]) -> Option<Self> {
        let mut sorted = samples_ns.to_vec();
        sorted.sort_unstable();
        let p25_ns = quantile(&sorted, 0.25)?;
        let p50_ns = quantile(&sorted, 0.5)?;
        let p75_ns = quantile(&sorted, 0.75)?;
        let dispersion = if p50_ns > 0.0 {
            (p75_ns - p25_ns) / p50_ns
        } else {
            0.0
        };
        Some(Self {
            p25_ns,
            p50_ns,
            dispersion,
        })
    }

    /// A latency that is exactly known, as a simulator's is.
    pub fn exact(latency_ns: f64) -> Self {
        Self {
            p25_ns: latency_ns,
            p50_ns: latency_ns,
            dispersion: 0.0,
        }
    }
}

/// Returns a quantile of ascending values, `None` if there are none.
///
/// Between two values it interpolates linearly (type 7 of Hyndman and Fan, *Sample quantiles in
/// statistical packages*, 1996). `q` is clamped to `0..=1`.
pub fn quantile(sorted: &[u64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = q.clamp(0.0, 1.0) * last as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    let (low, high) = (sorted[below] as f64, sorted[above] as f64);
    Some(low + (high - low) * (position - below as f64))
}
