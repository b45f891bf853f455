//! The run: every model on every target, one after the other, into one lockfile.

use std::path::Path;
use std::sync::Arc;

use super::bench::Bench;
use super::finals::{decide, is_right};
use super::job::{Job, Source, open_native};
use super::locked::{
    all_locked, deployment, locked_choices, locked_whole, read_lock, remove_orphans, stale,
};
use super::reference::write_reference;
use super::search::Search;
use super::session::Session;
use super::turns::{hold_device, lock_workspace};
use super::{Error, Request};
use crate::backend::{Backend, BackendError};
use crate::device::Target;
use crate::digest::Digest;
use crate::event::{Event, Reporter};
use crate::fsx;
use crate::label::Evaluation;
use crate::lock::{Deployment, DeploymentKey, Figure, Finding, Lockfile, encode};
use crate::store::{Batch, LabelStore, Sqlite};

/// Change of a figure that is taken for noise.
const NOISE: f64 = 0.05;

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// Deployments that are up to date, searched or not.
    pub n_deployments: usize,
    /// Real evaluations spent.
    pub n_evaluations: u32,
    /// Whether the lockfile changed, or would have with `--dry-run`.
    pub lock_changed: bool,
    /// Whether the run was interrupted; it kept the best so far.
    pub interrupted: bool,
}

/// How one deployment was dealt with.
struct Settled {
    deployment: Deployment,
    n_evaluations: u32,
    n_reused_labels: usize,
    baseline_ns: f64,
    latency_ns: f64,
    /// To be recorded once the deployment is locked.
    confirmation: Option<Evaluation>,
}

/// Opens the backend of a target.
pub type OpenBackend<'a> =
    dyn Fn(&Request, &Target) -> Result<Arc<dyn Backend>, BackendError> + Send + Sync + 'a;

/// Adapts the models of a request to its targets, with the native backend.
///
/// Each deployment is written to the lockfile as soon as it is decided, and each label to the
/// store as soon as it is measured: a run that is killed loses nothing that it has learnt.
///
/// # Errors
/// [`Error`]; the deployments decided before it are locked.
pub async fn run(request: &Request, reporter: &dyn Reporter) -> Result<Summary, Error> {
    run_with(request, reporter, &open_native).await
}

/// As [`run`], with the backends that `open_backend` gives.
///
/// # Errors
/// As [`run`].
pub async fn run_with(
    request: &Request,
    reporter: &dyn Reporter,
    open_backend: &OpenBackend<'_>,
) -> Result<Summary, Error> {
    fsx::create_dir_all(&request.scratch)?;
    let mut summary = Summary::default();
    let Some(_workspace) = lock_workspace(request, reporter).await? else {
        summary.interrupted = true;
        return Ok(summary);
    };
    let mut lockfile = read_lock(&request.lockfile())?;
    let mut store: Option<Arc<dyn LabelStore>> = None;
    for model in &request.models {
        let source = Source::load(model)?;
        for target in &request.targets {
            if request.cancellation.is_cancelled() {
                summary.interrupted = true;
                return Ok(summary);
            }
            let job = Job::new(request, model, target, &source, open_backend)?;
            let key = DeploymentKey {
                model: model.name.clone(),
                target: target.name.clone(),
            };
            let old = lockfile.deployments.get(&key).cloned();
            let findings = old
                .as_ref()
                .map_or_else(|| vec![Finding::Missing], |old| old.compare(&job.current()));
            let renamed = old.as_ref().is_some_and(|old| old.file != source.file);
            if request.is_locked && !findings.is_empty() {
                return Err(stale(&key, &findings));
            }
            if request.is_dry_run {
                plan(&job, &lockfile, reporter);
                summary.lock_changed |= !findings.is_empty();
                continue;
            }
            let settled = match old {
                Some(old) if findings.is_empty() => {
                    let file = if request.is_locked {
                        old.file
                    } else {
                        source.file
                    };
                    kept(Deployment { file, ..old })
                }
                old => {
                    let store = match &store {
                        Some(store) => Arc::clone(store),
                        None => Arc::clone(store.insert(open_store(&request.home)?)),
                    };
                    let Some(_device) = hold_device(request, reporter, target).await? else {
                        summary.interrupted = true;
                        return Ok(summary);
                    };
                    adapt(request, reporter, &job, store, &lockfile, old, &findings).await?
                }
            };
            let changed = lockfile.deployments.get(&key) != Some(&settled.deployment);
            if changed && (!findings.is_empty() || renamed) {
                lockfile.deployments.insert(key, settled.deployment.clone());
                fsx::replace_if_changed(&request.lockfile(), encode(&lockfile)?.as_bytes())?;
            }
            // Not earlier: a run that is killed before goes on with the same budget. Nor after an
            // interrupt, which is no end either.
            if let (Some(confirmation), Some(store)) = (settled.confirmation, &store) {
                store.record(Batch::of(confirmation, Vec::new())).await?;
            }
            summary.n_deployments += 1;
            summary.n_evaluations += settled.n_evaluations;
            summary.lock_changed |= changed;
            reporter.report(&Event::AdaptFinished {
                model: &model.name,
                target: &target.name,
                n_evaluations: settled.n_evaluations,
                n_reused_labels: settled.n_reused_labels,
                baseline_ns: settled.baseline_ns,
                latency_ns: settled.latency_ns,
                footprint: settled.deployment.footprint,
                lock_changed: changed,
                interrupted: request.cancellation.is_cancelled(),
            });
        }
    }
    summary.interrupted = request.cancellation.is_cancelled();
    if request.is_everything && !summary.interrupted {
        summary.lock_changed |= remove_orphans(request, reporter, lockfile)?;
    }
    Ok(summary)
}

