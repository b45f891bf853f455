//! What samples say of a model: how its values lie, and what a variant costs in accuracy.
//!
//! The unchanged model is the [`Teacher`]: what it computes on each sample is kept, and a variant is
//! run from the first value on that it changes. Everything here is independent of the device.

mod divergence;
mod fit;
mod ranges;
mod samples;
mod teacher;

pub use divergence::divergences;
pub use fit::{Fit, Recipe};
pub use ranges::ranges;
pub use samples::ModelSamples;
pub use teacher::{Sample, Teacher};
