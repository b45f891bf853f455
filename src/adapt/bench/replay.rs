//! A journal in the place of a device.

use std::collections::{BTreeMap, VecDeque};

use crate::adapt::Error;
use crate::adapt::job::Choices;
use crate::adapt::journal::{Entry, Stop};

/// The rest of a journal.
#[derive(Debug)]
pub(super) struct Replay {
    entries: VecDeque<Entry>,
    /// Entries that were gone through.
    n_gone: usize,
    /// What is being built, by number.
    building: BTreeMap<u64, Choices>,
}

impl Replay {
    pub(super) fn new(entries: Vec<Entry>) -> Self {
        Self {
            entries: entries.into(),
            n_gone: 0,
            building: BTreeMap::new(),
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
        get(&entry).ok_or_else(|| self.diverged(wanted, &entry))
    }

    /// Returns the next entry, which stays.
    pub(super) fn next(&self) -> Option<&Entry> {
        self.entries.front()
    }

    /// Goes along with a build that the search begins.
    ///
    /// # Errors
    /// [`Error::Diverged`] if the run began another one.
    pub(super) fn launch(&mut self, build: u64, choices: &Choices) -> Result<(), Error> {
        self.take("a build of other candidates", |entry| match entry {
            Entry::Launched {
                build: number,
                choices: known,
            } => (*number == build && known == choices).then_some(()),
            _ => None,
        })?;
        self.building.insert(build, choices.clone());
        Ok(())
    }

    /// Returns whether something is being built.
    pub(super) fn is_building(&self) -> bool {
        !self.building.is_empty()
    }

    /// Takes note that no build is waited for any more.
    pub(super) fn abandon_builds(&mut self) {
        self.building.clear();
    }

    /// Takes note that a build has ended.
    pub(super) fn end_build(&mut self, build: u64) {
        self.building.remove(&build);
    }

    /// Returns why the run was told to end when it had asked so often since the entry before.
    pub(super) fn stop(&mut self, n_asked: u64) -> Option<Stop> {
        let Some(Entry::Stopped { stop, n_asked: n }) = self.next() else {
            return None;
        };
        let stop = (*n == n_asked).then_some(*stop)?;
        self.entries.pop_front();
        self.n_gone += 1;
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
