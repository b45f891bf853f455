//! One evaluation on the device: what it did is recorded, and whoever is to blame for a failure is
//! found.

use super::Error;
use super::bench::{Trial, TrialError};
use super::job::Choices;
use super::ledger;
use super::propose::Proposal;
use super::search::{Search, p25};
use super::trials::Ticket;
use crate::backend::{Artifact, Failure};
use crate::event::Event;
use crate::label::{Label, Latency, Outcome, Purpose};
use crate::measure::stats::has_drifted;
use crate::queue::{TrialState, Used};
use crate::search::give_up_ns;
use crate::store::Batch;

/// How far a measurement must be from its prediction to be a surprise: by this factor, and by so
/// many standard deviations.
const SURPRISE: f64 = 1.5;
const SURPRISE_SPREADS: f64 = 4.0;

/// What came of an evaluation.
#[derive(Default)]
pub(super) struct Seen {
    /// Smaller proposals, if one of several candidates ended the worker.
    pub(super) split: Vec<Proposal>,
    /// Whether something took another time than was believed.
    pub(super) is_surprising: bool,
}

/// A candidate that took another time than was believed.
struct Surprise {
    subgraph: usize,
    predicted_ns: f64,
    measured_ns: f64,
}

impl Search<'_> {
    /// Measures what was built, when it is its turn.
    pub(super) async fn evaluate(
        &mut self,
        ticket: Ticket,
        proposal: Proposal,
        artifact: Artifact,
    ) -> Result<Seen, Error> {
        if self.session.evaluated.contains(&artifact.digest) {
            // Other mappings, the same code: held, or they would be proposed again at once.
            self.bench.discard(&artifact);
            self.trials.drop(ticket).await?;
            return Ok(Seen::default());
        }
        let reservation = if self.is_stopped()? {
            None
        } else {
            self.session.budget.reserve()
        };
        let turn = match reservation {
            Some(_) => self.trials.turn(ticket).await?,
            None => None,
        };
        let (Some(reservation), Some(turn)) = (reservation, turn) else {
            self.release([proposal]);
            self.bench.discard(&artifact);
            self.trials.drop(ticket).await?;
            return Ok(Seen::default());
        };
        self.session.budget.spend(reservation);
        self.trials.count(self.used());
        self.session.evaluated.insert(artifact.digest);
        let drift = self.drift().await?;
        let limit = self
            .baseline
            .as_ref()
            .map(|b| give_up_ns(b.first_ns.min(self.best_run_ns) * drift.max(1.0)));
        let expected = self.baseline.as_ref().map(|b| b.first_ns);
        let mut seen = Seen::default();
        match self.bench.run(&artifact, expected, limit).await? {
            Ok(trial) => {
                let choices = self.job.choices(proposal.candidates.clone());
                let (trial, is_surprising) =
                    self.look_again(&proposal, &artifact, trial, drift).await?;
                drop(turn);
                let purpose = Purpose::Screening;
                self.record(Some(ticket), &choices, &artifact, &trial, purpose, drift)
                    .await?;
                seen.is_surprising = is_surprising;
            }
            Err(error) => {
                drop(turn);
                seen.split = self.crashed(ticket, proposal, &artifact, &error).await?;
            }
        }
        self.bench.discard(&artifact);
        Ok(seen)
    }

    /// Measures an artifact once more if a candidate in it that is new took another time than was
    /// believed: either the measurement is wrong, or the belief. Returns all samples, and whether
    /// there was a surprise.
    async fn look_again(
        &mut self,
        proposal: &Proposal,
        artifact: &Artifact,
        trial: Trial,
        drift: f64,
    ) -> Result<(Trial, bool), Error> {
        let surprises = self.surprises(proposal, artifact, &trial, drift);
        if surprises.is_empty() || trial.profile.gave_up {
            return Ok((trial, false));
        }
        let expected = Some(p25(&trial));
        let Ok(again) = self.bench.run(artifact, expected, None).await? else {
            return Ok((trial, true));
        };
        for surprise in surprises {
            let again_ns = ledger::latency(artifact, &again, surprise.subgraph);
            self.reporter.report(&Event::Surprise {
                subgraph: surprise.subgraph,
                predicted_ns: surprise.predicted_ns,
                measured_ns: surprise.measured_ns,
                again_ns: again_ns.map_or(f64::INFINITY, |ns| ns / drift),
            });
        }
        Ok((trial.with(again), true))
    }

    /// Returns the new candidates of a proposal that took another time than was believed.
    fn surprises(
        &self,
        proposal: &Proposal,
        artifact: &Artifact,
        trial: &Trial,
        drift: f64,
    ) -> Vec<Surprise> {
        let surprise = |&subgraph: &usize| {
            let search = self.session.searches[self.job.task_of[subgraph]].as_ref()?;
            let belief = search.estimate(&proposal.candidates[subgraph].mapping)?;
            let measured_ns = ledger::latency(artifact, trial, subgraph)? / drift;
            let distance = (measured_ns / belief.ns).ln().abs();
            let bound = SURPRISE.ln().max(SURPRISE_SPREADS * belief.spread);
            (distance > bound).then_some(Surprise {
                subgraph,
                predicted_ns: belief.ns,
                measured_ns,
            })
        };
        proposal.new.iter().filter_map(surprise).collect()
    }

    /// Labels the candidate to blame and puts the default in its place. Returns whether there is
    /// one to blame.
    pub(super) async fn repair(
        &mut self,
        proposal: &mut Proposal,
        failure: &Failure,
    ) -> Result<bool, Error> {
        let Some(subgraph) = failure.subgraph else {
            // Compilers that are at work when a run is cancelled are ended.
            if !self.trials.is_cancelled() {
                self.warn(failure);
            }
            return Ok(false);
        };
        let label = ledger::failure(self.job, subgraph, &proposal.candidates[subgraph], failure);
        let task = self.job.task_of[subgraph];
        self.session.learn(task, &label, 1.0);
        let batch = Batch {
            evaluations: Vec::new(),
            labels: vec![label],
        };
        self.trials.record(batch).await?;
        let default = self.job.prepared.default_candidate(subgraph);
        let is_default = proposal.candidates[subgraph] == default;
        proposal.candidates[subgraph] = default;
        proposal.new.retain(|&new| new != subgraph);
        Ok(!is_default)
    }

    /// Says once that deployments cannot be built for which no candidate is to blame.
    fn warn(&mut self, failure: &Failure) {
        if !std::mem::replace(&mut self.has_warned, true) {
            self.reporter.report(&Event::Warning {
                code: "not-built",
                subject: &self.job.model.name,
                detail: &failure.message,
            });
        }
    }

    /// Finds out which candidate ended the worker: the only suspect, or one of two halves.
    async fn crashed(
        &mut self,
        ticket: Ticket,
        proposal: Proposal,
        artifact: &Artifact,
        error: &TrialError,
    ) -> Result<Vec<Proposal>, Error> {
        self.bench.reset();
        let outcome = error.outcome;
        let mut labels = Vec::new();
        let mut split = Vec::new();
        let is_suspect = |&subgraph: &usize| {
            let proven = &self.session.proven[self.job.task_of[subgraph]];
            !proven.contains(&proposal.candidates[subgraph].mapping)
        };
        let suspects: Vec<usize> = proposal.new.iter().copied().filter(is_suspect).collect();
        match suspects.as_slice() {
            [subgraph] if outcome.is_final() => {
                let message = error.message.clone();
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
        let purpose = Purpose::Screening;
        self.record_failure(Some(ticket), artifact, error, purpose, labels)
            .await?;
        Ok(split)
    }

    /// Records at once how an artifact failed as a whole, with the labels of those to blame.
    pub(super) async fn record_failure(
        &mut self,
        ticket: Option<Ticket>,
        artifact: &Artifact,
        error: &TrialError,
        purpose: Purpose,
        labels: Vec<Label>,
    ) -> Result<(), Error> {
        let time_ms = self.session.stamp(ledger::now_ms());
        let evaluation = ledger::evaluation(self.job, artifact, purpose, Err(error), 0, time_ms);
        let n_failures = labels.len().max(1);
        let batch = Batch::of(evaluation, labels);
        self.trials.end(ticket, TrialState::Failed, batch).await?;
        self.report_evaluation(0, n_failures);
        Ok(())
    }

    /// Records a trial at once, and learns from it if it was under the options of the search.
    pub(super) async fn record(
        &mut self,
        ticket: Option<Ticket>,
        choices: &Choices,
        artifact: &Artifact,
        trial: &Trial,
        purpose: Purpose,
        drift: f64,
    ) -> Result<(), Error> {
        let labels = ledger::labels(self.job, choices, artifact, trial);
        let time_ms = self.session.stamp(ledger::now_ms());
        let mut evaluation = ledger::evaluation(
            self.job,
            artifact,
            purpose,
            Ok(trial),
            labels.len(),
            time_ms,
        );
        let baseline = self
            .baseline
            .as_ref()
            .map(|baseline| baseline.first_ns * drift);
        evaluation.ratio_to_baseline = evaluation
            .run_p25_ns
            .zip(baseline)
            .map(|(ns, baseline)| ns / baseline);
        if let Some(ns) = evaluation.run_p25_ns {
            self.best_run_ns = self.best_run_ns.min(ns / drift);
        }
        let batch = Batch {
            evaluations: vec![evaluation],
            labels: labels.iter().map(|(_, label)| label.clone()).collect(),
        };
        self.trials.end(ticket, TrialState::Recorded, batch).await?;
        self.session.evaluated.insert(artifact.digest);
        let failures = labels.iter().filter(|(_, l)| l.outcome != Outcome::Ok);
        self.report_evaluation(labels.len(), failures.count());
        if choices.options != self.job.options() {
            return Ok(());
        }
        for (task, label) in &labels {
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
        Ok(())
    }

    /// Returns how much slower the device is than at the start of the session.
    async fn drift(&mut self) -> Result<f64, Error> {
        let Some(baseline) = &self.baseline else {
            return Ok(1.0);
        };
        let (artifact, first_ns) = (baseline.artifact.clone(), baseline.first_ns);
        let Ok(trial) = self.bench.glance(&artifact, first_ns).await? else {
            return Ok(1.0);
        };
        let drift = trial / first_ns;
        if (drift - 1.0).abs() > self.worst_drift.abs() {
            self.worst_drift = drift - 1.0;
        }
        Ok(drift)
    }

    pub(super) fn release(&mut self, proposals: impl IntoIterator<Item = Proposal>) {
        for proposal in proposals {
            for subgraph in proposal.new {
                let task = self.job.task_of[subgraph];
                if let Some(search) = &mut self.session.searches[task] {
                    search.release(&proposal.candidates[subgraph].mapping);
                }
            }
        }
    }

    /// Says so if the untuned default did not run at one speed: latencies are corrected for it, and
    /// what is locked was compared interleaved, but a quieter machine finds more.
    pub(super) fn report_drift(&self) {
        if has_drifted(self.worst_drift) {
            let percent = self.worst_drift * 100.0;
            self.reporter.report(&Event::Warning {
                code: "baseline-drift",
                subject: &self.job.target.name,
                detail: &format!("the untuned default varied by {percent:+.0} % during the search"),
            });
        }
    }

    /// Returns what the queue is told of.
    pub(super) fn used(&self) -> Used {
        Used {
            n_evaluations: self.session.budget.n_spent(),
            disk_bytes: self.bench.disk_bytes(),
        }
    }

    /// Says that an evaluation is over.
    fn report_evaluation(&mut self, n_labels: usize, n_failures: usize) {
        let baseline_ns = self
            .baseline
            .as_ref()
            .map_or(0.0, |baseline| baseline.first_ns);
        let spent = self.spent();
        let left = self.left(&spent);
        self.trials.count(self.used());
        self.reporter.report(&Event::EvaluationFinished {
            spent,
            time_left: self.pace.evaluated(spent.elapsed, left),
            n_evaluations: self.session.budget.n_spent(),
            max_evaluations: self.session.budget.max_evaluations(),
            n_labels,
            n_failures,
            baseline_ns,
            best_ns: self.best_ns,
        });
    }
}
