//! What is known of a job: labels in memory, searches over them, conversion costs, the budget.
//!
//! Pure bookkeeping: it is told what happened and can be asked what to do; it runs nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::job::{Job, Task};
use crate::digest::Digest;
use crate::label::{Evaluation, Label, Outcome, Purpose, quantile};
use crate::search::{Budget, Observation, TaskSearch, TaskState};
use crate::space::{Candidate, Mapping};
use crate::store::TaskLabels;

/// The state of the search of one job.
pub(super) struct Session {
    /// By task; `None` where there is nothing to choose.
    pub(super) searches: Vec<Option<TaskSearch>>,
    /// By task: whether it is searched; else it rides along with what is locked.
    pub(super) is_open: Vec<bool>,
    /// By task: what is locked for it.
    pub(super) locked: Vec<Option<Candidate>>,
    /// By task: evaluations since it last tried something new.
    pub(super) n_idle: Vec<u32>,
    /// Samples of side tasks such as conversions, nanoseconds, by what they are.
    pub(super) side_ns: BTreeMap<String, Vec<f64>>,
    /// Candidates that ran with right numbers, by task: they cannot be what crashes.
    pub(super) proven: Vec<BTreeSet<Mapping>>,
    /// Evaluations of this adaptation.
    pub(super) budget: Budget,
    /// Artifacts that were evaluated in it.
    pub(super) evaluated: BTreeSet<Digest>,
    /// Time of the latest of them, milliseconds since the Unix epoch.
    latest_ms: u64,
    /// Labels that were there before.
    pub(super) n_reused_labels: usize,
}

/// What a lockfile has for a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Locked {
    /// The choice.
    pub(super) candidate: Candidate,
    /// Whether its search came to an end.
    pub(super) is_final: bool,
}

impl Session {
    /// Starts from what the store has. `locked` are choices of earlier deployments by task
    /// structure: those whose search came to an end are not searched again.
    pub(super) fn new(
        job: &Job<'_>,
        max_evaluations: u32,
        seed: u64,
        locked: &BTreeMap<Digest, Locked>,
    ) -> Self {
        let mut searches = Vec::new();
        let mut is_open = Vec::new();
        for (idx, task) in job.tasks.iter().enumerate() {
            let first = task.occurrences[0];
            let search = job.prepared.space(first).map(|space| {
                let default = job.prepared.default_candidate(first).mapping;
                let mut search = TaskSearch::new(space.clone(), default, seed ^ idx as u64);
                if let Some(locked) = locked.get(&task.key.structure) {
                    search.suggest([locked.candidate.mapping.clone()]);
                }
                search
            });
            let is_final = locked
                .get(&task.key.structure)
                .is_some_and(|locked| locked.is_final);
            is_open.push(search.is_some() && !is_final);
            searches.push(search);
        }
        let n_tasks = job.tasks.len();
        let choice = |task: &Task| Some(locked.get(&task.key.structure)?.candidate.clone());
        Self {
            searches,
            is_open,
            locked: job.tasks.iter().map(choice).collect(),
            n_idle: vec![0; n_tasks],
            side_ns: BTreeMap::new(),
            proven: vec![BTreeSet::new(); n_tasks],
            budget: Budget::new(max_evaluations, 0),
            evaluated: BTreeSet::new(),
            latest_ms: 0,
            n_reused_labels: 0,
        }
    }

    /// Takes over what earlier runs recorded.
    pub(super) fn resume(
        &mut self,
        job: &Job<'_>,
        labels: &TaskLabels,
        evaluations: &[Evaluation],
    ) {
        for (idx, task) in job.tasks.iter().enumerate() {
            for label in labels.get(&task.key.digest()).into_iter().flatten() {
                self.learn(idx, label, 1.0);
                self.n_reused_labels += 1;
            }
        }
        // What follows the last confirmation belongs to an adaptation that never ended.
        let ended = evaluations
            .iter()
            .rposition(|e| e.purpose == Purpose::Confirm);
        let open = &evaluations[ended.map_or(0, |idx| idx + 1)..];
        self.budget = Budget::new(self.budget.max_evaluations(), open.len() as u32);
        self.evaluated
            .extend(open.iter().map(|evaluation| evaluation.artifact));
        let times = evaluations.iter().map(|evaluation| evaluation.time_ms);
        self.latest_ms = times.max().unwrap_or(0);
    }

