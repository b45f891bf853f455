//! The native backend: whole models as Rust kernels, compiled by `rustc`.
//!
//! Reading order: [`spec`] says what a kernel computes, [`lower`] gets there from a partitioned
//! graph, [`layout`] says how values lie in memory, [`kernels`] renders and packs one kernel,
//! [`program`] strings them together over one arena ([`plan`]), [`build`] compiles and links.
//! The measured facts behind the kernels: vectors through `core::arch`, accumulators as named
//! variables in unrolled text (arrays of vectors lose up to 2.7× to the optimiser's mood).

mod backend;
pub mod build;
mod dspace;
pub mod isa;
pub mod kernels;
pub mod layout;
pub mod lower;
mod model;
pub mod plan;
pub mod program;
mod qspace;
mod qspec;
pub mod render;
pub mod space;
pub mod spec;
pub mod templates;
mod wspace;

pub use backend::{Native, NativeOptions};

#[cfg(test)]
mod tests;
