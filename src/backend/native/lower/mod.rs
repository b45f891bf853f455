//! From a partitioned graph to operations that kernels exist for.
//!
//! What is not covered is named with its node and operator; nothing is approximated.

mod elementwise;
mod epilogue;
mod layers;
mod subgraph;

pub use subgraph::{NotCovered, lower, lower_subgraph};
