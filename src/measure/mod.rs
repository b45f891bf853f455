//! Running artifacts: the worker process, what is said to it, and statistics over what it says.

pub mod protocol;
