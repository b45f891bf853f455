//! Compilers behind one trait: what they cover, the choices they offer, how they build.
//!
//! A backend turns a model and a [`Candidate`](crate::space::Candidate) for each of its subgraphs into an [`Artifact`] that
//! a worker process can run. Failures are values.

mod api;
mod artifact;
mod failure;
pub mod native;

pub use api::{Backend, BackendError, Prepared};
pub use artifact::{Artifact, Fill, HUGE_PAGES_FROM, IoSpec, Place, StepSpec, TraceSpec, View};
pub use failure::Failure;
