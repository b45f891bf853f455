//! Compilers behind one trait: what they cover, the choices they offer, how they build.
//!
//! A backend turns a model and a [`Candidate`](crate::space::Candidate) for each of its subgraphs into an [`Artifact`] that
//! a worker process can run. Failures are values.

mod artifact;

pub use artifact::{Artifact, IoSpec, Place, StepSpec, TraceSpec, View};

use crate::label::Outcome;

/// A candidate that could not be turned into an artifact.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Which subgraph's candidate is to blame (index into the partition); `None` if not known.
    pub subgraph: Option<usize>,
    /// How it failed.
    pub outcome: Outcome,
    /// The compiler's message, shortened.
    pub message: String,
}
