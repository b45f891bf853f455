//! What happened, as data: anyone below `report` may emit an [`Event`], renderers decide words.
//!
//! An event carries numbers and ids, never prose.

use std::time::Duration;

use crate::label::Purpose;
use crate::lock::Footprint;
use crate::queue::TrialState;
use crate::search::HalfWay;

/// Receives events; shared by the threads of a run.
pub trait Reporter: Send + Sync {
    /// Takes note of one event. Must not block for long.
    fn report(&self, event: &Event<'_>);
}

/// Something that happened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A model is about to be adapted to a target.
    AdaptStarted {
        /// Name of the model.
        model: &'a str,
        /// Name of the target.
        target: &'a str,
        /// Subgraphs in the model.
        n_subgraphs: usize,
        /// Distinct tasks among them.
        n_tasks: usize,
        /// Tasks that are not searched, as what is locked for them is kept.
        n_reused: usize,
        /// Evaluations that may be spent.
        max_evaluations: u32,
    },
    /// One artifact was run on the device, or failed to.
    EvaluationFinished {
        /// Number of evaluations spent, this one included.
        n_evaluations: u32,
        /// Evaluations that may be spent.
        max_evaluations: u32,
        /// Labels that it gave.
        n_labels: usize,
        /// Labels among them that are failures.
        n_failures: usize,
        /// Latency of the untuned baseline, nanoseconds.
        baseline_ns: f64,
        /// Latency that the best candidates known so far add up to, nanoseconds.
        best_ns: f64,
        /// What was used of the other budgets.
        spent: Spent,
        /// How long the search will still take, finals included, if that can be told.
        time_left: Option<Duration>,
    },
    /// A trial reached another state.
    TrialMoved {
        /// Its number in the queue.
        trial: i64,
        /// Why it is run.
        purpose: Purpose,
        /// The state.
        state: TrialState,
    },
    /// A candidate took another time than was believed; it was measured once more, and what is
    /// believed is corrected before anything else is proposed.
    Surprise {
        /// The subgraph.
        subgraph: usize,
        /// Latency that was believed, nanoseconds.
        predicted_ns: f64,
        /// Latency that was measured, nanoseconds.
        measured_ns: f64,
        /// Latency that was measured once more, nanoseconds.
        again_ns: f64,
    },
    /// A whole deployment was compared with the incumbent, interleaved.
    DeploymentCompared {
        /// Latency of the challenger over that of the incumbent.
        ratio: f64,
        /// Whether it replaces the incumbent.
        accepted: bool,
    },
    /// Variants of a model were looked at on samples.
    VariantsStudied {
        /// Name of the model.
        model: &'a str,
        /// Subgraphs of the model.
        n_sites: usize,
        /// Those of them that have variants.
        n_variable: usize,
        /// Samples that they were compared on.
        n_samples: usize,
        /// Error of the model with all variants, as a share of the limit.
        error: f64,
    },
    /// The fastest whole within the limits was planned.
    VariantsPlanned {
        /// Name of the model.
        model: &'a str,
        /// Name of the target.
        target: &'a str,
        /// Subgraphs of the model.
        n_sites: usize,
        /// Those of them that are not as the model says.
        n_varied: usize,
        /// Latency that it should have, nanoseconds.
        predicted_ns: f64,
        /// Latency that nothing within the limits should be below, nanoseconds.
        bound_ns: f64,
        /// Its error on samples, as a share of the limit.
        error: f64,
    },
    /// A variant of the model was searched, and its fastest run is known.
    VariantMeasured {
        /// Subgraphs that are not as the model says.
        n_varied: usize,
        /// Latency that was planned, nanoseconds, if it was.
        predicted_ns: Option<f64>,
        /// Latency that was measured, nanoseconds.
        measured_ns: f64,
        /// Latency of the untuned model, nanoseconds.
        baseline_ns: f64,
        /// Its error on samples, as a share of the limit.
        error: f64,
    },
    /// A deployment was run on samples that nothing was fitted to.
    AccuracyChecked {
        /// Name of the model.
        model: &'a str,
        /// Name of the target.
        target: &'a str,
        /// Samples.
        n_samples: usize,
        /// Mean KL divergence from the untuned model, nats.
        kl: Option<f64>,
        /// Relative L2 distance from it.
        relative_l2: f64,
        /// Share of the samples on which both name the same class.
        agreement: Option<f64>,
        /// By how much the share of right answers falls.
        top1_drop: Option<f64>,
        /// Standard error of that.
        standard_error: Option<f64>,
        /// The limits that it does not keep to, in words; empty if it passes.
        missed: &'a str,
    },
    /// Another process holds a lock that the run needs; it waits.
    LockAwaited {
        /// Lock file.
        path: &'a str,
        /// Who holds it, if that is known.
        holder: Option<&'a str>,
    },
    /// Something went wrong that the run survives, and that the user should know.
    Warning {
        /// Stable code, e.g. `baseline-drift`.
        code: &'a str,
        /// What it is about, e.g. a path.
        subject: &'a str,
        /// Details for people.
        detail: &'a str,
    },
    /// What was locked is no longer in the project, and was removed from the lock.
    DeploymentRemoved {
        /// Name of the model.
        model: &'a str,
        /// Name of the target.
        target: &'a str,
    },
    /// A run was gone through again from its journal, with the same decisions.
    Replayed {
        /// Name of the model.
        model: &'a str,
        /// Name of the target.
        target: &'a str,
        /// Entries of the journal.
        n_entries: usize,
        /// Evaluations that they are of.
        n_evaluations: u32,
        /// Whether the run came to a decision.
        is_complete: bool,
    },
    /// A model was adapted.
    AdaptFinished {
        /// Name of the model.
        model: &'a str,
        /// Name of the target.
        target: &'a str,
        /// Evaluations spent.
        n_evaluations: u32,
        /// Labels reused from earlier runs.
        n_reused_labels: usize,
        /// Latency of the untuned baseline, nanoseconds.
        baseline_ns: f64,
        /// Latency of the locked deployment, nanoseconds.
        latency_ns: f64,
        /// What the locked deployment needs of memory and disk, if that is known.
        footprint: Option<Footprint>,
        /// Whether the lock changed.
        lock_changed: bool,
        /// Whether the run was interrupted and kept the best so far.
        interrupted: bool,
        /// Share of the time in which there was something to measure that the device was
        /// measuring; `None` if there was nothing.
        utilisation: Option<f64>,
        /// What was used of the other budgets; `None` if nothing was searched.
        spent: Option<Spent>,
        /// How good the estimate of the time that was left was half way, if one was made.
        half_way: Option<HalfWay>,
    },
}

/// What a search has used of its budgets beside evaluations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    /// Wall time.
    pub elapsed: Duration,
    /// Wall time that it may take, finals aside; `None` if that is not limited.
    pub max_time: Option<Duration>,
    /// Time of compilers, added up.
    pub compile_time: Duration,
    /// Time of compilers that it may take; `None` if that is not limited.
    pub max_compile_time: Option<Duration>,
    /// What the workspace keeps on disk, bytes.
    pub disk_bytes: u64,
    /// What it may keep, bytes.
    pub max_disk_bytes: u64,
}

/// Drops all events.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Reporter for Silent {
    fn report(&self, _: &Event<'_>) {}
}
