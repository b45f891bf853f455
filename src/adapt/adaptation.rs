//! One model on one target: from what is known to what is locked, on the device or in a replay.

use std::sync::Arc;
use std::time::Instant;

use tracing::Instrument as _;

use super::bench::Bench;
use super::disk::journal_bytes;
use super::finals::{decide, is_right};
use super::job::Job;
use super::journal::{Entry, Header, Journal, journal_path};
use super::locked::{all_locked, deployment, locked_choices, locked_whole};
use super::reference::write_reference;
use super::search::Search;
use super::session::Session;
use super::trials::Trials;
use super::{Error, Request};
use crate::event::{Event, Reporter, Spent};
use crate::label::{Evaluation, Label, Purpose};
use crate::lock::{Deployment, Figure, Finding, Lockfile, encode};
use crate::queue::{JobState, Used};
use crate::search::{HalfWay, Pace};
use crate::store::{LabelStore, Queue, Sqlite, TaskLabels};

/// Change of a figure that is taken for noise.
const NOISE: f64 = 0.05;

/// Version of journals.
pub(super) const JOURNAL_VERSION: u32 = 1;

/// How one deployment was dealt with.
pub(super) struct Settled {
    pub(super) deployment: Deployment,
    pub(super) n_evaluations: u32,
    pub(super) n_reused_labels: usize,
    pub(super) baseline_ns: f64,
    pub(super) latency_ns: f64,
    /// To be recorded once the deployment is locked.
    pub(super) confirmation: Option<Evaluation>,
    /// Whether somebody ended it, and it is the best so far.
    pub(super) is_interrupted: bool,
    /// Share of the time in which there was something to measure that the device was measuring.
    pub(super) utilisation: Option<f64>,
    /// What was used of the budgets, if anything was searched.
    pub(super) spent: Option<Spent>,
    /// How good the estimate of the time that was left was half way.
    pub(super) half_way: Option<HalfWay>,
}

/// What is locked when an adaptation begins.
pub(super) struct Earlier<'a> {
    /// All of it.
    pub(super) lockfile: &'a Lockfile,
    /// For this model and target.
    pub(super) old: Option<Deployment>,
    /// What is stale about that.
    pub(super) findings: Vec<Finding>,
}

impl<'a> Earlier<'a> {
    /// Returns what a variant that was not locked has: choices for equal subgraphs.
    pub(super) fn nothing(lockfile: &'a Lockfile) -> Self {
        Self {
            lockfile,
            old: None,
            findings: Vec::new(),
        }
    }

    /// Returns what a lockfile has for a job.
    pub(super) fn of(job: &Job<'_>, lockfile: &'a Lockfile) -> Self {
        let old = lockfile.deployments.get(&job.key()).cloned();
        let findings = old
            .as_ref()
            .map_or_else(|| vec![Finding::Missing], |old| old.compare(&job.current()));
        Self {
            lockfile,
            old,
            findings,
        }
    }
}

/// What the store has when an adaptation begins.
pub(super) struct Known {
    /// Labels of the tasks.
    pub(super) labels: TaskLabels,
    /// Evaluations of the adaptation.
    pub(super) evaluations: Vec<Evaluation>,
}

/// Adapts one model to one target; `None` if the run was cancelled before it had anything to keep.
///
/// # Errors
/// What stops the whole run.
pub(super) async fn adapt(
    request: &Request,
    reporter: &dyn Reporter,
    job: &Job<'_>,
    store: Sqlite,
    earlier: Earlier<'_>,
) -> Result<Option<Settled>, Error> {
    let Some(mut search) = open(request, reporter, job, store, &earlier).await? else {
        return Ok(None);
    };
    let settled = settle(&mut search, earlier).instrument(span(job)).await;
    let state = match &settled {
        Ok(settled) if settled.is_interrupted => JobState::Interrupted,
        Ok(_) => JobState::Done,
        Err(error) => failed_state(error),
    };
    close(&mut search, state).await?;
    match settled {
        Err(Error::Interrupted) => Ok(None),
        settled => settled.map(Some),
    }
}

