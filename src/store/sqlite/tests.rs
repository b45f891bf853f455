//! The queue over a real file, with runs that are gone, late, or not alone.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};

use super::migrations::MIGRATIONS;
use crate::digest::Digest;
use crate::label::Purpose;
use crate::label::arbitrary::{digest, evaluation, label, task};
use crate::queue::{JobId, JobSpec, JobState, Lease, Priority, TrialState, Used};
use crate::store::{Batch, LabelStore, Queue, Sqlite, StoreError};

/// A store in a directory of its own.
struct Setup {
    _dir: tempfile::TempDir,
    path: PathBuf,
    store: Sqlite,
    queue: Queue,
}

impl Setup {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("labels.sqlite");
        let store = Sqlite::open(&path).unwrap();
        Self {
            _dir: dir,
            path,
            queue: Queue::of(store.clone()),
            store,
        }
    }

    /// Ends the leases of a job as time does.
    fn expire(&self, job: JobId) {
        let raw = Connection::open(&self.path).unwrap();
        let set = "UPDATE job SET lease_ms = 0 WHERE id = ?1";
        assert_eq!(raw.execute(set, params![job.0]).unwrap(), 1);
    }

    async fn n_labels(&self) -> u64 {
        self.store.stats().await.unwrap().n_labels
    }
}

fn spec(workspace: &str, adaptation: u64) -> JobSpec {
    JobSpec {
        workspace: workspace.to_owned(),
        model: "net".to_owned(),
        target: "cpu".to_owned(),
        adaptation: digest(adaptation),
        device: "here".to_owned(),
        holder: "test".to_owned(),
        priority: Priority::Normal,
        max_evaluations: 30,
    }
}

fn key(text: &str) -> Digest {
    Digest::of_bytes("test", text.as_bytes())
}

fn batch(n: u64) -> Batch {
    Batch::of(evaluation(7, n), vec![label(1, 100 + n)])
}

/// Begins a trial and takes it through to the device.
async fn measuring(queue: &Queue, job: JobId, name: &str) -> Lease {
    let begun = queue.begin(job, key(name), Purpose::Screening).await;
    let lease = begun.unwrap().unwrap().lease;
    for state in [
        TrialState::Compiling,
        TrialState::Compiled,
        TrialState::Measuring,
    ] {
        queue.advance(lease, state).await.unwrap();
    }
    lease
}

fn expect_fenced<T: std::fmt::Debug>(result: &Result<T, StoreError>) {
    assert!(
        matches!(result, Err(StoreError::Fenced { .. })),
        "{result:?}"
    );
}

#[tokio::test]
async fn a_trial_ends_with_its_records_once_and_in_order() {
    let Setup { queue, store, .. } = &Setup::new();
    let job = queue.open(spec("/a", 7)).await.unwrap();
    let begun = queue.begin(job, key("x"), Purpose::Screening).await;
    let lease = begun.unwrap().unwrap().lease;
    expect_fenced(&queue.advance(lease, TrialState::Measuring).await);
    expect_fenced(&queue.finish(lease, TrialState::Recorded, batch(1)).await);
    let lease = measuring(queue, job, "y").await;
    let recorded = queue.finish(lease, TrialState::Recorded, batch(2)).await;
    assert_eq!(recorded.unwrap().n_labels, 1);
    expect_fenced(&queue.finish(lease, TrialState::Recorded, batch(3)).await);
    assert_eq!(store.stats().await.unwrap().n_labels, 1);
    let open = &queue.jobs().await.unwrap()[0];
    assert_eq!((open.n_open, open.state), ([1, 0, 0, 0], JobState::Running));
    queue.close(job, JobState::Done, used(12)).await.unwrap();
    // One that was on its way.
    assert!(queue.renew(job, used(11)).await.is_err());
    let closed = &queue.jobs().await.unwrap()[0];
    assert_eq!((closed.n_open, closed.used), ([0; 4], used(12)));
    assert_eq!(closed.state, JobState::Done);
}

#[tokio::test]
async fn a_refused_record_leaves_the_trial_as_it_was() {
    let Setup { queue, .. } = &Setup::new();
    let job = queue.open(spec("/a", 7)).await.unwrap();
    let lease = measuring(queue, job, "x").await;
    let mut odd = batch(1);
    odd.labels[0].divergence = Some(f64::NAN);
    let refused = queue.finish(lease, TrialState::Recorded, odd).await;
    assert!(matches!(refused, Err(StoreError::Implausible(_))));
    let recorded = queue.finish(lease, TrialState::Recorded, batch(1)).await;
    recorded.unwrap();
}

