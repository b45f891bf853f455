//! What a run was told by the world, in order: enough to decide the same again without a device.
//!
//! A search is a function of its settings, of what it is told, and of the order in which it is told
//! it. So the journal of a run has what the store knew at its start, every deployment that was built,
//! everything that the device said, and where the run was stopped from outside. The replay of a
//! journal goes through the same search and answers it from the journal; where the search asks for
//! something else than it did, the two have parted.

mod entry;
mod file;

pub(in crate::adapt) use entry::{Entry, Header, Stop};
pub(in crate::adapt) use file::{Journal, journal_path, read};
