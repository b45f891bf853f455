//! The schema, as the append-only list of its changes.
//!
//! `user_version` of the file says how many of them it has seen. A change that was released is
//! never edited; columns are added, not dropped or reinterpreted.

use rusqlite::{Connection, TransactionBehavior};

/// All changes, oldest first.
pub(super) const MIGRATIONS: [&str; 3] = [
    // `record` has the canonical bytes; the other columns say where to look and are checked
    // against them when read.
    "CREATE TABLE label (
         id      BLOB PRIMARY KEY NOT NULL,
         task    BLOB NOT NULL,
         time_ms INTEGER NOT NULL,
         record  BLOB NOT NULL
     );
     CREATE INDEX label_task ON label (task, time_ms, id);
     CREATE TABLE evaluation (
         id         BLOB PRIMARY KEY NOT NULL,
         adaptation BLOB NOT NULL,
         time_ms    INTEGER NOT NULL,
         record     BLOB NOT NULL
     );
     CREATE INDEX evaluation_adaptation ON evaluation (adaptation, time_ms, id);",
    // What runs on this machine are at. `lease_ms` and `since_ms` count from the start `boot` of
    // the machine, the other times from the Unix epoch.
    "CREATE TABLE job (
         id              INTEGER PRIMARY KEY AUTOINCREMENT,
         workspace       TEXT NOT NULL,
         model           TEXT NOT NULL,
         target          TEXT NOT NULL,
         adaptation      BLOB NOT NULL,
         device          TEXT NOT NULL,
         holder          TEXT NOT NULL,
         priority        TEXT NOT NULL,
         max_evaluations INTEGER NOT NULL,
         n_evaluations   INTEGER NOT NULL,
         is_cancelled    INTEGER NOT NULL,
         state           TEXT NOT NULL,
         boot            TEXT NOT NULL,
         lease_ms        INTEGER NOT NULL,
         started_ms      INTEGER NOT NULL
     );
     CREATE INDEX job_state ON job (state);
     CREATE TABLE trial (
         id         INTEGER PRIMARY KEY AUTOINCREMENT,
         adaptation BLOB NOT NULL,
         key        BLOB NOT NULL,
         job        INTEGER NOT NULL,
         purpose    TEXT NOT NULL,
         state      TEXT NOT NULL,
         n_attempts INTEGER NOT NULL,
         fence      INTEGER NOT NULL,
         since_ms   INTEGER NOT NULL,
         UNIQUE (adaptation, key)
     );
     CREATE INDEX trial_job ON trial (job, state);",
    // What the workspace of a job keeps on disk.
    "ALTER TABLE job ADD COLUMN disk_bytes INTEGER NOT NULL DEFAULT 0;",
];

/// Returns how many changes the file has seen.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Brings the file up to date. Two processes may do so at the same time.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    if version(connection)? as usize >= MIGRATIONS.len() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Read again: another process may have been faster.
    let seen = version(&transaction)? as usize;
    for migration in MIGRATIONS.iter().skip(seen) {
        transaction.execute_batch(migration)?;
    }
    let known = seen.max(MIGRATIONS.len());
    transaction.pragma_update(None, "user_version", known as u32)?;
    transaction.commit()
}
