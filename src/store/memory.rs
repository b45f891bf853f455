//! A store that ends with the process.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Batch, LabelStore, Pending, Recorded, Stats, StoreError, TaskLabels};
use crate::digest::Digest;
use crate::label::{Evaluation, EvaluationId, Label, LabelId};

/// Keeps records in memory.
#[derive(Debug, Default)]
pub struct Memory {
    records: Mutex<Records>,
}

#[derive(Debug, Default)]
struct Records {
    /// By task, then by time and id.
    labels: BTreeMap<Digest, BTreeMap<(u64, LabelId), Label>>,
    /// By adaptation, then by time and id.
    evaluations: BTreeMap<Digest, BTreeMap<(u64, EvaluationId), Evaluation>>,
}

impl Memory {
    /// Returns an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        // Nothing in here panics between two changes, so a poisoned set is a whole one.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, batch: Batch) -> Result<Recorded, StoreError> {
        batch.check()?;
        let mut recorded = Recorded::default();
        let mut records = self.lock();
        for label in batch.labels {
            let of_task = records.labels.entry(label.task.digest()).or_default();
            let key = (label.provenance.time_ms, label.id());
            recorded.n_labels += usize::from(of_task.insert(key, label).is_none());
        }
        for evaluation in batch.evaluations {
            let spent = records
                .evaluations
                .entry(evaluation.adaptation)
                .or_default();
            let key = (evaluation.time_ms, evaluation.id());
            recorded.n_evaluations += usize::from(spent.insert(key, evaluation).is_none());
        }
        Ok(recorded)
    }
}

impl LabelStore for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn record(&self, batch: Batch) -> Pending<'_, Recorded> {
        Box::pin(ready(self.add(batch)))
    }

    fn labels(&self, tasks: Vec<Digest>) -> Pending<'_, TaskLabels> {
        let records = self.lock();
        let known = tasks
            .into_iter()
            .filter_map(|task| Some((task, records.labels.get(&task)?.values().cloned().collect())))
            .collect();
        Box::pin(ready(Ok(known)))
    }

    fn evaluations(&self, adaptation: Digest) -> Pending<'_, Vec<Evaluation>> {
        let records = self.lock();
        let spent = records.evaluations.get(&adaptation);
        let spent = spent.map_or_else(Vec::new, |spent| spent.values().cloned().collect());
        Box::pin(ready(Ok(spent)))
    }

    fn stats(&self) -> Pending<'_, Stats> {
        let records = self.lock();
        let n_labels = records.labels.values().map(|of_task| of_task.len() as u64);
        let n_evaluations = records.evaluations.values().map(|spent| spent.len() as u64);
        let stats = Stats {
            n_labels: n_labels.sum(),
            n_tasks: records.labels.len() as u64,
            n_evaluations: n_evaluations.sum(),
            ..Stats::default()
        };
        Box::pin(ready(Ok(stats)))
    }
}
