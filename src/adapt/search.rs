//! The search of one job: propose, build, check, measure, record, until there is no more to find.

use std::sync::Arc;

use super::bench::{Bench, Building, Built, Trial};
use super::composer::{self, Composed};
use super::job::{Choices, Job};
use super::ledger;
use super::pipeline::Pipeline;
use super::session::Session;
use super::{Error, Request};
use crate::backend::{Artifact, BackendError};
use crate::event::Reporter;
use crate::label::{Latency, Purpose};
use crate::search::StopRule;
use crate::store::LabelStore;

/// Batches in a row without promise after which the search stops.
const PATIENCE: u32 = 4;

/// Share of the latency that an evaluation must promise for the search to go on.
const WORTHWHILE: f64 = 0.003;

/// The search also stops when so many evaluations gained less than [`WORTHWHILE`] in all: promises
/// of many small tasks add up to more than they hold.
const MAX_FRUITLESS: u32 = 40;

/// Evaluations that are kept for other ways to run the best composition as a whole.
const MOST_REFINEMENTS: u32 = 6;

/// Evaluations that are kept for it on fewer threads, however small the budget: where processors are
/// far from each other, small models are up to twice as slow on two as on one.
const FEWER_THREADS: u32 = 1;

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
    /// What the best candidates known add up to, conversions included, nanoseconds; as of the last
    /// batch.
    pub(super) best_ns: f64,
    /// The fastest whole run of this session, nanoseconds.
    pub(super) best_run_ns: f64,
    /// How much slower, or faster, the untuned default ran at most than at the start; a fraction.
    pub(super) worst_drift: f64,
    /// Whether the user knows that there are deployments that cannot be built.
    pub(super) has_warned: bool,
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
        let defaults = self.job.choices(self.job.defaults());
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
        self.baseline = Some(Baseline {
            artifact: artifact.clone(),
            first_ns,
        });
        if !self.session.evaluated.contains(&artifact.digest)
            && let Some(reservation) = self.session.budget.reserve()
        {
            self.session.budget.spend(reservation);
            self.record(&defaults, &artifact, &trial, Purpose::Screening, 1.0)
                .await?;
        }
        Ok(())
    }

    /// Searches until the budget is spent, nothing is promised any more, or the run is cancelled.
    ///
    /// # Errors
    /// What stops the whole run; a failing candidate does not.
    pub(super) async fn screen(&mut self) -> Result<(), Error> {
        let mut pipeline = Pipeline {
            round: self.session.budget.n_spent(),
            ..Pipeline::default()
        };
        let ended = self.screen_batches(&mut pipeline).await;
        self.drain(pipeline).await;
        ended
    }

    async fn screen_batches(&mut self, pipeline: &mut Pipeline) -> Result<(), Error> {
        let mut stop = StopRule::new(WORTHWHILE, PATIENCE);
        self.session.refit();
        let mut incumbent = self.best_known();
        self.best_ns = incumbent.cost_ns;
        let reserve = self.reserve();
        let mut n_empty = 0;
        let mut mark = (self.session.budget.n_spent(), self.best_ns);
        while self.session.is_open.contains(&true)
            && self.session.budget.n_left() > reserve
            && !self.request.cancellation.is_cancelled()
        {
            let room = (self.session.budget.n_left() - reserve) as usize;
            let batch = match pipeline.ahead.take() {
                Some(batch) => batch,
                None => self.start_batch(pipeline, &incumbent, room, false),
            };
            let built = self.finish_batch(batch).await?;
            let room = room.saturating_sub(built.len());
            if self.builds_ahead() && room > 0 && !self.request.cancellation.is_cancelled() {
                pipeline.ahead = Some(self.start_batch(pipeline, &incumbent, room, true));
            }
            let n_spent = self.session.budget.n_spent();
            let split = self.evaluate(built, Purpose::Screening).await?;
            pipeline.queue.extend(split);
            n_empty = match self.session.budget.n_spent() - n_spent {
                0 => n_empty + 1,
                _ => 0,
            };
            if n_empty >= PATIENCE {
                break;
            }
            self.session.refit();
            incumbent = self.best_known();
            self.best_ns = incumbent.cost_ns;
            if self.best_ns < mark.1 * (1.0 - WORTHWHILE) || mark.1 <= 0.0 {
                mark = (self.session.budget.n_spent(), self.best_ns);
            } else if self.session.budget.n_spent() - mark.0 >= MAX_FRUITLESS {
                break;
            }
            let states = self.session.states(self.job);
            if stop
                .after_evaluation(&states, incumbent.cost_ns.max(1.0))
                .is_some()
            {
                break;
            }
        }
        Ok(())
    }

    /// Returns whether the next batch is built while one is measured, for which several threads leave
    /// no processors.
    fn builds_ahead(&self) -> bool {
        self.request.builds_ahead && self.job.target.threads == 1
    }

    /// Returns the evaluations that are kept for the finals: compositions, and other options, which
    /// small budgets have no room for.
    fn reserve(&self) -> u32 {
        let max_evaluations = self.request.search.max_evaluations;
        let n_others = self.job.backend.options().len().saturating_sub(1) as u32;
        let n_others = match max_evaluations {
            0..20 => 0,
            20..40 => n_others,
            _ => n_others + MOST_REFINEMENTS,
        };
        max_evaluations.div_ceil(20).clamp(1, 8) + n_others + self.kept_for_threads()
    }

    /// Returns the evaluations that are kept for fewer threads than the target has.
    pub(super) fn kept_for_threads(&self) -> u32 {
        if self.job.target.threads > 1 {
            FEWER_THREADS
        } else {
            0
        }
    }

    /// Returns the deployment that should be fastest, or else what is locked or the default.
    pub(super) fn best_known(&self) -> Composed {
        let best = composer::best(self.job, &self.session, 1).pop();
        best.unwrap_or_else(|| Composed {
            candidates: self.session.fallback(self.job),
            cost_ns: 0.0,
        })
    }

    /// Builds deployments.
    ///
    /// # Errors
    /// If something other than a candidate is wrong.
    pub(super) async fn build(&self, deployments: &[Choices]) -> Result<Vec<Built>, Error> {
        self.built(self.bench.start(deployments.to_vec(), false))
            .await
    }

    /// Waits for deployments to be built.
    ///
    /// # Errors
    /// If something other than a candidate is wrong.
    pub(super) async fn built(&self, building: Building) -> Result<Vec<Built>, Error> {
        let built = building.finish().await?;
        built.map_err(|source: BackendError| Error::Backend {
            model: self.job.model.name.clone(),
            target: self.job.target.name.clone(),
            source,
        })
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
