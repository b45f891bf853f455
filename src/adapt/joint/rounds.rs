//! The rounds: measure, plan, search, and decide.

use std::collections::BTreeMap;

use tracing::Instrument as _;

use super::catalogue::Catalogue;
use super::gate::Gate;
use super::plan::{Plans, plan};
use super::study::Study;
use crate::adapt::adaptation::{Earlier, Settled, adapt, close, failed_state, open, span};
use crate::adapt::finals::decide;
use crate::adapt::job::{Job, Source};
use crate::adapt::locked::deployment;
use crate::adapt::search::{Baseline, Search};
use crate::adapt::session::Session;
use crate::adapt::{Error, OpenBackend, Request};
use crate::calibrate::{ModelSamples, Recipe};
use crate::config::{Model, SearchSettings};
use crate::device::Target;
use crate::event::{Event, Reporter};
use crate::lock::Lockfile;
use crate::queue::JobState;
use crate::store::{LabelStore as _, Sqlite};

/// How often the fastest whole is planned.
const ROUNDS: usize = 4;

/// How often a plan is corrected by what it costs in accuracy as a whole.
const CORRECTIONS: usize = 5;

/// How often a recipe is given up that was right on the samples it was compared on, and not on those for
/// the last check.
const GATES: usize = 3;

/// How often the mappings of one recipe are searched.
const MOST_SEARCHES: u32 = 2;

/// Share of the evaluations that are left that the search of one recipe may spend.
const SLICE: f64 = 0.5;

/// Everything that an adaptation with variants is of.
pub(in crate::adapt) struct Joint<'a> {
    pub(in crate::adapt) request: &'a Request,
    pub(in crate::adapt) reporter: &'a dyn Reporter,
    pub(in crate::adapt) model: &'a Model,
    pub(in crate::adapt) target: &'a Target,
    pub(in crate::adapt) source: &'a Source,
    pub(in crate::adapt) open_backend: &'a OpenBackend<'a>,
    pub(in crate::adapt) store: Sqlite,
    pub(in crate::adapt) samples: &'a ModelSamples,
}

/// A recipe that was measured.
struct Tried {
    recipe: Recipe,
    source: Source,
    /// Its fastest whole run, nanoseconds.
    ns: f64,
    /// Its error on the samples for checks, as a share of the limit.
    error: f64,
}

/// A recipe that is to be measured.
struct Next {
    recipe: Recipe,
    /// Latency that it should have, nanoseconds, if anything is known.
    predicted_ns: Option<f64>,
    /// Its error on the samples for checks, as a share of the limit.
    error: f64,
}

/// How far the rounds have come.
struct Rounds<'a> {
    joint: &'a Joint<'a>,
    study: &'a Study<'a>,
    catalogue: &'a Catalogue,
    /// The parts of the catalogue on the target.
    parts: &'a Job<'a>,
    /// The model as it is on the target.
    base: &'a Job<'a>,
    baseline: Baseline,
    lockfile: &'a Lockfile,
    tried: Vec<Tried>,
    n_searches: BTreeMap<Recipe, u32>,
    n_spent: u32,
    /// Error that a recipe may have on the samples that it is compared on, as a share of the limit.
    room: f64,
}

/// What became of a recipe in the end.
enum Finish {
    /// It is to be locked.
    Settled(Box<Settled>),
    /// The model is as fast, or it does not run.
    Slower,
    /// It does not keep to the limits: by how much, as a multiple.
    Missed(f64),
}

