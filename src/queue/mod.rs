//! Jobs and trials on their way: what state they are in, whose turn it is, who may record.
//!
//! A *job* is one model that one run of the tool adapts to one target. A *trial* is one deployment
//! of it to be compiled, checked, measured and recorded. Jobs of several runs share a device, so
//! that trials wait for their turn; a run that is gone or out of date must not record over a later
//! one, so that trials are leased and leases numbered.
//!
//! Pure: it is told the time and keeps nothing. [`store::Queue`](crate::store::Queue) keeps it.

mod job;
mod lease;
mod priority;
mod retry;
mod trial;

pub use job::{Job, JobId, JobSpec, JobState, Used};
pub use lease::{LEASE, Lease, Uptime};
pub use priority::{Priority, Waiting, first};
pub use retry::{MOST_ATTEMPTS, Verdict, verdict};
pub use trial::{TrialId, TrialState};
