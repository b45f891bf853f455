//! What is said to SQLite about jobs, synchronously.

use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, Row, TransactionBehavior, params};

use super::queue::Orders;
use crate::queue::{Job, JobId, JobSpec, JobState, Priority, TrialState, Uptime, Used};

/// Jobs that are kept after their end, with their trials.
const MOST_KEPT: u32 = 200;

/// Trials that are not over.
const OPEN: &str = "state IN ('queued', 'compiling', 'compiled', 'measuring')";

/// Opens a job. Whoever opens one holds the workspace, so that earlier runs in it are gone.
pub(super) fn open(
    connection: &mut Connection,
    spec: &JobSpec,
    now: &Uptime,
) -> rusqlite::Result<JobId> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    bury(&transaction, Some(&spec.workspace), now)?;
    let old = "SELECT id FROM job WHERE state <> 'running' ORDER BY id DESC LIMIT -1 OFFSET ?1";
    for delete in ["trial WHERE job", "job WHERE id"] {
        let delete = format!("DELETE FROM {delete} IN ({old})");
        transaction.execute(&delete, params![MOST_KEPT])?;
    }
    let started = SystemTime::now().duration_since(UNIX_EPOCH);
    let started_ms = started.map_or(0, |since| since.as_millis() as i64);
    transaction.execute(
        "INSERT INTO job (workspace, model, target, adaptation, device, holder, priority, \
         max_evaluations, n_evaluations, is_cancelled, state, boot, lease_ms, started_ms) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, 0, 'running', ?9, ?10, ?11)",
        params![
            spec.workspace,
            spec.model,
            spec.target,
            spec.adaptation.as_bytes(),
            spec.device,
            spec.holder,
            spec.priority.name(),
            spec.max_evaluations,
            now.boot,
            now.lease_end_ms(),
            started_ms,
        ],
    )?;
    let id = JobId(transaction.last_insert_rowid());
    transaction.commit()?;
    Ok(id)
}

/// Says of jobs whose run is gone that they are lost, and drops their trials: those of a workspace
/// and those whose lease is over.
fn bury(connection: &Connection, workspace: Option<&str>, now: &Uptime) -> rusqlite::Result<()> {
    let gone = "state = 'running' AND (workspace = ?1 OR boot <> ?2 OR lease_ms <= ?3)";
    // State and number of attempts stay: whoever begins such a trial again must know.
    connection.execute(
        &format!(
            "UPDATE trial SET fence = fence + 1 WHERE job IN (SELECT id FROM job WHERE {gone}) \
             AND {OPEN}"
        ),
        params![workspace, now.boot, now.ms],
    )?;
    connection.execute(
        &format!("UPDATE job SET state = 'lost' WHERE {gone}"),
        params![workspace, now.boot, now.ms],
    )?;
    Ok(())
}

/// Renews a job's lease; returns what its run is to do. A renewal that comes after the end opens
/// nothing again.
pub(super) fn renew(
    connection: &mut Connection,
    job: JobId,
    used: Used,
    now: &Uptime,
) -> rusqlite::Result<Orders> {
    connection.query_row(
        "UPDATE job SET state = 'running', boot = ?2, lease_ms = ?3, n_evaluations = ?4, \
         disk_bytes = ?5 WHERE id = ?1 AND state IN ('running', 'lost') RETURNING is_cancelled, priority",
        params![
            job.0,
            now.boot,
            now.lease_end_ms(),
            used.n_evaluations,
            used.disk_bytes.cast_signed()
        ],
        |row| {
            let priority: String = row.get(1)?;
            Ok(Orders {
                is_cancelled: row.get(0)?,
                priority: Priority::of_name(&priority).unwrap_or_default(),
            })
        },
    )
}

/// Closes a job; trials that it leaves open are dropped.
pub(super) fn close(
    connection: &mut Connection,
    job: JobId,
    state: JobState,
    used: Used,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute(
        "UPDATE job SET state = ?2, n_evaluations = ?3, disk_bytes = ?4 WHERE id = ?1",
        params![
            job.0,
            state.name(),
            used.n_evaluations,
            used.disk_bytes.cast_signed()
        ],
    )?;
    transaction.execute(
        &format!("UPDATE trial SET state = 'dropped', fence = fence + 1 WHERE job = ?1 AND {OPEN}"),
        params![job.0],
    )?;
    transaction.commit()
}

/// Asks for a job to end; returns whether there is such a job at work.
pub(super) fn cancel(
    connection: &mut Connection,
    job: JobId,
    now: &Uptime,
) -> rusqlite::Result<bool> {
    bury(connection, None, now)?;
    let changed = connection.execute(
        "UPDATE job SET is_cancelled = 1 WHERE id = ?1 AND state = 'running'",
        params![job.0],
    )?;
    Ok(changed > 0)
}

/// Changes the priority of a job; returns whether there is such a job at work.
pub(super) fn prioritise(
    connection: &mut Connection,
    job: JobId,
    priority: Priority,
    now: &Uptime,
) -> rusqlite::Result<bool> {
    bury(connection, None, now)?;
    let changed = connection.execute(
        "UPDATE job SET priority = ?2 WHERE id = ?1 AND state = 'running'",
        params![job.0, priority.name()],
    )?;
    Ok(changed > 0)
}

/// Returns all jobs that are kept, the oldest first.
pub(super) fn list(connection: &mut Connection, now: &Uptime) -> rusqlite::Result<Vec<Job>> {
    bury(connection, None, now)?;
    let mut select = connection.prepare_cached(
        "SELECT id, workspace, model, target, holder, priority, max_evaluations, n_evaluations, \
         is_cancelled, state, started_ms, disk_bytes FROM job ORDER BY id",
    )?;
    let jobs: rusqlite::Result<Vec<Job>> = select.query_map([], job)?.collect();
    let mut jobs = jobs?;
    let mut count =
        connection.prepare_cached("SELECT count(*) FROM trial WHERE job = ?1 AND state = ?2")?;
    for job in jobs.iter_mut().filter(|job| job.state == JobState::Running) {
        for (n, state) in job.n_open.iter_mut().zip(TrialState::ALL) {
            *n = count.query_row(params![job.id.0, state.name()], |row| row.get(0))?;
        }
    }
    Ok(jobs)
}

fn job(row: &Row<'_>) -> rusqlite::Result<Job> {
    let priority: String = row.get(5)?;
    let state: String = row.get(9)?;
    Ok(Job {
        id: JobId(row.get(0)?),
        workspace: row.get(1)?,
        model: row.get(2)?,
        target: row.get(3)?,
        holder: row.get(4)?,
        priority: Priority::of_name(&priority).unwrap_or_default(),
        max_evaluations: row.get(6)?,
        used: Used {
            n_evaluations: row.get(7)?,
            disk_bytes: row.get::<_, i64>(11)?.cast_unsigned(),
        },
        is_cancelled: row.get(8)?,
        // A state of another release: it is not running here.
        state: JobState::of_name(&state).unwrap_or(JobState::Lost),
        n_open: [0; 4],
        started_ms: row.get::<_, i64>(10)?.cast_unsigned(),
    })
}