#[tokio::test]
async fn a_stale_run_never_records_over_a_newer_one() {
    let all = Setup::new();
    let queue = &all.queue;
    let stale = queue.open(spec("/a", 7)).await.unwrap();
    let old = measuring(queue, stale, "x").await;
    let other = queue.open(spec("/b", 7)).await.unwrap();
    let held = queue.begin(other, key("x"), Purpose::Screening).await;
    assert_eq!(held.unwrap(), None, "its holder is alive");
    all.expire(stale);
    let begun = queue.begin(other, key("x"), Purpose::Screening).await;
    let begun = begun.unwrap().unwrap();
    assert_eq!((begun.lease.trial, begun.n_attempts), (old.trial, 2));
    assert!(begun.lease.fence > old.fence);
    // It wakes up, and is as good as alive, but comes too late for this trial.
    queue.renew(stale, used(3)).await.unwrap();
    expect_fenced(&queue.finish(old, TrialState::Recorded, batch(1)).await);
    assert_eq!(all.n_labels().await, 0);
    let new = begun.lease;
    for state in [
        TrialState::Compiling,
        TrialState::Compiled,
        TrialState::Measuring,
    ] {
        queue.advance(new, state).await.unwrap();
    }
    queue
        .finish(new, TrialState::Recorded, batch(2))
        .await
        .unwrap();
    assert_eq!(all.n_labels().await, 1);
}

#[tokio::test]
async fn the_next_run_in_a_workspace_takes_over_at_once_and_counts_attempts() {
    let all = Setup::new();
    let queue = &all.queue;
    let first = queue.open(spec("/a", 7)).await.unwrap();
    let lost = measuring(queue, first, "x").await;
    for n_attempts in 2..=3 {
        let next = queue.open(spec("/a", 7)).await.unwrap();
        let states: Vec<JobState> = queue
            .jobs()
            .await
            .unwrap()
            .iter()
            .map(|j| j.state)
            .collect();
        assert_eq!(
            states[..states.len() - 1],
            vec![JobState::Lost; states.len() - 1]
        );
        let begun = queue.begin(next, key("x"), Purpose::Screening).await;
        assert_eq!(begun.unwrap().unwrap().n_attempts, n_attempts);
    }
    expect_fenced(&queue.finish(lost, TrialState::Recorded, batch(1)).await);
}

#[tokio::test]
async fn a_trial_that_came_to_an_end_may_be_begun_again_as_if_new() {
    let Setup { queue, .. } = &Setup::new();
    let job = queue.open(spec("/a", 7)).await.unwrap();
    let lease = measuring(queue, job, "x").await;
    queue
        .finish(lease, TrialState::Failed, batch(1))
        .await
        .unwrap();
    let again = queue.begin(job, key("x"), Purpose::Final).await;
    let again = again.unwrap().unwrap();
    assert_eq!((again.lease.trial, again.n_attempts), (lease.trial, 1));
}

#[tokio::test]
async fn the_device_goes_to_what_matters_most_among_living_runs() {
    let all = Setup::new();
    let queue = &all.queue;
    let turn = || queue.turn("here".to_owned());
    assert_eq!(turn().await.unwrap(), None);
    let mut waiting = Vec::new();
    for (workspace, adaptation) in [("/a", 1), ("/b", 2), ("/c", 3)] {
        let job = queue.open(spec(workspace, adaptation)).await.unwrap();
        let begun = queue.begin(job, key("x"), Purpose::Screening).await;
        let lease = begun.unwrap().unwrap().lease;
        queue.advance(lease, TrialState::Compiling).await.unwrap();
        queue.advance(lease, TrialState::Compiled).await.unwrap();
        waiting.push((job, lease));
    }
    assert!(
        queue
            .prioritise(waiting[1].0, Priority::High)
            .await
            .unwrap()
    );
    assert_eq!(turn().await.unwrap(), Some(waiting[1].1.trial));
    all.expire(waiting[1].0);
    assert_eq!(turn().await.unwrap(), Some(waiting[0].1.trial));
    assert_eq!(queue.turn("there".to_owned()).await.unwrap(), None);
    queue
        .advance(waiting[0].1, TrialState::Measuring)
        .await
        .unwrap();
    assert_eq!(turn().await.unwrap(), Some(waiting[2].1.trial));
}

