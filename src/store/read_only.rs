//! A store that is only read.

use std::future::ready;

use super::{Batch, LabelStore, Pending, Recorded, Stats, StoreError, TaskLabels};
use crate::digest::Digest;
use crate::label::Evaluation;

/// Reads through to another store and refuses to record.
#[derive(Debug, Clone)]
pub struct ReadOnly<S>(pub S);

impl<S: LabelStore> LabelStore for ReadOnly<S> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn record(&self, _: Batch) -> Pending<'_, Recorded> {
        let store = self.name().to_owned();
        Box::pin(ready(Err(StoreError::ReadOnly { store })))
    }

    fn labels(&self, tasks: Vec<Digest>) -> Pending<'_, TaskLabels> {
        self.0.labels(tasks)
    }

    fn evaluations(&self, adaptation: Digest) -> Pending<'_, Vec<Evaluation>> {
        self.0.evaluations(adaptation)
    }

    fn stats(&self) -> Pending<'_, Stats> {
        self.0.stats()
    }
}
