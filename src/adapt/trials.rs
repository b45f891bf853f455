//! The trials of a job in the queue that all runs on this machine share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;

use super::job::{Choices, Job};
use super::{Error, Request};
use crate::backend::Artifact;
use crate::digest::{Digest, Encoder};
use crate::event::{Event, Reporter};
use crate::label::Purpose;
use crate::measure::Device;
use crate::queue::{JobId, JobSpec, JobState, LEASE, Lease, MOST_ATTEMPTS, TrialState, Used};
use crate::store::{Batch, LabelStore, Queue, StoreError};

/// What others are told that they wait for.
pub(super) const COMMAND: &str = "cargo metainfer adapt";

/// How often a run asks whether it is its turn.
const POLL: Duration = Duration::from_millis(20);

/// The trials of one job.
pub(super) struct Trials<'a> {
    request: &'a Request,
    reporter: &'a dyn Reporter,
    target: &'a str,
    store: Arc<dyn LabelStore>,
    /// `None` in a replay, which shares nothing.
    desk: Option<Desk>,
}

/// The job's place in the queue.
struct Desk {
    queue: Queue,
    job: JobId,
    device: String,
    is_cancelled: Arc<AtomicBool>,
    used: Arc<Mutex<Used>>,
    heartbeat: JoinHandle<()>,
}

/// A trial that was begun.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticket {
    lease: Option<Lease>,
    purpose: Purpose,
}

/// What was said while waiting.
#[derive(Default)]
struct Waiting {
    is_told: bool,
}

/// The right to use the device, while it is this job's turn.
pub(super) struct Turn {
    _device: Option<Device>,
}

impl<'a> Trials<'a> {
    /// Opens a job in the queue of a store, and keeps its lease.
    ///
    /// # Errors
    /// If the store does not work.
    pub(super) async fn open(
        request: &'a Request,
        reporter: &'a dyn Reporter,
        job: &'a Job<'_>,
        queue: Queue,
        store: Arc<dyn LabelStore>,
    ) -> Result<Self, Error> {
        let device = Device::name();
        let spec = JobSpec {
            workspace: request.workspace_root.to_string_lossy().into_owned(),
            model: job.model.name.clone(),
            target: job.target.name.clone(),
            adaptation: job.adaptation(),
            device: device.clone(),
            holder: format!("`{COMMAND}` (process {})", std::process::id()),
            priority: request.priority,
            max_evaluations: request.search.max_evaluations,
        };
        let id = queue.open(spec).await?;
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let used = Arc::new(Mutex::new(Used::default()));
        let heartbeat = heartbeat(
            queue.clone(),
            id,
            Arc::clone(&is_cancelled),
            Arc::clone(&used),
        );
        let desk = Desk {
            queue,
            job: id,
            device,
            is_cancelled,
            used,
            heartbeat,
        };
        Ok(Self {
            request,
            reporter,
            target: &job.target.name,
            store,
            desk: Some(desk),
        })
    }

    /// Trials of a replay: all are begun, and their records go to a store of their own.
    pub(super) fn of_replay(
        request: &'a Request,
        reporter: &'a dyn Reporter,
        job: &'a Job<'_>,
        store: Arc<dyn LabelStore>,
    ) -> Self {
        Self {
            request,
            reporter,
            target: &job.target.name,
            store,
            desk: None,
        }
    }

    /// Returns whether somebody asked for the job to end.
    pub(super) fn is_cancelled(&self) -> bool {
        let asked = |desk: &Desk| desk.is_cancelled.load(Ordering::Relaxed);
        self.request.cancellation.is_cancelled() || self.desk.as_ref().is_some_and(asked)
    }

    /// Tells the queue what is used, with the next renewal of the lease.
    pub(super) fn count(&self, used: Used) {
        if let Some(desk) = &self.desk {
            *desk.used.lock().unwrap_or_else(PoisonError::into_inner) = used;
        }
    }

    /// Begins a trial; `None` if another run is at it, or if it was begun several times and the run
    /// ended each time.
    ///
    /// # Errors
    /// If the store does not work.
    pub(super) async fn begin(
        &self,
        choices: &Choices,
        purpose: Purpose,
    ) -> Result<Option<Ticket>, Error> {
        let Some(desk) = &self.desk else {
            return Ok(Some(Ticket {
                lease: None,
                purpose,
            }));
        };
        let begun = desk.queue.begin(desk.job, key(choices), purpose).await?;
        let Some(begun) = begun else {
            return Ok(None);
        };
        let ticket = Ticket {
            lease: Some(begun.lease),
            purpose,
        };
        if begun.n_attempts > MOST_ATTEMPTS {
            self.end(ticket, TrialState::Failed, Batch::default())
                .await?;
            return Ok(None);
        }
        self.tell(ticket, TrialState::Queued);
        Ok(Some(ticket))
    }

