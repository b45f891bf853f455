//! From a program to a library that a worker loads: rustc, a cache of compiled kernels, a link.
//!
//! Kernels are compiled to objects, several in one rustc call, and kept by the digest of their
//! source, so that an evaluation costs the kernels that are new in it. No C compiler is needed:
//! rustc's own `rust-lld` links.

mod batch;
mod builder;
mod entry;
mod leftovers;
mod link;
mod objects;
mod process;
mod refused;
mod room;
mod toolchain;

pub use builder::{BuildError, Builder};
pub use link::Packed;
pub use toolchain::{Toolchain, ToolchainError};
