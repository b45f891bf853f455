//! The list of commands.

use clap::Subcommand;

use super::{adapt, check, deploy, diff, graph, init, jobs, targets};
use crate::cli::Error;
use crate::cli::exit_code::Outcome;
use crate::cli::run::Ctx;

/// What to do; the documentation of each `Args` is the help.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(init::Args),
    Graph(graph::Args),
    Adapt(adapt::Args),
    Check(check::Args),
    Deploy(deploy::Args),
    Diff(diff::Args),
    Targets(targets::Args),
    Jobs(jobs::Args),
}

impl Command {
    /// Returns the word on the command line.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Init(_) => "init",
            Self::Graph(_) => "graph",
            Self::Adapt(_) => "adapt",
            Self::Check(_) => "check",
            Self::Deploy(_) => "deploy",
            Self::Diff(_) => "diff",
            Self::Targets(_) => "targets",
            Self::Jobs(_) => "jobs",
        }
    }

    /// Runs the command.
    pub(crate) fn run(&self, ctx: &Ctx) -> Result<Outcome, Error> {
        match self {
            Self::Init(args) => init::run(args, ctx),
            Self::Graph(args) => graph::run(args, ctx),
            Self::Adapt(args) => adapt::run(args, ctx),
            Self::Check(args) => check::run(args, ctx),
            Self::Deploy(args) => deploy::run(args, ctx),
            Self::Diff(args) => diff::run(args, ctx),
            Self::Targets(args) => targets::run(args, ctx),
            Self::Jobs(args) => jobs::run(args, ctx),
        }
    }
}
