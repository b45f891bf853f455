//! The store trait.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use super::StoreError;
use crate::digest::Digest;
use crate::label::{Evaluation, Label};

/// A result that is on its way.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Labels by task ([`TaskKey::digest`](crate::label::TaskKey::digest)), those of one task ordered
/// by time and id.
pub type TaskLabels = BTreeMap<Digest, Vec<Label>>;

/// What is recorded together: all of it or nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Batch {
    /// Evaluations.
    pub evaluations: Vec<Evaluation>,
    /// Labels, of those evaluations and of candidates that never came to run.
    pub labels: Vec<Label>,
}

/// How much of a batch was new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recorded {
    /// Evaluations that were not there before.
    pub n_evaluations: usize,
    /// Labels that were not there before.
    pub n_labels: usize,
}

/// How full a store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Labels.
    pub n_labels: u64,
    /// Tasks with at least one label.
    pub n_tasks: u64,
    /// Evaluations.
    pub n_evaluations: u64,
    /// Records that reads of this process met and did not hand out, because they are damaged,
    /// implausible or of a newer release.
    pub n_rejected: u64,
    /// Size, bytes.
    pub bytes: u64,
}

/// A set of labels and evaluations.
pub trait LabelStore: Send + Sync {
    /// Returns what people call it, e.g. its path.
    fn name(&self) -> &str;

    /// Adds records, all of them or none. Once this returns they survive the end of the process,
    /// however it ends (for stores that survive it at all). What is there already is no error.
    fn record(&self, batch: Batch) -> Pending<'_, Recorded>;

    /// Returns the labels of tasks. Tasks without labels are left out.
    fn labels(&self, tasks: Vec<Digest>) -> Pending<'_, TaskLabels>;

    /// Returns the evaluations that an adaptation has spent, ordered by time and id.
    fn evaluations(&self, adaptation: Digest) -> Pending<'_, Vec<Evaluation>>;

    /// Returns how full it is.
    fn stats(&self) -> Pending<'_, Stats>;
}

impl Batch {
    /// One evaluation and its labels.
    pub fn of(evaluation: Evaluation, labels: Vec<Label>) -> Self {
        Self {
            evaluations: vec![evaluation],
            labels,
        }
    }

    /// Refuses records that no reader would believe.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let evaluations = self.evaluations.iter().map(Evaluation::check);
        let labels = self.labels.iter().map(Label::check);
        let checked: Result<(), _> = evaluations.chain(labels).collect();
        checked.map_err(StoreError::Implausible)
    }
}

impl<S: LabelStore + ?Sized> LabelStore for Arc<S> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn record(&self, batch: Batch) -> Pending<'_, Recorded> {
        (**self).record(batch)
    }

    fn labels(&self, tasks: Vec<Digest>) -> Pending<'_, TaskLabels> {
        (**self).labels(tasks)
    }

    fn evaluations(&self, adaptation: Digest) -> Pending<'_, Vec<Evaluation>> {
        (**self).evaluations(adaptation)
    }

    fn stats(&self) -> Pending<'_, Stats> {
        (**self).stats()
    }
}
