//! What a soak says in the end, for people and as JSON.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::fault::Fault;
use super::tally::Tally;

/// The tool may need so much memory for models of a few KiB, bytes.
const MOST_MEMORY: u64 = 150 << 20;
/// Memory may be by so much higher in the last quarter of the runs than in the first.
const MOST_GROWTH: f64 = 1.15;
const ENOUGH_RUNS: usize = 40;
/// What is locked may be by so much slower than without faults: on average, if there are enough to
/// have one, and each. Two searches of one model differ, and one of them may not use some kernels.
const MOST_OVER_TWIN: f64 = 1.05;
const ENOUGH_TWINS: usize = 6;
const WORST_OVER_TWIN: f64 = 1.5;

/// Everything that is worth knowing of a soak.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    seed: u64,
    seconds: f64,
    processors: usize,
    rounds: usize,
    runs: usize,
    evaluations: usize,
    evaluations_without_faults: usize,
    faults: BTreeMap<Fault, usize>,
    n_faults: usize,
    n_kinds: usize,
    /// By exit code; by signal if negative.
    ends: BTreeMap<i32, usize>,
    replays: usize,
    utilisation: Option<Spread>,
    utilisation_without_faults: Option<Spread>,
    time_left_over_truth: Option<Spread>,
    time_left_over_truth_without_faults: Option<Spread>,
    peak_memory_mib: Option<Spread>,
    memory_growth_in_a_run: Option<Spread>,
    memory_growth_over_all: Option<f64>,
    latency_over_that_without_faults: Option<Spread>,
    longest_silence_s: f64,
    /// Promises that were not kept.
    pub(super) violations: Vec<String>,
}

/// Where samples lie.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Spread {
    n: usize,
    min: f64,
    median: f64,
    max: f64,
    /// Geometric mean.
    mean: f64,
}

impl Summary {
    /// Sums up.
    pub(super) fn of(tally: Tally, seed: u64, seconds: f64) -> Self {
        let mib = |bytes: &u64| *bytes as f64 / f64::from(1 << 20);
        let peaks: Vec<f64> = tally.peaks_bytes.iter().map(mib).collect();
        let mut summary = Self {
            seed,
            seconds,
            processors: std::thread::available_parallelism().map_or(0, usize::from),
            rounds: tally.n_rounds,
            runs: tally.n_runs,
            evaluations: tally.n_evaluations,
            evaluations_without_faults: tally.n_twin_evaluations,
            n_faults: tally.n_faults(),
            n_kinds: tally.faults.len(),
            ends: tally.ends,
            replays: tally.n_replays,
            utilisation: Spread::of(&tally.utilisations),
            utilisation_without_faults: Spread::of(&tally.twin_utilisations),
            time_left_over_truth: Spread::of(&tally.estimates),
            time_left_over_truth_without_faults: Spread::of(&tally.twin_estimates),
            peak_memory_mib: Spread::of(&peaks),
            memory_growth_in_a_run: Spread::of(&tally.growths),
            memory_growth_over_all: growth(&peaks),
            latency_over_that_without_faults: Spread::of(&tally.over_twin),
            longest_silence_s: tally.longest_silence_s,
            violations: tally.violations,
            faults: tally.faults,
        };
        let found = summary.judge();
        summary.violations.extend(found);
        summary
    }

    /// Returns what only shows over all rounds.
    fn judge(&self) -> Vec<String> {
        let mut found = Vec::new();
        let most = MOST_MEMORY as f64 / f64::from(1 << 20);
        if let Some(peak) = self.peak_memory_mib.filter(|peak| peak.max > most) {
            found.push(format!("the tool had {:.0} MiB of memory", peak.max));
        }
        if let Some(growth) = self
            .memory_growth_over_all
            .filter(|growth| *growth > MOST_GROWTH)
        {
            found.push(format!("memory grew to {growth:.2} times what it was"));
        }
        if let Some(over) = self.latency_over_that_without_faults
            && (over.max > WORST_OVER_TWIN
                || (over.n >= ENOUGH_TWINS && over.mean > MOST_OVER_TWIN))
        {
            found.push(format!(
                "what is locked takes {:.2} times as long as without faults, {:.2} at worst",
                over.mean, over.max
            ));
        }
        found
    }
}

