//! The search of one job: propose, build, check, measure, record, until there is no more to find.

use std::time::{Duration, Instant};

use super::bench::{Bench, Built, Need, Trial};
use super::composer::{self, Composed};
use super::job::{Choices, Job};
use super::journal::{Entry, Stop};
use super::ledger;
use super::pipeline::Flight;
use super::session::Session;
use super::trials::{Ticket, Trials, Turn};
use super::{Error, Request};
use crate::backend::{Artifact, BackendError};
use crate::event::{Reporter, Spent};
use crate::label::{Latency, Purpose};
use crate::queue::TrialState;
use crate::search::{Left, Pace, StopRule};

/// Evaluations in a row without promise after which the search stops.
const PATIENCE: u32 = 8;

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
    /// Where trials take their turns, and records go.
    pub(super) trials: Trials<'a>,
    /// When the run began.
    pub(super) started: Instant,
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
    /// How fast it goes.
    pub(super) pace: Pace,
    /// Whether the finals have begun.
    pub(super) is_final: bool,
    /// Whether the user knows that there are deployments that cannot be built.
    pub(super) has_warned: bool,
    /// Whether what all is compared with is of another structure of the model, so that its own
    /// untuned default is a candidate like others.
    pub(super) rivals_default: bool,
}

/// The untuned default.
#[derive(Clone)]
pub(super) struct Baseline {
    /// Its library.
    pub(super) artifact: Artifact,
    /// How long it took at the start of the session, nanoseconds.
    pub(super) first_ns: f64,
}

