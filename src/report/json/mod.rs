//! Messages for machines: one object per line, first key `reason`.
//!
//! The first line is `started` with the version of this format, the last one `finished`. Fields
//! are added, never repurposed; units are part of the name. Where a field is a figure that is not
//! a number, it is `null`.

mod message;
mod search;

pub(super) use message::line;
pub use message::{
    Check, Created, Deployed, DeploymentDiff, Diagnostic, FORMAT_VERSION, FieldDiff, Finding,
    Finished, Message, Model, Place, Started, Subgraph, SubgraphDiff, Target,
};
pub use search::{
    AccuracyChecked, AdaptFinished, AdaptStarted, DeploymentCompared, DeploymentRemoved,
    EvaluationFinished, Job, LockAwaited, Replayed, Spent, Surprise, TrialMoved, VariantMeasured,
    VariantsPlanned, VariantsStudied,
};
