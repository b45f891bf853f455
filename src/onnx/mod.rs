//! The only user of `rten-onnx` and `rten`: decodes ONNX files, infers shapes, folds constants,
//! runs the reference executor, and writes graphs back.
//!
//! A file is read in four steps: `proto` decodes bytes into messages that borrow from them, `build`
//! turns messages into a graph at static shapes, `check` looks at the whole, and
//! [`crate::graph::canonicalize`] rewrites it. Hostile files cost an error, never a panic, and no
//! more memory than a small multiple of their size.

mod attribute;
mod branch;
mod build;
mod check;
mod draft;
mod encode;
mod error;
mod evaluate;
mod exact;
mod examine;
mod executor;
mod fold;
mod halves;
mod inputs;
mod load;
mod proto;
mod reference;
mod runner;
mod sample;
mod simplify;
mod sort;
mod stored;
mod tensor;
mod wire;

pub use encode::encode;
pub use error::{Error, Problem};
pub use examine::survives;
pub use load::{LoadOptions, LoadedModel, OPSETS, load};
pub use reference::Reference;
pub use runner::Runner;
pub use sample::{random_inputs, read_tensors, write_tensors};
pub use stored::{element_type, stored_type};

#[cfg(test)]
mod tests;