/// Adapts one model to one target.
async fn adapt(
    request: &Request,
    reporter: &dyn Reporter,
    job: &Job<'_>,
    store: Arc<dyn LabelStore>,
    lockfile: &Lockfile,
    old: Option<Deployment>,
    findings: &[Finding],
) -> Result<Settled, Error> {
    let reference = write_reference(request, job, reporter).await?;
    let bench = Bench::new(request, Arc::clone(&job.prepared), &reference);
    let locked = locked_choices(job, lockfile);
    let settings = &request.search;
    let mut session = Session::new(job, settings.max_evaluations, settings.seed, &locked);
    let keys: Vec<Digest> = job.tasks.iter().map(|task| task.key.digest()).collect();
    let labels = store.labels(keys).await?;
    let evaluations = store.evaluations(job.adaptation()).await?;
    session.resume(job, &labels, &evaluations);
    let n_before = session.budget.n_spent();
    let mut search = Search {
        job,
        request,
        reporter,
        store,
        bench,
        session,
        baseline: None,
        best_ns: 0.0,
        best_run_ns: f64::INFINITY,
        worst_drift: 0.0,
        has_warned: false,
    };
    if let (Some(old), [Finding::Weights]) = (&old, findings)
        && let Some(settled) = recheck(&mut search, old).await?
    {
        return Ok(settled);
    }
    report_start(job, &search.session, reporter);
    search.start().await?;
    search.screen().await?;
    search.report_drift();
    let known = all_locked(job, &locked, old.as_ref());
    let decision = decide(&mut search, known).await?;
    let is_interrupted = request.cancellation.is_cancelled();
    let n_spent = search.session.budget.n_spent();
    let deployment = deployment(job, &decision, n_spent, is_interrupted);
    let deployment = match &old {
        Some(old) => deployment.settled(old, NOISE),
        None => deployment,
    };
    Ok(Settled {
        deployment,
        n_evaluations: search.session.budget.n_spent() - n_before,
        n_reused_labels: search.session.n_reused_labels,
        baseline_ns: decision.baseline_ns,
        latency_ns: decision.latency_ns,
        confirmation: Some(decision.confirmation).filter(|_| !is_interrupted),
    })
}

/// Checks the numbers of what is locked with new weights: latency does not depend on them. `None`
/// if they are wrong, so that everything is decided again.
async fn recheck(search: &mut Search<'_>, old: &Deployment) -> Result<Option<Settled>, Error> {
    let choices = locked_whole(search.job, old);
    let Some(Ok(artifact)) = search.build(&[choices]).await?.pop() else {
        return Ok(None);
    };
    let Ok(trial) = search.bench.check(&artifact).await else {
        return Ok(None);
    };
    search.bench.discard(&artifact);
    if !is_right(&artifact, &trial) {
        return Ok(None);
    }
    let divergence = trial.verified.run.relative_l2.and_then(Figure::new);
    let job = search.job;
    let deployment = Deployment {
        file: job.source.file,
        content: job.source.whole.content,
        divergence: divergence.unwrap_or(old.divergence),
        ..old.clone()
    };
    Ok(Some(kept(deployment)))
}

/// A deployment that nothing was measured for.
fn kept(deployment: Deployment) -> Settled {
    let latency_ns = deployment.latency_ms.get() * 1e6;
    Settled {
        n_evaluations: 0,
        n_reused_labels: 0,
        baseline_ns: latency_ns * deployment.speed_up.get(),
        latency_ns,
        deployment,
        confirmation: None,
    }
}

/// Reports what would be searched.
fn plan(job: &Job<'_>, lockfile: &Lockfile, reporter: &dyn Reporter) {
    let locked = locked_choices(job, lockfile);
    let session = Session::new(job, 0, 0, &locked);
    report_start(job, &session, reporter);
}

fn report_start(job: &Job<'_>, session: &Session, reporter: &dyn Reporter) {
    reporter.report(&Event::AdaptStarted {
        model: &job.model.name,
        target: &job.target.name,
        n_subgraphs: job.task_of.len(),
        n_tasks: job.tasks.len(),
        n_reused: session.n_reused(),
        max_evaluations: session.budget.max_evaluations(),
    });
}

fn open_store(home: &Path) -> Result<Arc<dyn LabelStore>, Error> {
    fsx::create_dir_all(home)?;
    Ok(Arc::new(Sqlite::open(&home.join("labels.sqlite"))?))
}
