//! What rounds add up to.

use std::collections::BTreeMap;

use super::fault::Fault;
use super::run::Run;

/// Evaluations before which the memory of a run still grows to what it needs.
const WARM_UP: usize = 12;

/// Counts and samples of one round or of all.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) n_rounds: usize,
    pub(super) n_runs: usize,
    /// Evaluations that are in the store.
    pub(super) n_evaluations: usize,
    /// Evaluations of runs without faults that others are compared with.
    pub(super) n_twin_evaluations: usize,
    pub(super) n_replays: usize,
    /// Faults that happened, by kind.
    pub(super) faults: BTreeMap<Fault, usize>,
    /// How runs ended: by exit code, or by signal as a negative number.
    pub(super) ends: BTreeMap<i32, usize>,
    /// Promises that were not kept.
    pub(super) violations: Vec<String>,
    /// Share of the time in which there was something to measure that the device was measuring.
    pub(super) utilisations: Vec<f64>,
    /// The same of runs without faults.
    pub(super) twin_utilisations: Vec<f64>,
    /// Estimates at half time over what was left: of all runs that came to an end.
    pub(super) estimates: Vec<f64>,
    /// The same of runs without faults.
    pub(super) twin_estimates: Vec<f64>,
    /// The most memory that each run of the tool had, bytes.
    pub(super) peaks_bytes: Vec<u64>,
    /// Memory after the last evaluation over that after the first dozen, of runs that had many more.
    pub(super) growths: Vec<f64>,
    /// Latency of what is locked over that of what is locked without faults.
    pub(super) over_twin: Vec<f64>,
    /// The longest time without a message of the tool, seconds.
    pub(super) longest_silence_s: f64,
}

impl Tally {
    /// Takes note of a run.
    pub(super) fn add_run(&mut self, run: &Run) {
        self.n_runs += 1;
        let end = run.code().or(run.signal().map(|signal| -signal));
        *self.ends.entry(end.unwrap_or(i32::MIN)).or_default() += 1;
        self.utilisations.extend(run.utilisation);
        self.estimates.extend(run.estimate_over_truth());
        self.peaks_bytes.push(run.peak_bytes);
        self.longest_silence_s = self
            .longest_silence_s
            .max(run.longest_silence.as_secs_f64());
        let memory = &run.memory_bytes;
        if let (Some(&warm), Some(&last)) = (memory.get(WARM_UP), memory.last())
            && memory.len() >= 2 * WARM_UP
        {
            self.growths.push(last as f64 / warm.max(1) as f64);
        }
    }

    /// Takes note of a run without faults.
    pub(super) fn add_twin(&mut self, run: &Run) {
        self.n_twin_evaluations += run.n_evaluations;
        self.twin_utilisations.extend(run.utilisation);
        self.twin_estimates.extend(run.estimate_over_truth());
    }

    /// Adds what other rounds came to.
    pub(super) fn add(&mut self, other: Self) {
        let Self {
            n_rounds,
            n_runs,
            n_evaluations,
            n_twin_evaluations,
            n_replays,
            faults,
            ends,
            violations,
            utilisations,
            twin_utilisations,
            estimates,
            twin_estimates,
            peaks_bytes,
            growths,
            over_twin,
            longest_silence_s,
        } = other;
        self.n_rounds += n_rounds;
        self.n_runs += n_runs;
        self.n_evaluations += n_evaluations;
        self.n_twin_evaluations += n_twin_evaluations;
        self.n_replays += n_replays;
        for (fault, n) in faults {
            *self.faults.entry(fault).or_default() += n;
        }
        for (end, n) in ends {
            *self.ends.entry(end).or_default() += n;
        }
        self.violations.extend(violations);
        self.utilisations.extend(utilisations);
        self.twin_utilisations.extend(twin_utilisations);
        self.estimates.extend(estimates);
        self.twin_estimates.extend(twin_estimates);
        self.peaks_bytes.extend(peaks_bytes);
        self.growths.extend(growths);
        self.over_twin.extend(over_twin);
        self.longest_silence_s = self.longest_silence_s.max(longest_silence_s);
    }

    /// Returns how many faults happened.
    pub(super) fn n_faults(&self) -> usize {
        self.faults.values().sum()
    }
}
