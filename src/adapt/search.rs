//! The search of one job: propose, build, check, measure, record, until there is no more to find.

use std::collections::VecDeque;
use std::sync::Arc;

use super::bench::{Bench, Trial};
use super::composer::{self, Composed};
use super::job::Job;
use super::ledger;
use super::propose::{LAYOUTS, LayoutPlan, Proposal, propose};
use super::session::Session;
use super::{Error, Request};
use crate::backend::{Artifact, BackendError, Failure};
use crate::event::{Event, Reporter};
use crate::label::{Latency, Outcome, Purpose};
use crate::measure::WorkerError;
use crate::measure::stats::has_drifted;
use crate::search::{StopRule, give_up_ns};
use crate::space::Candidate;
use crate::store::{Batch, LabelStore};

/// Evaluations in a row without promise after which the search stops.
const PATIENCE: u32 = 6;

/// Share of the latency that an evaluation must promise for the search to go on.
const WORTHWHILE: f64 = 0.002;

/// How often a deployment is repaired whose candidates fail to build, before it is given up.
const MAX_REPAIRS: usize = 8;

/// Everything that one search uses.
pub(super) struct Search<'a> {
    /// What is tuned.
    pub(super) job: &'a Job<'a>,
    /// How much, and when to stop.
    pub(super) request: &'a Request,
    /// Who is told.
    pub(super) reporter: &'a dyn Reporter,
    /// Where labels go.
    pub(super) store: Arc<dyn LabelStore>,
    /// The device.
    pub(super) bench: Bench,
    /// What is known.
    pub(super) session: Session,
    /// The untuned default: built, and measured in this session.
    pub(super) baseline: Option<Baseline>,
}

/// The untuned default.
pub(super) struct Baseline {
    /// Its library.
    pub(super) artifact: Artifact,
    /// How long it took at the start of the session, nanoseconds.
    pub(super) first_ns: f64,
}

