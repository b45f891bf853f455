//! The store over the file.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::task::spawn_blocking;

use super::{database, open};
use crate::digest::Digest;
use crate::label::Evaluation;
use crate::store::{Batch, LabelStore, Pending, Recorded, Stats, StoreError, TaskLabels};

/// Keeps records in an SQLite file.
#[derive(Debug, Clone)]
pub struct Sqlite {
    name: Arc<str>,
    connection: Arc<Mutex<Connection>>,
    n_rejected: Arc<AtomicU64>,
    is_read_only: bool,
}

impl Sqlite {
    /// Opens a file, creating it and the directories above it if need be. One that exists and
    /// cannot be written is opened for reading, see [`Self::is_read_only`].
    ///
    /// # Errors
    /// [`StoreError`] if it can be neither written nor read, is damaged, or of a newer release.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let opened = open::open(path)?;
        Ok(Self {
            name: path.display().to_string().into(),
            connection: Arc::new(Mutex::new(opened.connection)),
            n_rejected: Arc::default(),
            is_read_only: opened.is_read_only,
        })
    }

    /// Returns where a user's data directory has its labels.
    pub fn path_in(home: &Path) -> PathBuf {
        home.join("labels.sqlite")
    }

    /// Returns whether recording is impossible.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Runs a query on a thread where it may block.
    pub(super) fn run<T: Send + 'static>(
        &self,
        action: &'static str,
        query: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Pending<'_, T> {
        let connection = Arc::clone(&self.connection);
        Box::pin(async move {
            let work = spawn_blocking(move || {
                // A panic rolls its transaction back, so the connection is still good.
                let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
                query(&mut connection)
            });
            match work.await {
                Ok(result) => {
                    result.map_err(|source| StoreError::of_sqlite(action, &self.name, source))
                }
                Err(error) => Err(StoreError::Panicked {
                    store: self.name.to_string(),
                    panic: error.to_string(),
                }),
            }
        })
    }

    /// Takes note of what was not handed out.
    fn hand_out<'a, T: Send + 'a>(
        &'a self,
        pending: Pending<'a, database::Read<T>>,
    ) -> Pending<'a, T> {
        Box::pin(async move {
            let read = pending.await?;
            self.n_rejected
                .fetch_add(read.n_rejected, Ordering::Relaxed);
            Ok(read.records)
        })
    }
}

impl LabelStore for Sqlite {
    fn name(&self) -> &str {
        &self.name
    }

    fn record(&self, batch: Batch) -> Pending<'_, Recorded> {
        if let Err(error) = batch.check() {
            return Box::pin(async { Err(error) });
        }
        self.run("write", move |connection| {
            database::record(connection, &batch)
        })
    }

    fn labels(&self, tasks: Vec<Digest>) -> Pending<'_, TaskLabels> {
        self.hand_out(self.run("read", move |connection| {
            database::labels(connection, &tasks)
        }))
    }

    fn evaluations(&self, adaptation: Digest) -> Pending<'_, Vec<Evaluation>> {
        self.hand_out(self.run("read", move |connection| {
            database::evaluations(connection, adaptation)
        }))
    }

    fn stats(&self) -> Pending<'_, Stats> {
        let pending = self.run("read", |connection| database::stats(connection));
        Box::pin(async move {
            let n_rejected = self.n_rejected.load(Ordering::Relaxed);
            Ok(Stats {
                n_rejected,
                ..pending.await?
            })
        })
    }
}

#[cfg(test)]
impl Sqlite {
    /// Makes the disk as good as full.
    pub(crate) fn limit_pages(&self, n_pages: u32) {
        let connection = self.connection.lock().unwrap();
        let limit = connection.pragma_update_and_check(None, "max_page_count", n_pages, |_| Ok(()));
        limit.unwrap();
    }

    /// Gives up on other processes at once.
    pub(crate) fn shorten_busy_timeout(&self) {
        let connection = self.connection.lock().unwrap();
        connection
            .busy_timeout(std::time::Duration::from_millis(20))
            .unwrap();
    }
}
