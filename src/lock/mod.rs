//! `metainfer.lock`: what was chosen, for every model and target, as text that people review.
//!
//! Pure text ↔ value: `cli` reads the file and writes it through `fsx`. The format is made for
//! pull requests: deployments sorted by model and target, one field per line, figures rounded and
//! sticky within the noise ([`Figure::settle`]), nothing that differs between runs for no reason.
//! Two people who tune two models touch disjoint lines.

mod accuracy;
mod compare;
mod decode;
mod diff;
mod encode;
mod figure;
mod lockfile;

pub use accuracy::{Accuracy, Basis, GateFigures};
pub use compare::{Current, Finding};
pub use decode::{LockError, decode};
pub use diff::{Change, DeploymentDiff, Diff, FieldDiff, SubgraphDiff};
pub use encode::encode;
pub use figure::Figure;
pub use lockfile::{
    Deployment, DeploymentKey, Field, FieldValue, Footprint, LockedSubgraph, Lockfile, REVISION,
    VERSION,
};

#[cfg(test)]
mod tests;