impl Search<'_> {
    /// Returns whether the run is to end, and why.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub(super) fn stop(&mut self) -> Result<Option<Stop>, Error> {
        let usage = self.bench.usage();
        let (trials, limits, started) = (&self.trials, &self.request.limits, self.started);
        self.bench.stop(|| {
            let is_over = |limit: Option<Duration>, spent| limit.is_some_and(|l| spent >= l);
            if trials.is_cancelled() {
                Some(Stop::Cancelled)
            } else if is_over(limits.max_time, started.elapsed()) {
                Some(Stop::Time)
            } else if is_over(limits.max_compile_time, usage.compiling) {
                Some(Stop::CompileTime)
            } else {
                None
            }
        })
    }

    /// Returns what was used of the budgets.
    pub(super) fn spent(&self) -> Spent {
        let limits = &self.request.limits;
        Spent {
            elapsed: self.started.elapsed(),
            max_time: limits.max_time,
            compile_time: self.bench.usage().compiling,
            max_compile_time: limits.max_compile_time,
            disk_bytes: self.bench.disk_bytes(),
            max_disk_bytes: limits.max_disk.0,
        }
    }

    /// Returns what is left of the search at most.
    pub(super) fn left(&self, spent: &Spent) -> Left {
        let n_left = self.session.budget.n_left();
        let n_evaluations = if self.is_final {
            n_left.min(self.reserve())
        } else {
            n_left
        };
        let left = |max: Option<Duration>, used| max.map(|max| max.saturating_sub(used));
        let time = left(spent.max_time, spent.elapsed);
        // As fast as so far: compilers of several builds run at a time.
        let compile_time = left(spent.max_compile_time, spent.compile_time).map(|left| {
            let pace = spent.elapsed.as_secs_f64() / spent.compile_time.as_secs_f64();
            Duration::try_from_secs_f64(left.as_secs_f64() * pace).unwrap_or(Duration::MAX)
        });
        let time = time.into_iter().chain(compile_time).min();
        Left {
            n_evaluations,
            time: time.filter(|_| !self.is_final),
        }
    }

    /// Returns whether nothing is to be explored any more.
    ///
    /// # Errors
    /// As [`Self::stop`].
    pub(super) fn is_stopped(&mut self) -> Result<bool, Error> {
        Ok(self.stop()?.is_some())
    }

    /// Returns whether somebody waits for the end: finals are kept short then. A search that has
    /// spent its time has finals all the same.
    ///
    /// # Errors
    /// As [`Self::stop`].
    pub(super) fn is_cancelled(&mut self) -> Result<bool, Error> {
        Ok(self.stop()? == Some(Stop::Cancelled))
    }

    /// Begins a trial; `None` if another run is at it, or if it never came to an end.
    ///
    /// # Errors
    /// If the store does not work.
    pub(super) async fn begin(
        &mut self,
        choices: &Choices,
        purpose: Purpose,
    ) -> Result<Option<Ticket>, Error> {
        if self.bench.replays() == Some(&Entry::Refused) {
            self.bench.note(&Entry::Refused)?;
            return Ok(None);
        }
        let ticket = self.trials.begin(choices, purpose).await?;
        if ticket.is_none() {
            self.bench.note(&Entry::Refused)?;
        }
        Ok(ticket)
    }

    /// Measures the untuned default; counts as an evaluation unless an earlier run spent it.
    ///
    /// # Errors
    /// [`Error::Default`] if it does not work: then nothing can be compared with it.
    pub(super) async fn start(&mut self) -> Result<(), Error> {
        let defaults = self.job.choices(self.job.defaults());
        let (ticket, built) = self.build(&defaults, Purpose::Screening).await?;
        let artifact = match built {
            Ok(artifact) => artifact,
            Err(failure) => return Err(self.no_default(&failure.message)),
        };
        // It runs even if the run is to end: nothing can be decided without it.
        let turn = self.trials.patient_turn(ticket).await?;
        let trial = match self.bench.run(&artifact, None, None).await? {
            Ok(trial) => trial,
            Err(error) => return Err(self.no_default(&error.message)),
        };
        drop(turn);
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
            let purpose = Purpose::Screening;
            self.record(ticket, &defaults, &artifact, &trial, purpose, 1.0)
                .await?;
        } else {
            self.trials.drop(ticket).await?;
        }
        Ok(())
    }

    /// Waits for the device to compare deployments on.
    ///
    /// # Errors
    /// If the store does not work.
    pub(super) async fn confirm(&mut self) -> Result<(Option<Ticket>, Turn), Error> {
        let defaults = self.job.choices(self.job.defaults());
        let ticket = self.begin(&defaults, Purpose::Confirm).await?;
        // All of them are built already.
        for state in [TrialState::Compiling, TrialState::Compiled] {
            self.trials.advance(ticket, state).await?;
        }
        let turn = self.trials.patient_turn(ticket).await?;
        Ok((ticket, turn))
    }

    /// Searches until the budget is spent, nothing is promised any more, or the run is stopped.
    ///
    /// # Errors
    /// What stops the whole run; a failing candidate does not.
    pub(super) async fn screen(&mut self) -> Result<(), Error> {
        let mut flight = Flight::new(self.session.budget.n_spent());
        let ended = self.screen_with(&mut flight).await;
        self.abandon(flight).await?;
        ended
    }

    async fn screen_with(&mut self, flight: &mut Flight) -> Result<(), Error> {
        let mut stop = StopRule::new(WORTHWHILE, PATIENCE);
        self.session.refit();
        let mut incumbent = self.best_known();
        self.best_ns = incumbent.cost_ns;
        let reserve = self.reserve();
        let mut n_empty = 0;
        let mut mark = (self.session.budget.n_spent(), self.best_ns);
        while self.session.is_open.contains(&true) {
            self.fill(flight, &incumbent, reserve).await?;
            let n_before = self.session.budget.n_spent();
            let Some(first) = self.bench.built().await? else {
                break;
            };
            // What is built already goes to the device before anything else is thought about,
            // unless it surprised.
            let mut built = Some(first);
            while let Some((build, result)) = built {
                let is_surprising = self.take(flight, build, result).await?;
                built = if is_surprising {
                    None
                } else {
                    self.bench.ready()?
                };
            }
            n_empty = match self.session.budget.n_spent() - n_before {
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
            let model_ns = incumbent.cost_ns.max(1.0);
            if stop.after_evaluation(&states, model_ns).is_some() {
                break;
            }
        }
        Ok(())
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

    /// Builds a deployment, while nothing else is built, with all compilers; it is a trial unless
    /// another run is at the same one.
    ///
    /// # Errors
    /// If something other than a candidate is wrong.
    pub(super) async fn build(
        &mut self,
        choices: &Choices,
        purpose: Purpose,
    ) -> Result<(Option<Ticket>, Built), Error> {
        let ticket = self.begin(choices, purpose).await?;
        self.bench.launch(choices, Need::Decision)?;
        self.trials.advance(ticket, TrialState::Compiling).await?;
        let Some((_, result)) = self.bench.built().await? else {
            return Err(Error::Panicked);
        };
        let built = self.expect_backend(result)?;
        let state = match &built {
            Ok(_) => TrialState::Compiled,
            Err(_) => TrialState::Failed,
        };
        self.trials.advance(ticket, state).await?;
        Ok((ticket, built))
    }

    /// Returns what was built if the backend works.
    pub(super) fn expect_backend(
        &self,
        built: Result<Built, BackendError>,
    ) -> Result<Built, Error> {
        built.map_err(|source| {
            // Whoever wants to go waits for no disk.
            if source.is_disk_full() && self.trials.is_cancelled() {
                return Error::Interrupted;
            }
            Error::Backend {
                model: self.job.model.name.clone(),
                target: self.job.target.name.clone(),
                source,
            }
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
