//! What is said to SQLite about trials, synchronously.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::database;
use super::queue::Begun;
use crate::digest::Digest;
use crate::label::Purpose;
use crate::queue::{JobId, Lease, Priority, TrialId, TrialState, Uptime, Waiting};
use crate::store::{Batch, Recorded};

/// What is known of a trial that is to be begun.
struct Earlier {
    id: i64,
    fence: i64,
    n_attempts: u32,
    is_over: bool,
    is_held: bool,
}

/// Leases a trial to a job; `None` if a run that is alive has it.
pub(super) fn begin(
    connection: &mut Connection,
    job: JobId,
    key: Digest,
    purpose: Purpose,
    now: &Uptime,
) -> rusqlite::Result<Option<Begun>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let adaptation: Vec<u8> = transaction.query_row(
        "SELECT adaptation FROM job WHERE id = ?1",
        params![job.0],
        |row| row.get(0),
    )?;
    let begun = match earlier(&transaction, &adaptation, key, job, now)? {
        Some(earlier) if earlier.is_held => return Ok(None),
        Some(earlier) => {
            // One that was lost on its way may be what ends the runs that begin it.
            let n_attempts = if earlier.is_over {
                1
            } else {
                earlier.n_attempts + 1
            };
            let fence = earlier.fence + 1;
            transaction.execute(
                "UPDATE trial SET job = ?2, purpose = ?3, state = 'queued', n_attempts = ?4, \
                 fence = ?5, since_ms = ?6 WHERE id = ?1",
                params![earlier.id, job.0, name(purpose), n_attempts, fence, now.ms],
            )?;
            Begun {
                lease: Lease {
                    trial: TrialId(earlier.id),
                    fence,
                },
                n_attempts,
            }
        }
        None => {
            transaction.execute(
                "INSERT INTO trial (adaptation, key, job, purpose, state, n_attempts, fence, \
                 since_ms) VALUES (?1, ?2, ?3, ?4, 'queued', 1, 1, ?5)",
                params![adaptation, key.as_bytes(), job.0, name(purpose), now.ms],
            )?;
            Begun {
                lease: Lease {
                    trial: TrialId(transaction.last_insert_rowid()),
                    fence: 1,
                },
                n_attempts: 1,
            }
        }
    };
    transaction.commit()?;
    Ok(Some(begun))
}

fn earlier(
    connection: &Connection,
    adaptation: &[u8],
    key: Digest,
    job: JobId,
    now: &Uptime,
) -> rusqlite::Result<Option<Earlier>> {
    let mut select = connection.prepare_cached(
        "SELECT trial.id, fence, n_attempts, trial.state, job.id, boot, lease_ms, job.state \
         FROM trial JOIN job ON job.id = trial.job WHERE trial.adaptation = ?1 AND key = ?2",
    )?;
    let found = select.query_row(params![adaptation, key.as_bytes()], |row| {
        let is_over = state(&row.get::<_, String>(3)?).is_none_or(TrialState::is_over);
        let boot: String = row.get(5)?;
        let is_alive = row.get::<_, String>(7)? == "running" && now.is_before(&boot, row.get(6)?);
        Ok(Earlier {
            id: row.get(0)?,
            fence: row.get(1)?,
            n_attempts: row.get(2)?,
            is_over,
            is_held: !is_over && is_alive && row.get::<_, i64>(4)? != job.0,
        })
    });
    found.optional()
}

/// Moves a trial on; returns whether it was still the lease's to move.
pub(super) fn advance(
    connection: &mut Connection,
    lease: Lease,
    next: TrialState,
    now: &Uptime,
) -> rusqlite::Result<bool> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let moved = step(&transaction, lease, next, now)?;
    transaction.commit()?;
    Ok(moved)
}

/// Ends a trial and adds its records, both or neither; `None` if it was no longer the lease's to
/// end.
pub(super) fn finish(
    connection: &mut Connection,
    lease: Lease,
    end: TrialState,
    batch: &Batch,
    now: &Uptime,
) -> rusqlite::Result<Option<Recorded>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if !step(&transaction, lease, end, now)? {
        return Ok(None);
    }
    let recorded = database::insert(&transaction, batch)?;
    transaction.commit()?;
    Ok(Some(recorded))
}

fn step(
    connection: &Connection,
    lease: Lease,
    next: TrialState,
    now: &Uptime,
) -> rusqlite::Result<bool> {
    let current: Option<String> = connection
        .query_row(
            "SELECT state FROM trial WHERE id = ?1 AND fence = ?2",
            params![lease.trial.0, lease.fence],
            |row| row.get(0),
        )
        .optional()?;
    let current = current.as_deref().and_then(state);
    if !current.is_some_and(|current| current.may_become(next)) {
        return Ok(false);
    }
    connection.execute(
        "UPDATE trial SET state = ?2, since_ms = ?3 WHERE id = ?1",
        params![lease.trial.0, next.name(), now.ms],
    )?;
    Ok(true)
}

/// Returns the trials of all living jobs that wait for a device.
pub(super) fn waiting(
    connection: &Connection,
    device: &str,
    now: &Uptime,
) -> rusqlite::Result<Vec<Waiting>> {
    let mut select = connection.prepare_cached(
        "SELECT job.id, trial.id, priority, purpose, since_ms FROM trial \
         JOIN job ON job.id = trial.job WHERE trial.state = 'compiled' AND job.state = 'running' \
         AND device = ?1 AND boot = ?2 AND lease_ms > ?3",
    )?;
    let rows = select.query_map(params![device, now.boot, now.ms], |row| {
        let priority: String = row.get(2)?;
        let purpose: String = row.get(3)?;
        Ok(Waiting {
            job: JobId(row.get(0)?),
            trial: TrialId(row.get(1)?),
            priority: Priority::of_name(&priority).unwrap_or_default(),
            purpose: purpose_of(&purpose),
            since_ms: row.get(4)?,
        })
    })?;
    rows.collect()
}

fn state(name: &str) -> Option<TrialState> {
    TrialState::of_name(name)
}

fn name(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Screening => "screening",
        Purpose::Final => "final",
        Purpose::Confirm => "confirm",
    }
}

/// A purpose of another release waits like any other trial.
fn purpose_of(name: &str) -> Purpose {
    match name {
        "final" => Purpose::Final,
        "confirm" => Purpose::Confirm,
        _ => Purpose::Screening,
    }
}
