//! What can be chosen: parameters, constraints and the candidates made of them.
//!
//! A `SearchSpace` is finite. It comes from `templates/spaces/*.toml`, which people may read and
//! override; it knows nothing of how a choice is compiled or measured.

mod candidate;

pub use candidate::{Candidate, Mapping, ParamValue, Precision, Variant};
