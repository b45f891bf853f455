//! The command line: the only user of clap and of environment variables, and the place where the
//! parts are wired.
//!
//! Each command is one file in [`commands`]: an `Args` struct whose doc comments are the help, and
//! a `run` that returns an [`Outcome`](exit_code::Outcome) or an [`Error`]. Files are read here
//! for the pure modules, and written through `fsx`.

mod args;
mod commands;
pub mod env;
mod error;
mod exit_code;
mod files;
mod interrupt;
mod log;
mod models;
mod project;
mod run;
mod select;
mod workspace;

pub use env::Environment;
pub use error::{Error, Kind};
pub use exit_code::{ExitCode, Outcome};
pub use run::run;
