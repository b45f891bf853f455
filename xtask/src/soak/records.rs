//! What the label store holds.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use metainfer::digest::Digest;
use metainfer::label::{Evaluation, EvaluationId, Label, LabelId, Outcome, Purpose};
use rusqlite::{Connection, OpenFlags};

/// All records, in the order in which they were written.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) evaluations: Vec<Evaluation>,
    pub(super) labels: Vec<Label>,
}

/// Names of records.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Ids {
    evaluations: BTreeSet<EvaluationId>,
    labels: BTreeSet<LabelId>,
}

impl Records {
    /// Reads a store; one that does not exist is empty.
    ///
    /// # Errors
    /// If a record cannot be read: none may be damaged.
    pub(super) fn read(path: &Path) -> Result<Self> {
        if !path.exists() {
            return Ok(Self::default());
        }
        // Writable, so that what is only in the log is read too.
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.busy_timeout(std::time::Duration::from_mins(1))?;
        let read = |table: &str| -> Result<Vec<Vec<u8>>> {
            let query = format!("SELECT record FROM {table} ORDER BY rowid");
            let mut select = connection.prepare(&query)?;
            let rows = select.query_map([], |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        };
        let (evaluations, labels) = (read("evaluation")?, read("label")?);
        let evaluations = evaluations.iter().map(|bytes| Evaluation::decode(bytes));
        let labels = labels.iter().map(|bytes| Label::decode(bytes));
        Ok(Self {
            evaluations: evaluations
                .collect::<Result<_, _>>()
                .context("a damaged evaluation")?,
            labels: labels
                .collect::<Result<_, _>>()
                .context("a damaged label")?,
        })
    }

    /// Returns those of one adaptation: its evaluations, and the labels that they gave.
    pub(super) fn of(self, adaptation: Digest) -> Self {
        let evaluations = self.evaluations.into_iter();
        let evaluations: Vec<Evaluation> = evaluations
            .filter(|evaluation| evaluation.adaptation == adaptation)
            .collect();
        let artifacts: BTreeSet<Digest> = evaluations.iter().map(|e| e.artifact).collect();
        let labels = self.labels.into_iter().filter(|label| {
            let artifact = label.provenance.artifact;
            artifact.is_some_and(|artifact| artifacts.contains(&artifact))
        });
        Self {
            labels: labels.collect(),
            evaluations,
        }
    }

    /// Returns the evaluations that count: a confirmation only says that a decision was made.
    pub(super) fn spent(&self) -> impl Iterator<Item = &Evaluation> {
        let spent = self.evaluations.iter();
        spent.filter(|evaluation| evaluation.purpose != Purpose::Confirm)
    }

    /// Returns how many evaluations or labels say again what another one said. What a lost device
    /// left unsaid may be tried again; conversions, which have no content, may be several in one
    /// artifact.
    pub(super) fn n_doubled(&self) -> usize {
        let spent = self.spent().filter(|e| e.outcome != Outcome::DeviceLost);
        let labels = self.labels.iter();
        let labels = labels.filter(|label| {
            let failed_to_build = label.provenance.artifact.is_none();
            (label.content.is_some() || failed_to_build) && label.outcome != Outcome::DeviceLost
        });
        n_repeated(spent.map(|evaluation| evaluation.artifact))
            + n_repeated(labels.map(|label| {
                let Label {
                    task,
                    candidate,
                    content,
                    provenance,
                    ..
                } = label;
                (task.structure, candidate, content, provenance.artifact)
            }))
    }

    /// Returns the names of all records.
    pub(super) fn ids(&self) -> Ids {
        Ids {
            evaluations: self.evaluations.iter().map(Evaluation::id).collect(),
            labels: self.labels.iter().map(Label::id).collect(),
        }
    }
}

impl Ids {
    /// Returns how many of these are not among later ones.
    pub(super) fn n_missing_in(&self, later: &Self) -> usize {
        let evaluations = self.evaluations.difference(&later.evaluations).count();
        evaluations + self.labels.difference(&later.labels).count()
    }
}

/// Returns how many of some things were there before.
fn n_repeated<T: Ord>(things: impl Iterator<Item = T>) -> usize {
    let mut seen = BTreeSet::new();
    let are_new = things.map(|thing| seen.insert(thing));
    are_new.filter(|is_new| !is_new).count()
}
