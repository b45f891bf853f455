//! The local store: one SQLite file, shared by all projects of a user.
//!
//! The journal is a write-ahead log with `synchronous = NORMAL`: what is recorded is with the
//! operating system when [`record`](super::LabelStore::record) returns, so it survives the end of
//! the process, `kill -9` included, and no `fsync` disturbs a measurement. A loss of power may
//! take the last few labels, never the file.

mod database;
mod migrations;
mod open;
mod store;

pub use store::Sqlite;
