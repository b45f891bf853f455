//! Stores of labels: everything that was ever measured, under its task.
//!
//! A store is a set. A record's id is its digest, so recording twice is recording once, and two
//! stores merge as a union. Stores know nothing of searches; they take plain values, are combined
//! by decorators, and hand out only what they have verified.

mod api;
mod counting;
mod error;
mod memory;
mod read_only;
mod sqlite;
#[cfg(test)]
mod tests;

pub use api::{Batch, LabelStore, Pending, Recorded, Stats, TaskLabels};
pub use counting::{Counting, Counts};
pub use error::StoreError;
pub use memory::Memory;
pub use read_only::ReadOnly;
pub use sqlite::{Begun, Orders, Queue, Sqlite};
