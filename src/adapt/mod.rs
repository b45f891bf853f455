//! The loop: the only place where the parts meet.

mod bench;
mod cancel;
mod composer;
mod error;
mod evaluate;
mod finals;
mod job;
mod ledger;
mod locked;
mod pipeline;
mod propose;
mod reference;
mod request;
mod run;
mod search;
mod session;
mod turns;

pub use cancel::{Cancellation, Canceller};
pub use error::Error;
pub use job::open_native;
pub use pipeline::builds_ahead;
pub use request::{Request, TRIAL_LIMIT};
pub use run::{OpenBackend, Summary, run, run_with};

#[cfg(test)]
mod tests;
