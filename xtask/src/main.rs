//! Maintenance commands of the project, one file each; run as `cargo xtask <command>`.
//!
//! These talk to developers and to CI, so they print freely and report errors through `anyhow`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "developers' commands write to the terminal and below target/ only"
)]

mod ci;
mod conformance;
mod models;
mod peers;
mod samples;
mod seeds;
mod shell;
mod soak;
mod tidy;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use metainfer::measure::worker;

/// Maintenance commands of cargo-metainfer.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Command {
    /// Check the rules of the source tree that neither rustc nor clippy knows
    Tidy(tidy::Args),
    /// Download the models that are developed against
    Models(models::Args),
    /// Make calibration and validation samples for them
    Samples(samples::Args),
    /// Measure deployed models against other engines
    Peers(peers::Args),
    /// Serve the engine rten to `peers`
    #[command(hide = true)]
    Rten(peers::rten::Args),
    /// Write models for the fuzz targets to start from
    Seeds,
    /// Run the ONNX project's own test cases on the native backend
    Conformance(conformance::Args),
    /// Adapt models under faults and see whether every promise is kept
    Soak(soak::Args),
    /// Compile with faults for `soak`
    #[command(hide = true)]
    SoakRustc(soak::compiler::Args),
    /// Run everything that CI runs
    Ci(ci::Args),
}

fn main() -> Result<ExitCode> {
    // This program starts itself anew to run what is compiled, as `cargo metainfer` does.
    if let Some(args) = worker::requested(std::env::args()) {
        return Ok(worker::main(args));
    }
    match Command::parse() {
        Command::Tidy(args) => tidy::run(&args),
        Command::Models(args) => models::run(&args),
        Command::Samples(args) => samples::run(&args),
        Command::Peers(args) => peers::run(&args),
        Command::Seeds => seeds::run(),
        Command::Rten(args) => peers::rten::run(&args),
        Command::Conformance(args) => conformance::run(&args),
        Command::Soak(args) => soak::run(&args),
        Command::SoakRustc(args) => soak::compiler::run(&args),
        Command::Ci(args) => ci::run(&args),
    }
    .map(|()| ExitCode::SUCCESS)
}
