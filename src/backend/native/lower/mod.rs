//! From a partitioned graph to operations that kernels exist for.
//!
//! Operators with tuned kernels get one with what is fused around it; all others, and what does not
//! fit those kernels, become plain loops ([`loops`]), node by node. What is not covered is named with its node and operator; nothing is approximated.

mod deconv;
mod elementwise;
mod epilogue;
mod join;
mod layers;
mod loops;
mod quantized;
mod resample;
mod subgraph;

pub use subgraph::{NotCovered, lower, lower_plain};
