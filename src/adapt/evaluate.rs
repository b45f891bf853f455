//! One batch of proposals through compiler and device: what they did is recorded, and whoever is to
//! blame for a failure is found.

use super::Error;
use super::bench::Trial;
use super::job::Choices;
use super::ledger;
use super::pipeline::Underway;
use super::propose::Proposal;
use super::search::Search;
use crate::backend::{Artifact, Failure};
use crate::event::Event;
use crate::label::{Latency, Outcome, Purpose};
use crate::measure::WorkerError;
use crate::measure::stats::has_drifted;
use crate::search::give_up_ns;
use crate::store::Batch;

/// How often a deployment is repaired whose candidates fail to build, before it is given up.
const MAX_REPAIRS: usize = 8;

impl Search<'_> {
    /// Measures what was built and returns smaller proposals for those that crashed with several
    /// suspects.
    pub(super) async fn evaluate(
        &mut self,
        built: Vec<(Proposal, Artifact)>,
        purpose: Purpose,
    ) -> Result<Vec<Proposal>, Error> {
        let mut split = Vec::new();
        for (proposal, artifact) in built {
            if self.session.evaluated.contains(&artifact.digest) {
                // Other mappings, the same code: held, or they would be proposed again at once.
                self.bench.discard(&artifact);
                continue;
            }
            let reservation = if self.request.cancellation.is_cancelled() {
                None
            } else {
                self.session.budget.reserve()
            };
            let Some(reservation) = reservation else {
                self.release([proposal]);
                self.bench.discard(&artifact);
                continue;
            };
            self.session.budget.spend(reservation);
            self.session.evaluated.insert(artifact.digest);
            let drift = self.drift().await;
            let limit = self
                .baseline
                .as_ref()
                .map(|b| give_up_ns(b.first_ns.min(self.best_run_ns) * drift.max(1.0)));
            let expected = self.baseline.as_ref().map(|b| b.first_ns);
            match self.bench.run(&artifact, expected, limit).await {
                Ok(trial) => {
                    let choices = self.job.choices(proposal.candidates);
                    self.record(&choices, &artifact, &trial, purpose, drift)
                        .await?;
                }
                Err(error) => split.extend(self.crashed(proposal, &artifact, &error).await?),
            }
            self.bench.discard(&artifact);
        }
        Ok(split)
    }

    /// Waits for proposals to be built; candidates that do not build are labelled and replaced.
    pub(super) async fn finish_batch(
        &mut self,
        batch: Underway,
    ) -> Result<Vec<(Proposal, Artifact)>, Error> {
        let mut open = batch.proposals;
        let mut building = batch.building;
        let mut done = Vec::new();
        for _ in 0..MAX_REPAIRS {
            let results = self.built(building).await?;
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
            let choices = open.iter().map(|p| p.candidates.clone());
            let choices = choices.map(|candidates| self.job.choices(candidates));
            building = self.bench.start(choices.collect(), false);
        }
        self.release(open);
        Ok(done)
    }

    /// Labels the candidate to blame and puts the default in its place. Returns whether there is
    /// one to blame.
    async fn repair(&mut self, proposal: &mut Proposal, failure: &Failure) -> Result<bool, Error> {
        let Some(subgraph) = failure.subgraph else {
            self.warn(failure);
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
        proposal: Proposal,
        artifact: &Artifact,
        error: &WorkerError,
    ) -> Result<Vec<Proposal>, Error> {
        self.bench.reset();
        let outcome = error.outcome();
        let time_ms = self.session.stamp(ledger::now_ms());
        let evaluation = ledger::evaluation(
            self.job,
            artifact,
            Purpose::Screening,
            Err(error),
            0,
            time_ms,
        );
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

    /// Records a trial at once, and learns from it if it was under the options of the search.
    pub(super) async fn record(
        &mut self,
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
        self.store.record(batch).await?;
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
    async fn drift(&mut self) -> f64 {
        let Some(baseline) = &self.baseline else {
            return 1.0;
        };
        let (artifact, first_ns) = (baseline.artifact.clone(), baseline.first_ns);
        let Ok(trial) = self.bench.glance(&artifact, first_ns).await else {
            return 1.0;
        };
        let drift = trial / first_ns;
        if (drift - 1.0).abs() > self.worst_drift.abs() {
            self.worst_drift = drift - 1.0;
        }
        drift
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
            best_ns: self.best_ns,
        });
    }
}
