//! Labels: what was measured, where and how, one immutable record for each evaluated candidate.

mod key;
mod record;

pub use key::TaskKey;
pub use record::{
    Clock, Context, Cost, Label, LabelId, Latency, Measurement, Outcome, Provenance, Stage,
};
