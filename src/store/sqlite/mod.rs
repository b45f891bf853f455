//! The local store: one SQLite file, shared by all projects of a user.
//!
//! The journal is a write-ahead log with `synchronous = NORMAL`: what is recorded is with the
//! operating system when [`record`](super::LabelStore::record) returns, so it survives the end of
//! the process, `kill -9` included, and no `fsync` disturbs a measurement. A loss of power may
//! take the last few labels, never the file.

mod database;
mod jobs;
mod migrations;
mod open;
mod queue;
mod store;
#[cfg(test)]
mod tests;
mod trials;
mod uptime;

pub use queue::{Begun, Orders, Queue};
pub use store::Sqlite;
