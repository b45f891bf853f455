//! Shapes and element types of node outputs, from those of the inputs, by the ONNX specification.
//!
//! Pure functions, one per operator family. An operator without a rule is not an error here: the
//! caller may run the operator to find out.

mod convolution;
mod einsum;
mod elementwise;
mod fact;
mod indexing;
mod layout;
mod linear;
mod resizing;
mod rule;
mod window;

pub use fact::{Fact, InferError, Operand};
pub use rule::infer;
pub(super) use window::Window;
