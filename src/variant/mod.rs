//! Other structures of a model that compute nearly the same, as rewrites of its graph.
//!
//! A variant of a model is a [`Graph`](crate::graph::Graph) again: it is written as ONNX, cut into
//! subgraphs and compiled like any other, and each of its subgraphs has a digest of its own. What
//! may be varied is a [`Site`]: one subgraph of the canonical graph.
//!
//! Reading order: [`site`] says what may become what, [`affine`] how numbers are rounded to
//! integers, [`quantize`] writes integer layers.

mod affine;
mod part;
mod quantize;
mod site;
mod untouched;

pub use affine::{Affine, Equal, Range, Roundings, SHARES, Spread};
pub use part::{Part, part};
pub use quantize::{QuantizeError, quantize};
pub use site::{Layer, Site, read_values, sites, ties};
pub use untouched::untouched;

#[cfg(test)]
mod tests;
