//! The list of commands.

use clap::Subcommand;

use super::{adapt, diff, init, targets};
use crate::cli::Error;
use crate::cli::exit_code::Outcome;
use crate::cli::run::Ctx;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a configuration for the ONNX files of the workspace
    Init(init::Args),
    /// Search, measure and lock the best deployment of each model on each target
    Adapt(adapt::Args),
    /// Show what differs between two revisions of metainfer.lock
    Diff(diff::Args),
    /// List targets and device profiles, and whether they can be used here
    Targets(targets::Args),
}

impl Command {
    /// Returns the word on the command line.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Init(_) => "init",
            Self::Adapt(_) => "adapt",
            Self::Diff(_) => "diff",
            Self::Targets(_) => "targets",
        }
    }

    /// Runs the command.
    pub(crate) fn run(&self, ctx: &Ctx) -> Result<Outcome, Error> {
        match self {
            Self::Init(args) => init::run(args, ctx),
            Self::Adapt(args) => adapt::run(args, ctx),
            Self::Diff(args) => diff::run(args, ctx),
            Self::Targets(args) => targets::run(args, ctx),
        }
    }
}