    /// Moves a trial on; one that is no longer ours shows so at its end.
    ///
    /// # Errors
    /// If the store does not work.
    pub(super) async fn advance(
        &self,
        ticket: impl Into<Option<Ticket>>,
        state: TrialState,
    ) -> Result<(), Error> {
        let (Some(desk), Some((ticket, lease))) = (&self.desk, leased(ticket)) else {
            return Ok(());
        };
        match desk.queue.advance(lease, state).await {
            Ok(()) => self.tell(ticket, state),
            Err(StoreError::Fenced { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Waits until it is the trial's turn on the device, or until the run is cancelled: `None`.
    ///
    /// # Errors
    /// If the store or the lock file does not work.
    pub(super) async fn turn(
        &self,
        ticket: impl Into<Option<Ticket>>,
    ) -> Result<Option<Turn>, Error> {
        let ticket = ticket.into();
        let mut waiting = Waiting::default();
        while !self.is_cancelled() {
            if let Some(turn) = self.try_turn(ticket, &mut waiting).await? {
                return Ok(Some(turn));
            }
        }
        Ok(None)
    }

    /// Waits for the device as long as it takes: for the trial's turn, or until the device is free
    /// if another run has the trial.
    ///
    /// # Errors
    /// If the store or the lock file does not work.
    pub(super) async fn patient_turn(&self, ticket: Option<Ticket>) -> Result<Turn, Error> {
        let mut waiting = Waiting::default();
        loop {
            if let Some(turn) = self.try_turn(ticket, &mut waiting).await? {
                return Ok(turn);
            }
        }
    }

    /// Takes the device if it is free and the trial's turn; otherwise waits a little.
    async fn try_turn(
        &self,
        ticket: Option<Ticket>,
        waiting: &mut Waiting,
    ) -> Result<Option<Turn>, Error> {
        let Some(desk) = &self.desk else {
            return Ok(Some(Turn { _device: None }));
        };
        let first = desk.queue.turn(desk.device.clone()).await?;
        let is_first = match (first, leased(ticket)) {
            (Some(first), Some((_, lease))) => first == lease.trial,
            // Nobody waits: the trial was taken from us, which its end will show.
            (None, _) | (_, None) => true,
        };
        if is_first {
            match Device::try_hold(&self.request.home, COMMAND)? {
                Ok(device) => {
                    self.advance(ticket, TrialState::Measuring).await?;
                    return Ok(Some(Turn {
                        _device: Some(device),
                    }));
                }
                Err(holder) if !std::mem::replace(&mut waiting.is_told, true) => {
                    let holder = holder.map(|holder| holder.to_string());
                    self.reporter.report(&Event::LockAwaited {
                        path: self.target,
                        holder: holder.as_deref(),
                    });
                }
                Err(_) => {}
            }
        }
        tokio::time::sleep(POLL).await;
        Ok(None)
    }

    /// Ends a trial with its records. Those of one that somebody else has begun again meanwhile are
    /// dropped; returns whether they are recorded.
    ///
    /// # Errors
    /// If the store does not work.
    pub(super) async fn end(
        &self,
        ticket: impl Into<Option<Ticket>>,
        state: TrialState,
        batch: Batch,
    ) -> Result<bool, Error> {
        let (Some(desk), Some((ticket, lease))) = (&self.desk, leased(ticket)) else {
            self.store.record(batch).await?;
            return Ok(true);
        };
        match desk.queue.finish(lease, state, batch).await {
            Ok(_) => {
                self.tell(ticket, state);
                Ok(true)
            }
            Err(StoreError::Fenced { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives a trial up that nothing is to be recorded of.
    ///
    /// # Errors
    /// If the store does not work.
    pub(super) async fn drop(&self, ticket: impl Into<Option<Ticket>>) -> Result<(), Error> {
        let ticket = ticket.into();
        tracing::debug!(
            trial = leased(ticket).map(|(_, lease)| lease.trial.0),
            "drop"
        );
        let ended = self.end(ticket, TrialState::Dropped, Batch::default());
        ended.await.map(|_| ())
    }

    /// Records what belongs to no trial of its own.
    ///
    /// # Errors
    /// If the store does not work.
    pub(super) async fn record(&self, batch: Batch) -> Result<(), Error> {
        self.store.record(batch).await?;
        Ok(())
    }

    /// Closes the job.
    ///
    /// # Errors
    /// If the store does not work.
    pub(super) async fn close(&self, state: JobState, used: Used) -> Result<(), Error> {
        if let Some(desk) = &self.desk {
            desk.heartbeat.abort();
            desk.queue.close(desk.job, state, used).await?;
        }
        Ok(())
    }

    fn tell(&self, ticket: Ticket, state: TrialState) {
        if let Some(lease) = ticket.lease {
            self.reporter.report(&Event::TrialMoved {
                trial: lease.trial.0,
                purpose: ticket.purpose,
                state,
            });
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.heartbeat.abort();
    }
}

/// Returns what groups what is done in a trial for developers.
pub(super) fn trial_span(artifact: &Artifact, purpose: Purpose) -> tracing::Span {
    let artifact = artifact.digest.short();
    tracing::debug_span!("trial", %artifact, stage = ?purpose)
}

fn leased(ticket: impl Into<Option<Ticket>>) -> Option<(Ticket, Lease)> {
    let ticket = ticket.into()?;
    Some((ticket, ticket.lease?))
}

/// Renews the lease of a job as long as it is let, and takes its orders.
fn heartbeat(
    queue: Queue,
    job: JobId,
    is_cancelled: Arc<AtomicBool>,
    used: Arc<Mutex<Used>>,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(LEASE / 10).await;
            // A store that does not answer now may do so later, and the lease lasts a while.
            let used = *used.lock().unwrap_or_else(PoisonError::into_inner);
            if let Ok(orders) = queue.renew(job, used).await {
                is_cancelled.fetch_or(orders.is_cancelled, Ordering::Relaxed);
            }
        }
    })
}

/// Returns what says which deployment is compiled.
fn key(choices: &Choices) -> Digest {
    let mut encoder = Encoder::new("metainfer trial v1");
    // Maps of text and numbers: there is JSON for them.
    encoder.str(&serde_json::to_string(choices).unwrap_or_default());
    encoder.finish()
}
