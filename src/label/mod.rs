//! Labels: what was measured, where and how, one immutable record for each evaluated candidate.
//!
//! A label has canonical bytes, whose digest is its id, so label sets merge as unions. What comes
//! back from a store or a peer is [decoded](Label::decode) strictly: a known version, canonical
//! bytes, figures that can be true. An [`Evaluation`] is the unit that budgets count.

#[cfg(test)]
pub(crate) mod arbitrary;
mod canonical;
mod evaluation;
mod key;
mod latency;
mod plausible;
mod record;
#[cfg(test)]
mod tests;

pub use canonical::DecodeError;
pub use evaluation::{Evaluation, EvaluationId, Purpose};
pub use key::TaskKey;
pub use latency::{Latency, quantile};
pub use plausible::{Implausible, MAX_MESSAGE_BYTES, shorten};
pub use record::{Clock, Context, Cost, Label, LabelId, Measurement, Outcome, Provenance, Stage};
