//! What the label store of a workspace holds.

use std::collections::BTreeMap;
use std::path::Path;

use metainfer::digest::Digest;
use metainfer::label::{Evaluation, Label, Purpose};
use rusqlite::{Connection, OpenFlags};

use super::Sandbox;

/// All records, in the order in which they were written.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Records {
    pub(crate) evaluations: Vec<Evaluation>,
    pub(crate) labels: Vec<Label>,
}

impl Sandbox {
    /// Reads the label store; one that does not exist is empty.
    pub(crate) fn records(&self) -> Records {
        Records::read(&self.home().join("labels.sqlite"))
    }
}

impl Records {
    fn read(path: &Path) -> Self {
        if !path.exists() {
            return Self::default();
        }
        // Writable, so that what is only in the log is read too.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let connection = Connection::open_with_flags(path, flags).unwrap();
        let read = |table: &str| -> Vec<Vec<u8>> {
            let Ok(mut select) =
                connection.prepare(&format!("SELECT record FROM {table} ORDER BY rowid"))
            else {
                return Vec::new();
            };
            let rows = select.query_map([], |row| row.get(0)).unwrap();
            rows.map(Result::unwrap).collect()
        };
        let evaluations = read("evaluation");
        let labels = read("label");
        Self {
            evaluations: evaluations
                .iter()
                .map(|bytes| Evaluation::decode(bytes).unwrap())
                .collect(),
            labels: labels
                .iter()
                .map(|bytes| Label::decode(bytes).unwrap())
                .collect(),
        }
    }

    /// Returns the evaluations that count: a confirmation only says that a decision was made.
    pub(crate) fn spent(&self) -> impl Iterator<Item = &Evaluation> {
        let spent = self.evaluations.iter();
        spent.filter(|evaluation| evaluation.purpose != Purpose::Confirm)
    }

    /// Returns how many different candidates each task has a label for, by structure.
    pub(crate) fn n_candidates(&self) -> BTreeMap<Digest, usize> {
        let mut seen: BTreeMap<Digest, Vec<_>> = BTreeMap::new();
        for label in &self.labels {
            let seen = seen.entry(label.task.structure).or_default();
            if !seen.contains(&&label.candidate) {
                seen.push(&label.candidate);
            }
        }
        seen.into_iter()
            .map(|(structure, seen)| (structure, seen.len()))
            .collect()
    }
}
