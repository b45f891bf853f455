//! The run: every model on every target, one after the other, into one lockfile.

use std::path::Path;
use std::sync::Arc;

use super::adaptation::{Earlier, Settled, adapt, kept, report_start};
use super::job::{Job, Source, open_native};
use super::joint::Joint;
use super::locked::{locked_choices, read_lock, remove_orphans, stale};
use super::session::Session;
use super::turns::lock_workspace;
use super::{Error, Request};
use crate::backend::{Backend, BackendError};
use crate::config::Model;
use crate::device::Target;
use crate::event::{Event, Reporter};
use crate::fsx;
use crate::lock::{Deployment, Lockfile, encode};
use crate::store::{Batch, LabelStore, Sqlite};

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
    /// Deployments that do not keep to a limit of their model; they are not locked.
    pub n_unmet: usize,
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
    let mut store: Option<Sqlite> = None;
    for model in &request.models {
        let source = Source::load(model)?;
        for target in &request.targets {
            if request.cancellation.is_cancelled() {
                summary.interrupted = true;
                return Ok(summary);
            }
            let job = Job::new(request, model, target, &source, open_backend)?;
            let key = job.key();
            let earlier = Earlier::of(&job, &lockfile);
            let is_stale = !earlier.findings.is_empty();
            let renamed = earlier
                .old
                .as_ref()
                .is_some_and(|old| old.file != source.file);
            if request.is_locked && is_stale {
                return Err(stale(&key, &earlier.findings));
            }
            if request.is_dry_run {
                plan(&job, &lockfile, reporter);
                summary.lock_changed |= is_stale;
                continue;
            }
            let settled = match earlier {
                Earlier { old: Some(old), .. } if !is_stale => {
                    let file = if request.is_locked {
                        old.file
                    } else {
                        source.file
                    };
                    kept(Deployment { file, ..old })
                }
                earlier => {
                    let store = match &store {
                        Some(store) => store.clone(),
                        None => store.insert(open_store(&request.home)?).clone(),
                    };
                    let adapted =
                        search(request, reporter, &job, store, earlier, open_backend).await?;
                    let Some(settled) = adapted else {
                        summary.interrupted = true;
                        return Ok(summary);
                    };
                    settled
                }
            };
            let is_met = keeps_to_limits(model, &settled, reporter);
            summary.n_unmet += usize::from(!is_met);
            let changed = is_met && lockfile.deployments.get(&key) != Some(&settled.deployment);
            if changed && (is_stale || renamed) {
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
                interrupted: settled.is_interrupted,
                utilisation: settled.utilisation,
                spent: settled.spent,
                half_way: settled.half_way,
            });
            if settled.is_interrupted && !request.cancellation.is_cancelled() {
                // Somebody ended this job, and not the run.
                summary.interrupted = true;
            }
        }
    }
    summary.interrupted |= request.cancellation.is_cancelled();
    if request.is_everything && !summary.interrupted {
        summary.lock_changed |= remove_orphans(request, reporter, lockfile)?;
    }
    Ok(summary)
}

/// Searches the mappings of a model, and its variants if there are samples to judge them by.
async fn search(
    request: &Request,
    reporter: &dyn Reporter,
    job: &Job<'_>,
    store: Sqlite,
    earlier: Earlier<'_>,
    open_backend: &OpenBackend<'_>,
) -> Result<Option<Settled>, Error> {
    let Some(samples) = &job.source.samples else {
        return adapt(request, reporter, job, store, earlier).await;
    };
    let joint = Joint {
        request,
        reporter,
        model: job.model,
        target: job.target,
        source: job.source,
        open_backend,
        store,
        samples,
    };
    joint.adapt(job, earlier).await
}

/// Returns whether a deployment is as fast as its model has to be, and says so if it is not.
fn keeps_to_limits(model: &Model, settled: &Settled, reporter: &dyn Reporter) -> bool {
    let latency_ms = settled.latency_ns / 1e6;
    let limit = model.accept.max_latency_ms;
    let Some(limit) = limit.filter(|&limit| latency_ms > limit) else {
        return true;
    };
    reporter.report(&Event::Warning {
        code: "limit-missed",
        subject: &model.name,
        detail: &format!("the fastest takes {latency_ms:.4} ms, limit {limit}: nothing is locked"),
    });
    false
}

/// Reports what would be searched.
fn plan(job: &Job<'_>, lockfile: &Lockfile, reporter: &dyn Reporter) {
    let locked = locked_choices(job, lockfile);
    let session = Session::new(job, 0, 0, &locked);
    report_start(job, &session, reporter);
}

fn open_store(home: &Path) -> Result<Sqlite, Error> {
    fsx::create_dir_all(home)?;
    Ok(Sqlite::open(&Sqlite::path_in(home))?)
}
