//! What can be chosen: parameters, constraints and the candidates made of them.
//!
//! A [`SearchSpace`] is finite. It comes from `templates/spaces/*.toml`, which people may read and
//! override (see [`SpaceTemplate`]); it knows nothing of how a choice is compiled or measured.
//!
//! A template's expressions are minijinja's: 0.5 µs each, and those over few parameters are
//! tabulated, after which a check costs a few nanoseconds.

mod bound;
mod candidate;
mod decode;
mod error;
mod expr;
mod features;
mod function;
mod search_space;
mod template;
#[cfg(test)]
mod tests;
mod variant;
mod walk;

pub use candidate::{Candidate, Facts, Mapping, ParamValue};
pub use error::{SpaceError, Violation};
pub use search_space::{Param, SearchSpace};
pub use template::SpaceTemplate;
pub use variant::{ParseVariantError, Precision, Structure, Variant};
