//! `cargo xtask ci`: what `.ci/run` checks, once the machine has what it needs.

use std::process::Command;

use anyhow::{Context, Result};

use crate::{models, shell, tidy};

/// Model of the main job: small, so that the job fits in CI.
const MODEL: &str = "ocr-cls";
/// Evaluations that the main job may spend.
const MAX_EVALUATIONS: &str = "24";

/// What to run.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Leave out the main job: adapting and deploying a real model
    #[arg(long)]
    no_main_job: bool,
}

/// Runs all steps; stops at the first that fails.
pub(crate) fn run(args: &Args) -> Result<()> {
    shell::run(cargo().args(["fmt", "--all", "--check"]))?;
    shell::run(
        cargo()
            .args(["clippy", "--workspace", "--all-targets"])
            .args(["--", "-D", "warnings"]),
    )?;
    eprintln!("$ cargo xtask tidy");
    tidy::run(&tidy::Args::default())?;
    shell::run(cargo().args(["test", "--workspace"]))?;
    if args.no_main_job {
        return Ok(());
    }
    main_job()
}

/// Adapts a real model, checks the lock, deploys it, and builds what was deployed.
fn main_job() -> Result<()> {
    let model = models::select(&[MODEL.to_owned()])?[0];
    let manifest = models::prepare(model)?;
    let out = shell::target("ci").join(MODEL);
    let metainfer = |verb: &str| {
        let mut command = cargo();
        command
            .args(["run", "--release", "--quiet", "--", "metainfer", verb])
            .arg("--manifest-path")
            .arg(&manifest);
        command
    };
    shell::run(metainfer("adapt").args(["--max-evaluations", MAX_EVALUATIONS]))?;
    shell::run(&mut metainfer("check")).context("the lock is stale right after `adapt`")?;
    shell::run(
        metainfer("deploy")
            .args(["--model", MODEL, "--target", "cpu", "--out"])
            .arg(&out),
    )?;
    shell::run(
        cargo()
            .args(["build", "--release", "--manifest-path"])
            .arg(out.join("Cargo.toml")),
    )
}

fn cargo() -> Command {
    shell::command("cargo")
}
