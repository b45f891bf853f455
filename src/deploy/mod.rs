//! Deployment: a program becomes a crate without dependencies, with a Rust and a C interface.
//!
//! [`render`] is pure: it turns a [`Program`] into files from `templates/deploy/`. [`export`]
//! writes them. Nothing here knows how the program was found or how kernels are made; it knows
//! names, element types, alignment and error messages.

mod error;
mod export;
mod names;
mod native;
mod program;
mod render;
mod tensor;
#[cfg(test)]
mod tests;

pub use error::DeployError;
pub use export::{Exported, export};
pub use program::Program;
pub use render::{File, Placement, render};