impl Joint<'_> {
    /// Searches variants and mappings; `None` if the run was cancelled before it had anything to keep.
    ///
    /// # Errors
    /// What stops the whole run.
    pub(in crate::adapt) async fn adapt(
        &self,
        base: &Job<'_>,
        earlier: Earlier<'_>,
    ) -> Result<Option<Settled>, Error> {
        let limits = self.samples.limits(self.source.graph());
        let study = tokio::task::block_in_place(|| {
            Study::new(self.source, &self.samples.calibration, &limits)
        });
        let study = study.map_err(|source| self.failed(source))?;
        let catalogue = Catalogue::new(&study, base.backend.as_ref());
        let parts = catalogue.job(self.request, self.model, self.target, self.open_backend)?;
        let request = self.request_for(1);
        let nothing = Earlier::nothing(earlier.lockfile);
        let store = self.store.clone();
        let Some(mut first) = open(&request, self.reporter, base, store, &nothing).await? else {
            return Ok(None);
        };
        let started = first.start().instrument(span(base)).await;
        let baseline = match (started, first.baseline.clone()) {
            (Ok(()), Some(baseline)) => baseline,
            (Ok(()), None) => return Err(Error::Panicked),
            (Err(error), _) => {
                close(&mut first, failed_state(&error)).await?;
                return match error {
                    Error::Interrupted => Ok(None),
                    error => Err(error),
                };
            }
        };
        let mut rounds = Rounds {
            joint: self,
            study: &study,
            catalogue: &catalogue,
            parts: &parts,
            base,
            baseline,
            lockfile: earlier.lockfile,
            tried: Vec::new(),
            n_searches: BTreeMap::new(),
            n_spent: first.session.budget.n_spent(),
            room: 1.0,
        };
        let settled = rounds.run().await;
        let state = settled.as_ref().err().map_or(JobState::Done, failed_state);
        close(&mut first, state).await?;
        drop(first);
        match settled {
            Ok(None) => {
                let request = self.request_for(rounds.n_left().max(1));
                adapt(&request, self.reporter, base, self.store.clone(), earlier).await
            }
            Err(Error::Interrupted) => Ok(None),
            settled => settled,
        }
    }

    /// Returns the request with another number of evaluations.
    fn request_for(&self, max_evaluations: u32) -> Request {
        Request {
            search: SearchSettings {
                max_evaluations,
                ..self.request.search
            },
            ..self.request.clone()
        }
    }

    pub(super) fn failed(&self, source: crate::onnx::Error) -> Error {
        Error::Model {
            model: self.model.name.clone(),
            source: Box::new(source),
        }
    }
}

