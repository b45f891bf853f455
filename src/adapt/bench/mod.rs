//! Where deployments are built and measured: on the device, or by a journal of what was.

mod ask;
mod build;
mod facade;
mod live;
mod replay;
mod trial;
mod usage;

pub(super) use build::Need;
pub(super) use facade::{Bench, Built};
pub(super) use trial::Trial;
pub use trial::TrialError;
pub(super) use usage::Usage;
