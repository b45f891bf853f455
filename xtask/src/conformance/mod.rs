//! `cargo xtask conformance`: the ONNX project's own test cases on the native backend.
//!
//! A case is a model with inputs and the outputs that they should give. Each one is loaded,
//! partitioned, built with the default mapping of every subgraph, and run in a worker process, so
//! that one that crashes or hangs fails alone. Cases come from a pinned release of the `onnx`
//! package (`cases.py`, run in a virtual environment); needs `python3` with `venv` and `pip`.
//!
//! Models run at static shapes, so an input whose *elements* decide a shape must be a constant
//! ([`trial`] makes it one, and no more of them than needed). What is expected to fail, or not run,
//! stands in `xtask/conformance.toml` with a reason.

mod bind;
mod cache;
mod compare;
mod expected;
mod report;
mod run;
mod runner;
mod subsets;
mod suite;
mod trial;
mod values;
mod verdict;

pub(crate) use run::{Args, run};
