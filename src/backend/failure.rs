//! How compiling fails: a value, never a panic.

use serde::{Deserialize, Serialize};

use crate::label::Outcome;

/// A candidate that could not be turned into an artifact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Which subgraph's candidate is to blame (index into the partition); `None` if not known.
    pub subgraph: Option<usize>,
    /// How it failed.
    pub outcome: Outcome,
    /// The compiler's message, shortened.
    pub message: String,
}
