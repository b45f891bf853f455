//! A journal in the place of a device.

use std::collections::VecDeque;

use crate::adapt::Error;
use crate::adapt::journal::{Entry, Stop};

/// The rest of a journal.
#[derive(Debug)]
pub(super) struct Replay {
    entries: VecDeque<Entry>,
    /// Entries that were gone through.
    n_gone: usize,
    /// How often the search asked whether to end, since the last of them.
    n_asked: u64,
    /// Builds that were begun and have not ended.
    pub(super) n_building: usize,
}

impl Replay {
    pub(super) fn new(entries: Vec<Entry>) -> Self {
        Self {
            entries: entries.into(),
            n_gone: 0,
            n_asked: 0,
            n_building: 0,
        }
    }

    /// Takes the next entry if it is what the search is at now.
    ///
    /// # Errors
    /// [`Error::JournalEnds`] if there is none, and [`Error::Diverged`] if it is another one.
    pub(super) fn take<T>(
        &mut self,
        wanted: &str,
        get: impl FnOnce(&Entry) -> Option<T>,
    ) -> Result<T, Error> {
        let n_entries = self.n_gone;
        let entry = self.entries.pop_front();
        let entry = entry.ok_or(Error::JournalEnds { n_entries })?;
        self.n_gone += 1;
        self.n_asked = 0;
        get(&entry).ok_or_else(|| self.diverged(wanted, &entry))
    }

    /// Returns the next entry, which stays.
    pub(super) fn next(&self) -> Option<&Entry> {
        self.entries.front()
    }

    /// Returns whether the search is to end where it asks so now, and why: as the run, which had
    /// asked as often since the entry before.
    pub(super) fn ask(&mut self) -> Option<Stop> {
        self.n_asked += 1;
        let Some(&Entry::Stopped { stop, n_asked }) = self.next() else {
            return None;
        };
        if n_asked != self.n_asked {
            return None;
        }
        self.entries.pop_front();
        self.n_gone += 1;
        self.n_asked = 0;
        Some(stop)
    }

    fn diverged(&self, wanted: &str, found: &Entry) -> Error {
        let mut found = serde_json::to_string(found).unwrap_or_default();
        found.truncate(found.floor_char_boundary(160));
        Error::Diverged {
            n_entries: self.n_gone,
            wanted: wanted.to_owned(),
            found,
        }
    }
}