/// Opens the job of a search: its place in the queue, its reference values, what the store knows, and
/// its journal. `None` if the run was cancelled while it waited.
///
/// # Errors
/// What stops the whole run.
pub(super) async fn open<'a>(
    request: &'a Request,
    reporter: &'a dyn Reporter,
    job: &'a Job<'a>,
    store: Sqlite,
    earlier: &Earlier<'_>,
) -> Result<Option<Search<'a>>, Error> {
    let queue = Queue::of(store.clone());
    let store: Arc<dyn LabelStore> = Arc::new(store);
    let trials = Trials::open(request, reporter, job, queue, Arc::clone(&store)).await?;
    let Some(turn) = trials.turn(None).await? else {
        trials.close(JobState::Interrupted, Used::default()).await?;
        return Ok(None);
    };
    let reference = write_reference(request, job, reporter).await?;
    drop(turn);
    let known = Known {
        labels: store.labels(job.keys()).await?,
        evaluations: store.evaluations(job.adaptation()).await?,
    };
    let path = journal_path(&request.scratch, &job.title(), &job.target.name);
    let mut journal = Journal::create(&path, journal_bytes(request))?;
    journal.append(&header(request, job, earlier.lockfile)?)?;
    journal.append(&known.entry())?;
    let bench = Bench::live(request, job, &reference, journal);
    let search = search(request, reporter, job, bench, trials, earlier, &known);
    Ok(Some(search))
}

/// Closes the job of a search.
///
/// # Errors
/// If the store does not work.
pub(super) async fn close(search: &mut Search<'_>, state: JobState) -> Result<(), Error> {
    // After an error something may still be built.
    search.bench.abandon_builds().await;
    search.trials.close(state, search.used()).await
}

/// Returns how a job ends that failed.
pub(super) fn failed_state(error: &Error) -> JobState {
    match error {
        Error::Interrupted => JobState::Interrupted,
        _ => JobState::Failed,
    }
}

/// Returns what groups what is done for a job for developers.
pub(super) fn span(job: &Job<'_>) -> tracing::Span {
    tracing::info_span!(
        "adaptation",
        model = %job.title(),
        target = %job.target.name,
        key = %job.adaptation().short(),
    )
}

/// Returns a search that has done nothing yet.
pub(super) fn search<'a>(
    request: &'a Request,
    reporter: &'a dyn Reporter,
    job: &'a Job<'a>,
    bench: Bench,
    trials: Trials<'a>,
    earlier: &Earlier<'_>,
    known: &Known,
) -> Search<'a> {
    let locked = locked_choices(job, earlier.lockfile);
    let settings = &request.search;
    let mut session = Session::new(job, settings.max_evaluations, settings.seed, &locked);
    session.resume(job, &known.labels, &known.evaluations);
    Search {
        job,
        request,
        reporter,
        trials,
        started: Instant::now(),
        bench,
        session,
        baseline: None,
        best_ns: 0.0,
        best_run_ns: f64::INFINITY,
        worst_drift: 0.0,
        pace: Pace::default(),
        is_final: false,
        has_warned: false,
        rivals_default: false,
    }
}

/// Searches and decides.
///
/// # Errors
/// What stops the whole run.
pub(super) async fn settle(
    search: &mut Search<'_>,
    earlier: Earlier<'_>,
) -> Result<Settled, Error> {
    let (job, reporter) = (search.job, search.reporter);
    let Earlier { old, findings, .. } = earlier;
    let n_before = search.session.budget.n_spent();
    // What variants cost depends on the weights, and so those are decided again.
    let is_varied = |old: &Deployment| {
        let variants = old.accuracy.as_ref().map(|accuracy| &accuracy.variants);
        variants.is_some_and(|variants| !variants.is_empty())
    };
    if let (Some(old), [Finding::Weights]) = (&old, &findings[..])
        && !is_varied(old)
        && let Some(settled) = recheck(search, old).await?
    {
        return Ok(settled);
    }
    report_start(job, &search.session, reporter);
    search.start().await?;
    search.screen().await?;
    search.report_drift();
    search.is_final = true;
    let known = all_locked(job, &search.session.locked, old.as_ref());
    let decision = decide(search, known).await?;
    let is_interrupted = search.is_cancelled()?;
    let n_spent = search.session.budget.n_spent();
    let deployment = deployment(job, &decision, n_spent, is_interrupted);
    let deployment = match &old {
        Some(old) => deployment.settled(old, NOISE),
        None => deployment,
    };
    search.bench.note(&Entry::Decided {
        lock: alone(job, &deployment)?,
    })?;
    search.bench.tidy();
    let spent = search.spent();
    report_disk(job, &spent, reporter);
    Ok(Settled {
        deployment,
        spent: Some(spent),
        half_way: search.pace.half_way(spent.elapsed),
        n_evaluations: search.session.budget.n_spent() - n_before,
        n_reused_labels: search.session.n_reused_labels,
        baseline_ns: decision.baseline_ns,
        latency_ns: decision.latency_ns,
        confirmation: Some(decision.confirmation).filter(|_| !is_interrupted),
        is_interrupted,
        utilisation: search.bench.usage().utilisation(),
    })
}

