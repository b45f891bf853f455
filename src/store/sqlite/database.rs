//! What is said to SQLite, synchronously.

use rusqlite::{Connection, Row, TransactionBehavior, params};

use crate::digest::Digest;
use crate::label::{DecodeError, Evaluation, Label};
use crate::store::{Batch, Recorded, Stats, TaskLabels};

/// Records that were read, and how many of them could not be handed out.
pub(super) struct Read<T> {
    pub(super) records: T,
    pub(super) n_rejected: u64,
}

pub(super) fn record(connection: &mut Connection, batch: &Batch) -> rusqlite::Result<Recorded> {
    // Immediate: a reader that turns writer may be refused at once, whatever the busy timeout.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let recorded = insert(&transaction, batch)?;
    transaction.commit()?;
    Ok(recorded)
}

/// Adds records as part of a transaction.
pub(super) fn insert(transaction: &Connection, batch: &Batch) -> rusqlite::Result<Recorded> {
    let mut recorded = Recorded::default();
    {
        let mut insert = transaction.prepare_cached(
            "INSERT OR IGNORE INTO label (id, task, time_ms, record) VALUES (?1, ?2, ?3, ?4)",
        )?;
        for label in &batch.labels {
            let bytes = label.encode();
            recorded.n_labels += insert.execute(params![
                Label::id_of(&bytes).as_bytes(),
                label.task.digest().as_bytes(),
                label.provenance.time_ms.cast_signed(),
                bytes,
            ])?;
        }
        let mut insert = transaction.prepare_cached(
            "INSERT OR IGNORE INTO evaluation (id, adaptation, time_ms, record) \
             VALUES (?1, ?2, ?3, ?4)",
        )?;
        for evaluation in &batch.evaluations {
            let bytes = evaluation.encode();
            recorded.n_evaluations += insert.execute(params![
                Evaluation::id_of(&bytes).as_bytes(),
                evaluation.adaptation.as_bytes(),
                evaluation.time_ms.cast_signed(),
                bytes,
            ])?;
        }
    }
    Ok(recorded)
}

pub(super) fn labels(
    connection: &Connection,
    tasks: &[Digest],
) -> rusqlite::Result<Read<TaskLabels>> {
    let mut select = connection
        .prepare_cached("SELECT id, record FROM label WHERE task = ?1 ORDER BY time_ms, id")?;
    let mut read = Read {
        records: TaskLabels::new(),
        n_rejected: 0,
    };
    for task in tasks {
        let rows = select.query_map(params![task.as_bytes()], row)?;
        let mut labels = Vec::new();
        for row in rows {
            match verified(&row?, Label::id_of, Label::decode) {
                Some(label) if label.task.digest() == *task => labels.push(label),
                _ => read.n_rejected += 1,
            }
        }
        if !labels.is_empty() {
            read.records.insert(*task, labels);
        }
    }
    Ok(read)
}

pub(super) fn evaluations(
    connection: &Connection,
    adaptation: Digest,
) -> rusqlite::Result<Read<Vec<Evaluation>>> {
    let mut select = connection.prepare_cached(
        "SELECT id, record FROM evaluation WHERE adaptation = ?1 ORDER BY time_ms, id",
    )?;
    let mut read = Read {
        records: Vec::new(),
        n_rejected: 0,
    };
    for row in select.query_map(params![adaptation.as_bytes()], row)? {
        match verified(&row?, Evaluation::id_of, Evaluation::decode) {
            Some(evaluation) if evaluation.adaptation == adaptation => {
                read.records.push(evaluation);
            }
            _ => read.n_rejected += 1,
        }
    }
    Ok(read)
}

pub(super) fn stats(connection: &Connection) -> rusqlite::Result<Stats> {
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let page_bytes: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    Ok(Stats {
        n_labels: count("SELECT count(*) FROM label")?.cast_unsigned(),
        n_tasks: count("SELECT count(DISTINCT task) FROM label")?.cast_unsigned(),
        n_evaluations: count("SELECT count(*) FROM evaluation")?.cast_unsigned(),
        n_rejected: 0,
        bytes: (pages * page_bytes).cast_unsigned(),
    })
}

/// Returns id and bytes; a column of another type is as good as damaged.
fn row(row: &Row<'_>) -> rusqlite::Result<(Vec<u8>, Vec<u8>)> {
    let bytes = |idx| {
        row.get_ref(idx)
            .map(|value| value.as_bytes().unwrap_or_default().to_vec())
    };
    Ok((bytes(0)?, bytes(1)?))
}

/// Returns the record of a row if its bytes have its id and can be believed.
fn verified<T>(
    (id, bytes): &(Vec<u8>, Vec<u8>),
    id_of: fn(&[u8]) -> Digest,
    decode: fn(&[u8]) -> Result<T, DecodeError>,
) -> Option<T> {
    if id_of(bytes).as_bytes()[..] != id[..] {
        tracing::warn!("a record does not have its id");
        return None;
    }
    decode(bytes)
        .inspect_err(|error| tracing::warn!(%error, "a record is not handed out"))
        .ok()
}