impl Search<'_> {
    /// Measures the untuned default; counts as an evaluation unless an earlier run spent it.
    ///
    /// # Errors
    /// [`Error::Default`] if it does not work: then nothing can be compared with it.
    pub(super) async fn start(&mut self) -> Result<(), Error> {
        let defaults = self.job.defaults();
        let artifact = match self.build(std::slice::from_ref(&defaults)).await?.pop() {
            Some(Ok(artifact)) => artifact,
            Some(Err(failure)) => return Err(self.no_default(&failure.message)),
            None => return Err(self.no_default("nothing was built")),
        };
        let trial = match self.bench.run(&artifact, None, None).await {
            Ok(trial) => trial,
            Err(error) => return Err(self.no_default(&error.message())),
        };
        if let Some(step) = wrong_step(&artifact, &trial) {
            return Err(self.no_default(&format!("step `{step}` gives wrong numbers")));
        }
        let first_ns = p25(&trial);
        if !self.session.evaluated.contains(&artifact.digest)
            && let Some(reservation) = self.session.budget.reserve()
        {
            self.session.budget.spend(reservation);
            self.record(&defaults, &artifact, &trial, Purpose::Screening, 1.0)
                .await?;
        }
        self.baseline = Some(Baseline { artifact, first_ns });
        Ok(())
    }

    /// Searches until the budget is spent, nothing is promised any more, or the run is cancelled.
    ///
    /// # Errors
    /// What stops the whole run; a failing candidate does not.
    pub(super) async fn screen(&mut self) -> Result<(), Error> {
        let mut stop = StopRule::new(WORTHWHILE, PATIENCE);
        let mut queue: VecDeque<Proposal> = VecDeque::new();
        let mut incumbent = self.best_known();
        let mut round = self.session.budget.n_spent();
        let reserve = self.request.search.max_evaluations.div_ceil(20).clamp(1, 8);
        while self.session.is_open.contains(&true)
            && self.session.budget.n_left() > reserve
            && !self.request.cancellation.is_cancelled()
        {
            let room = (self.session.budget.n_left() - reserve) as usize;
            while queue.len() < self.request.jobs.clamp(1, 8).min(room) {
                let plan = match round {
                    // Each layout once, then mostly that of the best.
                    1..=3 => LayoutPlan::Throughout(LAYOUTS[round as usize % LAYOUTS.len()]),
                    _ if round % 4 == 3 => {
                        LayoutPlan::Throughout(LAYOUTS[(round / 4) as usize % LAYOUTS.len()])
                    }
                    _ => LayoutPlan::Like(&incumbent.candidates),
                };
                let candidates = incumbent.candidates.clone();
                let model_ns = incumbent.cost_ns.max(1.0);
                queue.push_back(propose(
                    self.job,
                    &mut self.session,
                    &candidates,
                    plan,
                    model_ns,
                ));
                round += 1;
            }
            let batch: Vec<Proposal> = queue.drain(..).collect();
            let split = self.evaluate(batch, Purpose::Screening).await?;
            queue.extend(split);
            incumbent = self.best_known();
            let states = self.session.states(self.job);
            if stop
                .after_evaluation(&states, incumbent.cost_ns.max(1.0))
                .is_some()
            {
                break;
            }
        }
        self.release(queue);
        Ok(())
    }

    /// Evaluates proposals and returns smaller ones for those that crashed with several suspects.
    async fn evaluate(
        &mut self,
        batch: Vec<Proposal>,
        purpose: Purpose,
    ) -> Result<Vec<Proposal>, Error> {
        let mut split = Vec::new();
        for (proposal, artifact) in self.build_repaired(batch).await? {
            if self.session.evaluated.contains(&artifact.digest) {
                self.release([proposal]);
                self.bench.discard(&artifact);
                continue;
            }
            let Some(reservation) = self.session.budget.reserve() else {
                self.release([proposal]);
                self.bench.discard(&artifact);
                continue;
            };
            self.session.budget.spend(reservation);
            self.session.evaluated.insert(artifact.digest);
            let drift = self.drift().await;
            let limit = self.baseline.as_ref().map(|b| give_up_ns(b.first_ns));
            let expected = self.baseline.as_ref().map(|b| b.first_ns);
            match self.bench.run(&artifact, expected, limit).await {
                Ok(trial) => {
                    self.record(&proposal.candidates, &artifact, &trial, purpose, drift)
                        .await?;
                }
                Err(error) => split.extend(self.crashed(proposal, &artifact, &error).await?),
            }
            self.bench.discard(&artifact);
        }
        Ok(split)
    }

    /// Builds proposals; candidates that do not build are labelled and replaced.
    async fn build_repaired(
        &mut self,
        batch: Vec<Proposal>,
    ) -> Result<Vec<(Proposal, Artifact)>, Error> {
        let mut open = batch;
        let mut done = Vec::new();
        for _ in 0..MAX_REPAIRS {
            let deployments: Vec<Vec<Candidate>> = open
                .iter()
                .map(|proposal| proposal.candidates.clone())
                .collect();
            let results = self.build(&deployments).await?;
            let mut broken = Vec::new();
            for (mut proposal, result) in open.into_iter().zip(results) {
                match result {
                    Ok(artifact) => done.push((proposal, artifact)),
                    Err(failure) => {
                        if self.repair(&mut proposal, &failure).await? {
                            broken.push(proposal);
                        } else {
                            self.release([proposal]);
                        }
                    }
                }
            }
            if broken.is_empty() {
                return Ok(done);
            }
            open = broken;
        }
        self.release(open);
        Ok(done)
    }

    /// Labels the candidate to blame and puts the default in its place. Returns whether there is
    /// one to blame.
    async fn repair(&mut self, proposal: &mut Proposal, failure: &Failure) -> Result<bool, Error> {
        let Some(subgraph) = failure.subgraph else {
            return Ok(false);
        };
        let label = ledger::failure(self.job, subgraph, &proposal.candidates[subgraph], failure);
        let task = self.job.task_of[subgraph];
        self.session.learn(task, &label, 1.0);
        self.store
            .record(Batch {
                evaluations: Vec::new(),
                labels: vec![label],
            })
            .await?;
        let default = self.job.prepared.default_candidate(subgraph);
        let is_default = proposal.candidates[subgraph] == default;
        proposal.candidates[subgraph] = default;
        proposal.new.retain(|&new| new != subgraph);
        Ok(!is_default)
    }

    /// Finds out which candidate ended the worker: the only suspect, or one of two halves.
    async fn crashed(
        &mut self,
        proposal: Proposal,
        artifact: &Artifact,
        error: &WorkerError,
    ) -> Result<Vec<Proposal>, Error> {
        self.bench.reset();
        let outcome = error.outcome();
        let evaluation = ledger::evaluation(self.job, artifact, Purpose::Screening, Err(error), 0);
        let mut labels = Vec::new();
        let mut split = Vec::new();
        let is_suspect = |&subgraph: &usize| {
            let proven = &self.session.proven[self.job.task_of[subgraph]];
            !proven.contains(&proposal.candidates[subgraph].mapping)
        };
        let suspects: Vec<usize> = proposal.new.iter().copied().filter(is_suspect).collect();
        match suspects.as_slice() {
            [subgraph] if outcome.is_final() => {
                let message = error.message();
                let failure = Failure {
                    subgraph: Some(*subgraph),
                    outcome,
                    message,
                };
                let candidate = &proposal.candidates[*subgraph];
                labels.push(ledger::failure(self.job, *subgraph, candidate, &failure));
            }
            [_, _, ..] if outcome.is_final() => {
                for half in suspects.chunks(suspects.len().div_ceil(2)) {
                    let mut smaller = proposal.clone();
                    for subgraph in suspects.iter().filter(|subgraph| !half.contains(subgraph)) {
                        smaller.candidates[*subgraph] =
                            self.job.prepared.default_candidate(*subgraph);
                    }
                    smaller.new = half.to_vec();
                    split.push(smaller);
                }
            }
            _ => self.release([proposal.clone()]),
        }
        for label in &labels {
            if let Some(task) = self
                .job
                .tasks
                .iter()
                .position(|task| task.key == label.task)
            {
                self.session.learn(task, label, 1.0);
            }
        }
        let n_failures = labels.len().max(1);
        self.store
            .record(Batch {
                evaluations: vec![evaluation],
                labels,
            })
            .await?;
        self.report_evaluation(0, n_failures);
        Ok(split)
    }

    /// Records a trial at once, and learns from it.
    pub(super) async fn record(
        &mut self,
        candidates: &[Candidate],
        artifact: &Artifact,
        trial: &Trial,
        purpose: Purpose,
        drift: f64,
    ) -> Result<(), Error> {
        let labels = ledger::labels(self.job, candidates, artifact, trial);
        let mut evaluation =
            ledger::evaluation(self.job, artifact, purpose, Ok(trial), labels.len());
        let baseline = self
            .baseline
            .as_ref()
            .map(|baseline| baseline.first_ns * drift);
        evaluation.ratio_to_baseline = evaluation
            .run_p25_ns
            .zip(baseline)
            .map(|(ns, baseline)| ns / baseline);
        let batch = Batch {
            evaluations: vec![evaluation],
            labels: labels.iter().map(|(_, label)| label.clone()).collect(),
        };
        self.store.record(batch).await?;
        self.session.evaluated.insert(artifact.digest);
        let mut n_failures = 0;
        for (task, label) in &labels {
            n_failures += usize::from(label.outcome != Outcome::Ok);
            if let Some(task) = task {
                self.session.learn(*task, label, drift);
            }
        }
        for (step, spec) in artifact.steps.iter().enumerate() {
            let latency = Latency::of(&trial.profile.steps_ns[step]);
            if let (Some(what), Some(latency)) = (&spec.conversion, latency) {
                self.session.learn_side(what, latency.p25_ns / drift);
            }
        }
        self.report_evaluation(labels.len(), n_failures);
        Ok(())
    }

    /// Returns how much slower the device is than at the start of the session.
    async fn drift(&mut self) -> f64 {
        let Some(baseline) = &self.baseline else {
            return 1.0;
        };
        let (artifact, first_ns) = (baseline.artifact.clone(), baseline.first_ns);
        let Ok(trial) = self.bench.glance(&artifact, first_ns).await else {
            return 1.0;
        };
        let drift = trial / first_ns;
        if has_drifted(drift - 1.0) {
            tracing::debug!(drift, "the baseline drifted");
        }
        drift
    }

    /// Returns the deployment that should be fastest, or the default.
    pub(super) fn best_known(&self) -> Composed {
        let defaults = self.job.defaults();
        let best = composer::best(self.job, &self.session, &defaults, 1)
            .into_iter()
            .next();
        best.unwrap_or(Composed {
            candidates: defaults,
            cost_ns: 0.0,
        })
    }

    /// Builds deployments.
    ///
    /// # Errors
    /// If something other than a candidate is wrong.
    pub(super) async fn build(
        &self,
        deployments: &[Vec<Candidate>],
    ) -> Result<Vec<super::bench::Built>, Error> {
        let built = self.bench.build(deployments).await?;
        built.map_err(|source: BackendError| Error::Backend {
            model: self.job.model.name.clone(),
            target: self.job.target.name.clone(),
            source,
        })
    }

    fn release(&mut self, proposals: impl IntoIterator<Item = Proposal>) {
        for proposal in proposals {
            for subgraph in proposal.new {
                let task = self.job.task_of[subgraph];
                if let Some(search) = &mut self.session.searches[task] {
                    search.release(&proposal.candidates[subgraph].mapping);
                }
            }
        }
    }

    fn report_evaluation(&self, n_labels: usize, n_failures: usize) {
        let baseline_ns = self
            .baseline
            .as_ref()
            .map_or(0.0, |baseline| baseline.first_ns);
        self.reporter.report(&Event::EvaluationFinished {
            n_evaluations: self.session.budget.n_spent(),
            max_evaluations: self.session.budget.max_evaluations(),
            n_labels,
            n_failures,
            baseline_ns,
            best_ns: self.best_known().cost_ns,
        });
    }

    fn no_default(&self, message: &str) -> Error {
        Error::Default {
            model: self.job.model.name.clone(),
            target: self.job.target.name.clone(),
            message: message.to_owned(),
        }
    }
}

/// Returns the lower quartile of whole runs, nanoseconds.
pub(super) fn p25(trial: &Trial) -> f64 {
    Latency::of(&trial.profile.run_ns).map_or(f64::INFINITY, |latency| latency.p25_ns)
}

/// Returns the first step whose numbers are wrong.
pub(super) fn wrong_step<'a>(artifact: &'a Artifact, trial: &Trial) -> Option<&'a str> {
    let steps = artifact.steps.iter().zip(&trial.verified.steps);
    let is_wrong = |check: &crate::measure::protocol::StepCheck| {
        check.compared
            && check
                .relative_l2
                .is_none_or(|distance| distance > ledger::TOLERANCE)
    };
    steps
        .filter(|(_, check)| is_wrong(check))
        .map(|(step, _)| step.name.as_str())
        .next()
}
