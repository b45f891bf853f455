//! What is deployed.

use crate::backend::{Fill, IoSpec};
use crate::device::Isa;

/// A model as a program: source text, packed weights, and what both expect.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// Name of the model; the crate's name is derived from it.
    pub model: String,
    /// Name of the target, for people.
    pub target: String,
    /// Text of a Rust module without inner attributes that builds on stable, edition 2021. It has
    ///
    /// ```text
    /// pub(crate) unsafe fn run(inputs: *const *const c_void, outputs: *const *mut c_void,
    ///                          arena: *mut u8, weights: *const u8)
    /// ```
    ///
    /// which may use the CPU features in `features`. Buffers of inputs and outputs are dense,
    /// row-major and aligned to their elements; arena and weights are aligned to 64, and the arena
    /// is zeroed once before the first run, but for `fills`. If there are several threads, the function has two more
    /// parameters, `thread: usize, barrier: &crate::barrier::Barrier`: each thread calls it with a
    /// number of its own from 0. What it does must not unwind.
    pub source: String,
    /// Instruction set that the source was made for.
    pub isa: Isa,
    /// CPU features that the source uses, as `is_x86_feature_detected!` spells them.
    pub features: Vec<String>,
    /// Optimisation level of the locked mapping: `1`, `2`, `3` or `s`.
    pub opt_level: String,
    /// Threads that run it together; at least 1.
    pub threads: usize,
    /// Size of the arena, bytes.
    pub arena_bytes: usize,
    /// What the arena holds before the first run, where it is not zero.
    pub fills: Vec<Fill>,
    /// Packed weights, little-endian.
    pub weights: Vec<u8>,
    /// Inputs of the model, in order.
    pub inputs: Vec<IoSpec>,
    /// Outputs of the model, in order.
    pub outputs: Vec<IoSpec>,
}
