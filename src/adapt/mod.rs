//! The loop: the only place where the parts meet.

mod adaptation;
mod bench;
mod cancel;
mod composer;
mod disk;
mod error;
mod evaluate;
mod finals;
mod job;
mod joint;
mod journal;
mod ledger;
mod locked;
mod pipeline;
mod propose;
mod reference;
mod replay;
mod request;
mod run;
mod search;
mod session;
mod trials;
mod turns;
mod vote;

pub use bench::TrialError;
pub use cancel::{Cancellation, Canceller};
pub use error::Error;
pub use job::open_native;
pub use replay::replay;
pub use request::Request;
pub use run::{OpenBackend, Summary, run, run_with};

#[cfg(test)]
mod tests;