#[tokio::test]
async fn orders_reach_a_run_with_its_next_renewal_and_none_that_is_gone() {
    let all = Setup::new();
    let queue = &all.queue;
    let job = queue.open(spec("/a", 7)).await.unwrap();
    let orders = queue.renew(job, used(1)).await.unwrap();
    assert_eq!(
        (orders.is_cancelled, orders.priority),
        (false, Priority::Normal)
    );
    assert!(queue.cancel(job).await.unwrap());
    assert!(queue.prioritise(job, Priority::Low).await.unwrap());
    assert_eq!(queue.jobs().await.unwrap()[0].used, used(1));
    let orders = queue.renew(job, used(2)).await.unwrap();
    assert_eq!(
        (orders.is_cancelled, orders.priority),
        (true, Priority::Low)
    );
    all.expire(job);
    assert!(!queue.cancel(job).await.unwrap());
    assert!(!queue.cancel(JobId(99)).await.unwrap());
    assert!(!queue.prioritise(job, Priority::High).await.unwrap());
}

#[tokio::test]
async fn old_jobs_go_with_their_trials() {
    let all = Setup::new();
    let queue = &all.queue;
    for n in 0..204 {
        let job = queue.open(spec("/a", 7)).await.unwrap();
        let name = n.to_string();
        queue
            .begin(job, key(&name), Purpose::Screening)
            .await
            .unwrap();
        queue
            .close(job, JobState::Done, Used::default())
            .await
            .unwrap();
    }
    queue.open(spec("/a", 7)).await.unwrap();
    assert_eq!(queue.jobs().await.unwrap().len(), 201);
    let raw = Connection::open(&all.path).unwrap();
    let n_trials: u32 = raw
        .query_row("SELECT count(*) FROM trial", [], |row| row.get(0))
        .unwrap();
    assert_eq!(n_trials, 200);
}

fn used(n_evaluations: u32) -> Used {
    Used {
        n_evaluations,
        disk_bytes: 7 << 30,
    }
}

#[tokio::test]
async fn a_file_of_the_second_schema_keeps_its_jobs_and_says_what_they_use() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("labels.sqlite");
    let raw = Connection::open(&path).unwrap();
    for migration in &MIGRATIONS[..2] {
        raw.execute_batch(migration).unwrap();
    }
    raw.pragma_update(None, "user_version", 2).unwrap();
    let insert = "INSERT INTO job VALUES (5, '/w', 'net', 'cpu', x'00', 'd', 'h', 'normal', 9, 4, 0, \
                  'done', 'b', 0, 1)";
    raw.execute(insert, []).unwrap();
    drop(raw);
    let queue = Queue::of(Sqlite::open(&path).unwrap());
    let jobs = queue.jobs().await.unwrap();
    let expected = Used {
        n_evaluations: 4,
        disk_bytes: 0,
    };
    assert_eq!((jobs[0].id, jobs[0].used), (JobId(5), expected));
    let job = queue.open(spec("/a", 7)).await.unwrap();
    queue.renew(job, used(2)).await.unwrap();
    assert_eq!(queue.jobs().await.unwrap()[1].used, used(2));
}

/// Makes a file as the first schema had it, with a label in it.
fn first_schema(path: &Path) {
    let raw = Connection::open(path).unwrap();
    raw.execute_batch(MIGRATIONS[0]).unwrap();
    raw.pragma_update(None, "user_version", 1).unwrap();
    let label = label(1, 100);
    let insert = "INSERT INTO label (id, task, time_ms, record) VALUES (?1, ?2, ?3, ?4)";
    let id = label.id().0;
    raw.execute(
        insert,
        params![
            id.as_bytes(),
            label.task.digest().as_bytes(),
            label.provenance.time_ms.cast_signed(),
            label.encode()
        ],
    )
    .unwrap();
}

#[tokio::test]
async fn a_file_of_the_first_schema_keeps_its_labels_and_gets_a_queue() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("labels.sqlite");
    first_schema(&path);
    let store = Sqlite::open(&path).unwrap();
    let labels = store.labels(vec![task(1).digest()]).await.unwrap();
    assert_eq!(labels[&task(1).digest()], [label(1, 100)]);
    let queue = Queue::of(store);
    queue.open(spec("/a", 7)).await.unwrap();
    assert_eq!(queue.jobs().await.unwrap().len(), 1);
}
