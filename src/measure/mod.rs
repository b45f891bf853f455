//! Running artifacts: the worker process, what is said to it, and statistics over what it says.
//!
//! Compiled candidates run in a process of their own ([`worker`]), never in the tool: a crash, a
//! hang or a wrong library is one failed trial with a typed outcome ([`WorkerError::outcome`]).
//! Nothing here knows why something is measured; [`stats`] is pure.

mod calls;
mod client;
mod device;
mod error;
mod memory;
pub mod protocol;
pub mod stats;
pub mod worker;

pub use client::{Worker, WorkerSpec};
pub use device::Device;
pub use error::WorkerError;
pub use memory::share_of_memory;