/// Checks the numbers of what is locked with new weights: latency does not depend on them. `None`
/// if they are wrong, so that everything is decided again.
async fn recheck(search: &mut Search<'_>, old: &Deployment) -> Result<Option<Settled>, Error> {
    let choices = locked_whole(search.job, old);
    let (ticket, Ok(artifact)) = search.build(&choices, Purpose::Confirm).await? else {
        return Ok(None);
    };
    let checked = search.bench.check(&artifact).await?;
    search.bench.discard(&artifact);
    search.trials.drop(ticket).await?;
    let Ok(trial) = checked else {
        return Ok(None);
    };
    if !is_right(&artifact, &trial, search.job.source.tolerance()) {
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
pub(super) fn kept(deployment: Deployment) -> Settled {
    let latency_ns = deployment.latency_ms.get() * 1e6;
    Settled {
        n_evaluations: 0,
        n_reused_labels: 0,
        baseline_ns: latency_ns * deployment.speed_up.get(),
        latency_ns,
        deployment,
        confirmation: None,
        is_interrupted: false,
        utilisation: None,
        spent: None,
        half_way: None,
    }
}

/// Says so if what a run needs is more than the budget of the disk.
fn report_disk(job: &Job<'_>, spent: &Spent, reporter: &dyn Reporter) {
    let (used, most) = (spent.disk_bytes, spent.max_disk_bytes);
    if used > most {
        reporter.report(&Event::Warning {
            code: "disk-budget",
            subject: &job.model.name,
            detail: &format!("{used} bytes are needed on disk, and `search.max-disk` is {most}"),
        });
    }
}

/// Reports what is to be searched.
pub(super) fn report_start(job: &Job<'_>, session: &Session, reporter: &dyn Reporter) {
    reporter.report(&Event::AdaptStarted {
        model: &job.model.name,
        target: &job.target.name,
        n_subgraphs: job.task_of.len(),
        n_tasks: job.tasks.len(),
        n_reused: session.n_reused(),
        max_evaluations: session.budget.max_evaluations(),
    });
}

/// Returns the lock of one deployment alone.
fn alone(job: &Job<'_>, deployment: &Deployment) -> Result<String, Error> {
    let mut lockfile = Lockfile::default();
    lockfile.deployments.insert(job.key(), deployment.clone());
    Ok(encode(&lockfile)?)
}

fn header(request: &Request, job: &Job<'_>, lockfile: &Lockfile) -> Result<Entry, Error> {
    Ok(Entry::Started(Box::new(Header {
        version: JOURNAL_VERSION,
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        adaptation: job.adaptation(),
        content: job.source.whole.content,
        search: request.search,
        jobs: request.jobs,
        lock: encode(lockfile)?,
    })))
}

impl Known {
    /// Returns what a journal says of it.
    pub(super) fn entry(&self) -> Entry {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let labels = self.labels.values().flatten();
        Entry::Known {
            labels: labels.map(|label| text(label.encode())).collect(),
            evaluations: self.evaluations.iter().map(|e| text(e.encode())).collect(),
        }
    }

    /// Reads what a journal says of it; records that cannot be read are left out.
    pub(super) fn of_journal(labels: &[String], evaluations: &[String]) -> Self {
        let mut known = Self {
            labels: TaskLabels::new(),
            evaluations: Vec::new(),
        };
        for label in labels.iter().map(|text| Label::decode(text.as_bytes())) {
            let Ok(label) = label else { continue };
            let labels = known.labels.entry(label.task.digest()).or_default();
            labels.push(label);
        }
        let read = evaluations
            .iter()
            .map(|text| Evaluation::decode(text.as_bytes()));
        known.evaluations.extend(read.flatten());
        known
    }
}
