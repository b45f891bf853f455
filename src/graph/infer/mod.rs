//! Shapes and element types of node outputs, from those of the inputs, by the ONNX specification.
//!
//! Pure functions, one file per operator family, for operator sets 7 and later. An operator without
//! a rule is not an error here: the caller says what to do about it.

mod attention;
mod convolution;
mod einsum;
mod elementwise;
mod fact;
mod generate;
mod indexing;
mod layout;
mod linear;
mod loss;
mod normalization;
mod quantization;
mod reduction;
mod region;
mod resizing;
mod rule;
mod scatter;
mod signal;
mod types;
mod window;

pub use fact::{Fact, InferError, Operand};
pub use rule::infer;
pub(super) use window::Window;

#[cfg(test)]
mod tests;
