//! A store that counts what is asked of it.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Batch, LabelStore, Pending, Recorded, Stats, TaskLabels};
use crate::digest::Digest;
use crate::label::Evaluation;

/// Passes everything on to another store and counts it.
#[derive(Debug, Default)]
pub struct Counting<S> {
    store: S,
    n_reads: AtomicU64,
    n_writes: AtomicU64,
    n_labels_read: AtomicU64,
    n_labels_new: AtomicU64,
}

/// What was asked of a store so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Calls that read.
    pub n_reads: u64,
    /// Calls that record.
    pub n_writes: u64,
    /// Labels handed out.
    pub n_labels_read: u64,
    /// Labels recorded that were not there before.
    pub n_labels_new: u64,
}

impl<S> Counting<S> {
    /// Starts counting at zero.
    pub fn new(store: S) -> Self {
        Self {
            store,
            n_reads: AtomicU64::new(0),
            n_writes: AtomicU64::new(0),
            n_labels_read: AtomicU64::new(0),
            n_labels_new: AtomicU64::new(0),
        }
    }

    /// Returns what was counted.
    pub fn counts(&self) -> Counts {
        Counts {
            n_reads: self.n_reads.load(Ordering::Relaxed),
            n_writes: self.n_writes.load(Ordering::Relaxed),
            n_labels_read: self.n_labels_read.load(Ordering::Relaxed),
            n_labels_new: self.n_labels_new.load(Ordering::Relaxed),
        }
    }
}

impl<S: LabelStore> LabelStore for Counting<S> {
    fn name(&self) -> &str {
        self.store.name()
    }

    fn record(&self, batch: Batch) -> Pending<'_, Recorded> {
        self.n_writes.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let recorded = self.store.record(batch).await?;
            let n_new = recorded.n_labels as u64;
            self.n_labels_new.fetch_add(n_new, Ordering::Relaxed);
            Ok(recorded)
        })
    }

    fn labels(&self, tasks: Vec<Digest>) -> Pending<'_, TaskLabels> {
        self.n_reads.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let labels = self.store.labels(tasks).await?;
            let n_labels: usize = labels.values().map(Vec::len).sum();
            self.n_labels_read
                .fetch_add(n_labels as u64, Ordering::Relaxed);
            Ok(labels)
        })
    }

    fn evaluations(&self, adaptation: Digest) -> Pending<'_, Vec<Evaluation>> {
        self.n_reads.fetch_add(1, Ordering::Relaxed);
        self.store.evaluations(adaptation)
    }

    fn stats(&self) -> Pending<'_, Stats> {
        self.n_reads.fetch_add(1, Ordering::Relaxed);
        self.store.stats()
    }
}
