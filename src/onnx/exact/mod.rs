//! Exact evaluation of operators on constants: what shape arithmetic is made of.
//!
//! The reference executor computes in i32 and f32 alone. Here integers of all types are computed in
//! i128 and wrapped, floats in f64 and rounded once, and elements that only move keep their bits.
//! An operator that is not here, or an element that does not exist (a division by zero, an index
//! out of range), gives `None`, and the node stays in the graph.

mod elementwise;
mod evaluate;
mod generate;
mod moves;
mod number;
mod pick;
mod quantize;
mod reduce;

pub(super) use evaluate::{evaluate, filled};

#[cfg(test)]
mod tests;