impl Rounds<'_> {
    /// Searches recipes, and decides on one; `None` if none is faster than the model within the
    /// limits.
    async fn run(&mut self) -> Result<Option<Settled>, Error> {
        let recipe = self.study.fit.all_integer();
        let error = self.error(&recipe)?;
        self.joint.reporter.report(&Event::VariantsStudied {
            model: &self.joint.model.name,
            n_sites: self.study.fit.sites.len(),
            n_variable: recipe.len(),
            n_samples: self.study.n_checks(),
            error,
        });
        let all = Next {
            recipe,
            predicted_ns: None,
            error,
        };
        self.explore(all, 1).await?;
        for _ in 0..GATES {
            self.rounds().await?;
            let Some(best) = self.best() else {
                return Ok(None);
            };
            match self.finish(best).await? {
                Finish::Settled(settled) => return Ok(Some(*settled)),
                Finish::Slower => return Ok(None),
                // A little further from the limit on the samples that are left.
                Finish::Missed(ratio) => self.room = 0.9 * best.error / ratio.max(1.0),
            }
        }
        Ok(None)
    }

    /// Plans and searches as long as there is something to gain.
    async fn rounds(&mut self) -> Result<(), Error> {
        for _ in 0..ROUNDS {
            if self.joint.request.cancellation.is_cancelled() || self.n_left() < 2 {
                break;
            }
            let Some(next) = self.next().await? else {
                break;
            };
            let n = (f64::from(self.n_left()) * SLICE).ceil() as u32;
            self.explore(next, n).await?;
        }
        Ok(())
    }

    /// Returns the fastest recipe that was measured and is within the limits.
    fn best(&self) -> Option<&Tried> {
        let right = self.tried.iter().filter(|tried| tried.error <= self.room);
        right.min_by(|lhs, rhs| lhs.ns.total_cmp(&rhs.ns))
    }

    /// Returns the evaluations that are left.
    fn n_left(&self) -> u32 {
        let max_evaluations = self.joint.request.search.max_evaluations;
        max_evaluations.saturating_sub(self.n_spent)
    }

    /// Returns the error of a recipe as a share of the limit.
    fn error(&self, recipe: &Recipe) -> Result<f64, Error> {
        let recipes = std::slice::from_ref(recipe);
        let divergences = tokio::task::block_in_place(|| self.study.divergences(recipes));
        let divergences = divergences.map_err(|source| self.joint.failed(source))?;
        let first = divergences.first();
        Ok(first.map_or(f64::INFINITY, |divergence| self.study.share(divergence)))
    }

    /// Returns the recipe to search next: the fastest that is planned, or that was measured, as what
    /// was measured whole goes before what parts add up to. `None` if there is nothing to gain.
    async fn next(&mut self) -> Result<Option<Next>, Error> {
        let Some((plans, error)) = self.plan().await? else {
            return Ok(None);
        };
        self.joint.reporter.report(&Event::VariantsPlanned {
            model: &self.joint.model.name,
            target: &self.joint.target.name,
            n_sites: self.study.fit.sites.len(),
            n_varied: plans.best.recipe.len(),
            predicted_ns: plans.best.ns,
            bound_ns: plans.bound_ns,
            error,
        });
        let next = match self.best().filter(|known| known.ns < plans.best.ns) {
            Some(known) => Next {
                recipe: known.recipe.clone(),
                predicted_ns: Some(known.ns),
                error: known.error,
            },
            None => Next {
                recipe: plans.best.recipe,
                predicted_ns: Some(plans.best.ns),
                error,
            },
        };
        let n_searches = self.n_searches.entry(next.recipe.clone()).or_insert(0);
        let is_open = !next.recipe.is_empty() && *n_searches < MOST_SEARCHES;
        *n_searches += 1;
        Ok(Some(next).filter(|_| is_open))
    }

    /// Plans the fastest whole whose error is within the limit when it is checked as a whole.
    async fn plan(&self) -> Result<Option<(Plans, f64)>, Error> {
        let store = &self.joint.store;
        let labels = store.labels(self.parts.keys()).await?;
        let own = store.labels(self.base.keys()).await?;
        let mut session = Session::new(self.base, 0, 0, &BTreeMap::new());
        session.resume(self.base, &own, &[]);
        let ways = self.catalogue.ways(self.parts, &labels, self.study);
        let mut budget = self.room;
        let mut best: Option<(Plans, f64)> = None;
        for _ in 0..CORRECTIONS {
            let plans = plan(
                self.study,
                self.base,
                &session,
                self.catalogue,
                &ways,
                budget,
            );
            let Some(plans) = plans else {
                break;
            };
            let error = self.error(&plans.best.recipe)?;
            let predicted = plans.best.error;
            tracing::debug!(
                budget,
                predicted,
                error,
                n_varied = plans.best.recipe.len(),
                ns = plans.best.ns,
                "planned"
            );
            let share = error / self.room;
            let is_right = share <= 1.0;
            let is_better = best
                .as_ref()
                .is_none_or(|(known, _)| plans.best.ns < known.best.ns);
            if is_right && is_better {
                best = Some((plans, error));
            }
            // A budget that leaves room buys nothing more, and neither does one that is used up.
            if error <= 0.0 || (is_right && (share > 0.9 || predicted < 0.5 * budget)) {
                break;
            }
            budget *= (0.95 / share).clamp(0.3, 2.0);
        }
        Ok(best)
    }

    /// Searches the mappings of a recipe with up to `n` evaluations.
    async fn explore(&mut self, next: Next, n: u32) -> Result<(), Error> {
        let joint = self.joint;
        let source = joint.source.like(self.study.fit.graph_of(&next.recipe));
        let request = joint.request_for(n);
        let job = match Job::new(
            &request,
            joint.model,
            joint.target,
            &source,
            joint.open_backend,
        ) {
            Ok(job) => job,
            // What the backend does not cover as a whole is not for it.
            Err(Error::Backend { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        let nothing = Earlier::nothing(self.lockfile);
        let store = joint.store.clone();
        let Some(mut search) = open(&request, joint.reporter, &job, store, &nothing).await? else {
            return Ok(());
        };
        let n_before = search.session.budget.n_spent();
        let searched = self.search(&mut search, n).instrument(span(&job)).await;
        self.n_spent += search.session.budget.n_spent().saturating_sub(n_before);
        let state = searched.as_ref().err().map_or(JobState::Done, failed_state);
        close(&mut search, state).await?;
        drop(search);
        drop(job);
        let ns = match searched {
            Ok(ns) => ns,
            // A recipe whose untuned default does not work is no recipe.
            Err(Error::Default { message, .. }) => {
                joint.reporter.report(&Event::Warning {
                    code: "variant-fails",
                    subject: &joint.model.name,
                    detail: &message,
                });
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        joint.reporter.report(&Event::VariantMeasured {
            n_varied: next.recipe.len(),
            predicted_ns: next.predicted_ns,
            measured_ns: ns,
            baseline_ns: self.baseline.first_ns,
            error: next.error,
        });
        let is_same = |tried: &&mut Tried| tried.recipe == next.recipe;
        match self.tried.iter_mut().find(is_same) {
            Some(known) => known.ns = known.ns.min(ns),
            None => self.tried.push(Tried {
                recipe: next.recipe,
                source,
                ns,
                error: next.error,
            }),
        }
        Ok(())
    }

    /// Returns the latency of the fastest whole run of a search, nanoseconds.
    async fn search(&self, search: &mut Search<'_>, n: u32) -> Result<f64, Error> {
        let own_ns = self.start(search).await?;
        if n > 1 {
            search.screen().await?;
        }
        Ok(own_ns.min(search.best_run_ns))
    }

    /// Measures the untuned default of a recipe, and puts that of the model in its place, which all
    /// is compared with; returns what the former takes, nanoseconds.
    async fn start(&self, search: &mut Search<'_>) -> Result<f64, Error> {
        search.start().await?;
        let own = search.baseline.replace(self.baseline.clone());
        let reference = self.base.reference(self.joint.request);
        search.bench.adopt(&self.baseline.artifact, &reference);
        search.rivals_default = true;
        Ok(own.map_or(f64::INFINITY, |own| own.first_ns))
    }

    /// Compares the best of a recipe with the untuned model, and checks its accuracy as built.
    async fn finish(&self, best: &Tried) -> Result<Finish, Error> {
        let joint = self.joint;
        let request = joint.request_for(self.n_left().max(1));
        let (model, target) = (joint.model, joint.target);
        let job = Job::new(&request, model, target, &best.source, joint.open_backend)?;
        let nothing = Earlier::nothing(self.lockfile);
        let store = joint.store.clone();
        let Some(mut search) = open(&request, joint.reporter, &job, store, &nothing).await? else {
            return Err(Error::Interrupted);
        };
        let settled = self.settle(best, &mut search).instrument(span(&job)).await;
        let state = settled.as_ref().err().map_or(JobState::Done, failed_state);
        close(&mut search, state).await?;
        settled
    }

    async fn settle(&self, best: &Tried, search: &mut Search<'_>) -> Result<Finish, Error> {
        let n_before = search.session.budget.n_spent();
        self.start(search).await?;
        search.is_final = true;
        let decision = decide(search, None).await?;
        if decision.is_baseline {
            return Ok(Finish::Slower);
        }
        let gate = Gate {
            joint: self.joint,
            study: self.study,
        };
        let verdict = gate
            .judge(search, &decision.choices, self.base, &self.baseline)
            .await?;
        if !verdict.missed.is_empty() {
            return Ok(Finish::Missed(verdict.excess()));
        }
        let is_interrupted = search.is_cancelled()?;
        let n_evaluations = self.n_spent + search.session.budget.n_spent() - n_before;
        let mut deployment = deployment(search.job, &decision, n_evaluations, is_interrupted);
        let whole = self.base.source.whole;
        (deployment.structure, deployment.content) = (whole.structure, whole.content);
        self.study
            .describe(&best.recipe, &best.source, &mut deployment, &verdict);
        Ok(Finish::Settled(Box::new(Settled {
            deployment,
            spent: Some(search.spent()),
            half_way: None,
            n_evaluations,
            n_reused_labels: search.session.n_reused_labels,
            baseline_ns: decision.baseline_ns,
            latency_ns: decision.latency_ns,
            confirmation: Some(decision.confirmation).filter(|_| !is_interrupted),
            is_interrupted,
            utilisation: search.bench.usage().utilisation(),
        })))
    }
}