impl Spread {
    /// Returns that of some samples; `None` if there are none.
    fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let logs: f64 = sorted.iter().map(|sample| sample.max(1e-9).ln()).sum();
        Some(Self {
            n: sorted.len(),
            min: *sorted.first()?,
            median: sorted[sorted.len() / 2],
            max: *sorted.last()?,
            mean: (logs / sorted.len() as f64).exp(),
        })
    }
}

/// Returns the median of the last quarter over that of the first; `None` for few samples, which
/// differ by model and by when a run was ended.
fn growth(samples: &[f64]) -> Option<f64> {
    if samples.len() < ENOUGH_RUNS {
        return None;
    }
    let quarter = samples.len() / 4;
    let first = Spread::of(&samples[..quarter])?.median;
    let last = Spread::of(&samples[samples.len() - quarter..])?.median;
    Some(last / first)
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            n,
            min,
            median,
            max,
            ..
        } = self;
        write!(f, "{median:.2} ({min:.2} to {max:.2}, n = {n})")
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rounds,
            runs,
            evaluations,
            n_faults,
            n_kinds,
            ..
        } = self;
        let minutes = self.seconds / 60.0;
        writeln!(
            f,
            "{minutes:.1} minutes, seed {}, {} processors: {rounds} rounds, {runs} runs, \
             {evaluations} evaluations, {n_faults} faults of {n_kinds} kinds",
            self.seed, self.processors
        )?;
        for (fault, n) in &self.faults {
            let name = serde_json::to_string(fault).unwrap_or_default();
            writeln!(f, "{n:>8}  {}", name.trim_matches('"'))?;
        }
        let ends = self.ends.iter().map(|(end, n)| match end {
            ..0 => format!("{n} by signal {}", -end),
            _ => format!("{n} with {end}"),
        });
        writeln!(f, "runs ended {}", ends.collect::<Vec<_>>().join(", "))?;
        writeln!(f, "{} replays", self.replays)?;
        let lines = [
            ("device utilisation", self.utilisation),
            ("  without faults", self.utilisation_without_faults),
            (
                "time left, estimate over truth at half time",
                self.time_left_over_truth,
            ),
            ("  without faults", self.time_left_over_truth_without_faults),
            ("peak memory of the tool, MiB", self.peak_memory_mib),
            (
                "memory after the last evaluation over that after 12",
                self.memory_growth_in_a_run,
            ),
            (
                "latency of the lock over that without faults",
                self.latency_over_that_without_faults,
            ),
        ];
        for (name, spread) in lines {
            if let Some(spread) = spread {
                writeln!(f, "{name}: {spread}")?;
            }
        }
        if let Some(growth) = self.memory_growth_over_all {
            writeln!(
                f,
                "peak memory, last quarter of the runs over the first: {growth:.2}"
            )?;
        }
        writeln!(
            f,
            "longest time without a message: {:.1} s",
            self.longest_silence_s
        )?;
        for violation in &self.violations {
            writeln!(f, "VIOLATION {violation}")?;
        }
        write!(f, "{} violations", self.violations.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_or_gets_worse_over_all_rounds_is_a_violation() {
        let flat = || Tally {
            peaks_bytes: vec![60 << 20; ENOUGH_RUNS],
            over_twin: vec![0.99, 1.02, 1.0, 1.0, 0.97, 1.01],
            ..Tally::default()
        };
        assert!(Summary::of(flat(), 0, 60.0).violations.is_empty());
        let mut grown = flat();
        grown.peaks_bytes[ENOUGH_RUNS * 3 / 4..].fill(80 << 20);
        let mut few = flat();
        few.peaks_bytes = vec![20 << 20, 20 << 20, 40 << 20, 40 << 20];
        assert!(Summary::of(few, 0, 60.0).violations.is_empty());
        let mut worse = flat();
        worse.over_twin.fill(1.06);
        let mut bad = flat();
        bad.over_twin[0] = 1.6;
        let mut large = flat();
        large.peaks_bytes[0] = 151 << 20;
        for tally in [grown, worse, bad, large] {
            assert_eq!(Summary::of(tally, 0, 60.0).violations.len(), 1);
        }
    }

    #[test]
    fn the_mean_of_a_ratio_and_its_inverse_is_one() {
        let spread = Spread::of(&[2.0, 0.5, 1.0]).unwrap();
        assert!((spread.mean - 1.0).abs() < 1e-12);
        assert_eq!((spread.min, spread.median, spread.max), (0.5, 1.0, 2.0));
        assert!(Spread::of(&[]).is_none());
    }
}