    /// Returns the time to record for an evaluation that ends now: after all earlier ones, also if
    /// the clock was put back, because their order says where an adaptation ended.
    pub(super) fn stamp(&mut self, now_ms: u64) -> u64 {
        self.latest_ms = now_ms.max(self.latest_ms + 1);
        self.latest_ms
    }

    /// Takes note of a label of a task; `drift` is how much slower the device is than at the start.
    pub(super) fn learn(&mut self, task: usize, label: &Label, drift: f64) {
        let Some(search) = &mut self.searches[task] else {
            return;
        };
        let mapping = &label.candidate.mapping;
        let observation = match (&label.measurement, label.outcome) {
            (Some(measurement), Outcome::Ok) => {
                self.proven[task].insert(mapping.clone());
                let latency = measurement.latency;
                Observation::Ok {
                    ns: latency.p25_ns / drift,
                    dispersion: latency.dispersion,
                }
            }
            (_, outcome) => Observation::Failed(outcome),
        };
        search.observe(mapping, observation);
    }

    /// Takes note of what a conversion took.
    pub(super) fn learn_side(&mut self, what: &str, ns: f64) {
        self.side_ns.entry(what.to_owned()).or_default().push(ns);
    }

    /// Returns the median of what a conversion took.
    pub(super) fn side(&self, what: &str) -> Option<f64> {
        let mut samples: Vec<u64> = self
            .side_ns
            .get(what)?
            .iter()
            .map(|&ns| ns as u64)
            .collect();
        samples.sort_unstable();
        quantile(&samples, 0.5)
    }

    /// Fits the surrogates to what was learnt, on all processors: what is asked of them next comes
    /// at no cost. About 20 to 50 ms a task.
    pub(super) fn refit(&self) {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let searches: Vec<&TaskSearch> = self.searches.iter().flatten().collect();
        std::thread::scope(|scope| {
            for share in searches.chunks(searches.len().div_ceil(threads).max(1)) {
                scope.spawn(move || {
                    for search in share {
                        let _ = search.expected_gain();
                    }
                });
            }
        });
    }

    /// Returns how many tasks have something to choose and are not searched: it is locked for them.
    pub(super) fn n_reused(&self) -> usize {
        let tasks = self.searches.iter().zip(&self.is_open);
        tasks
            .filter(|(search, is_open)| search.is_some() && !**is_open)
            .count()
    }

    /// Returns what an allocation needs to know of each task.
    pub(super) fn states(&self, job: &Job<'_>) -> Vec<TaskState> {
        let tasks = job.tasks.iter().zip(&self.searches);
        tasks
            .enumerate()
            .map(|(idx, (task, search))| {
                let open = search.as_ref().filter(|_| self.is_open[idx]);
                TaskState {
                    count: open.map_or(0, |_| task.occurrences.len()),
                    expected_gain_ns: open.and_then(TaskSearch::expected_gain),
                    // A failure is pinned on its candidate, and costs the others nothing.
                    risk: 0.0,
                    n_idle: self.n_idle[idx],
                }
            })
            .collect()
    }

    /// Returns a candidate for each subgraph of which nothing is known: what is locked, or the
    /// default.
    pub(super) fn fallback(&self, job: &Job<'_>) -> Vec<Candidate> {
        let mut candidates = job.defaults();
        for (candidate, &task) in candidates.iter_mut().zip(&job.task_of) {
            if let Some(locked) = &self.locked[task] {
                candidate.clone_from(locked);
            }
        }
        candidates
    }
}
