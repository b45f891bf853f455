//! `cargo xtask ci`: what `.ci/run` checks, once the machine has what it needs.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{models, shell, tidy};

/// Model of the main job: small, so that the job fits in CI.
const MODEL: &str = "ocr-cls";
/// Evaluations that the main job may spend.
const MAX_EVALUATIONS: &str = "24";

/// How long adaptations run under faults.
const SOAK_MINUTES: &str = "2";

/// Top-1 of the reference on the fixture's validation set.
const TOP_1: &str = "top-1 0.896 ";

/// What to run.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Leave out the main job, adapting and deploying a real model, and the soak
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
    shell::run(cargo().args(["xtask", "conformance", "--strict"]))?;
    if args.no_main_job {
        return Ok(());
    }
    fixture()?;
    main_job()?;
    shell::run(cargo().args(["xtask", "soak", "--minutes", SOAK_MINUTES, "--no-build"]))
}

/// Deploys the fixture and checks the top-1 that its application prints. Untuned, as a lock may be
/// for a processor that this one is not.
fn fixture() -> Result<()> {
    let directory = shell::root().join("fixtures/fashion");
    let manifest = directory.join("Cargo.toml");
    shell::run(
        metainfer("deploy", &manifest)
            .args(["--untuned", "--out"])
            .arg(directory.join("deployed")),
    )?;
    let output = shell::capture(
        cargo()
            .args(["run", "--release", "--quiet", "--manifest-path"])
            .arg(&manifest),
    )?;
    let output = String::from_utf8_lossy(&output);
    print!("{output}");
    ensure!(
        output.starts_with(TOP_1),
        "the fixture's top-1 is not that of the reference, {TOP_1}"
    );
    Ok(())
}

/// Adapts a real model, checks the lock, deploys it, and builds what was deployed.
fn main_job() -> Result<()> {
    let model = models::select(&[MODEL.to_owned()])?[0];
    let manifest = models::prepare(model)?;
    let out = shell::target("ci").join(MODEL);
    shell::run(metainfer("adapt", &manifest).args(["--max-evaluations", MAX_EVALUATIONS]))?;
    shell::run(&mut metainfer("check", &manifest))
        .context("the lock is stale right after `adapt`")?;
    shell::run(
        metainfer("deploy", &manifest)
            .args(["--model", MODEL, "--target", "cpu", "--out"])
            .arg(&out),
    )?;
    shell::run(
        cargo()
            .args(["build", "--release", "--manifest-path"])
            .arg(out.join("Cargo.toml")),
    )
}

/// Returns a command of the tool on the workspace of a manifest.
fn metainfer(verb: &str, manifest: &Path) -> Command {
    let mut command = cargo();
    command
        .args(["run", "--release", "--quiet", "--", "metainfer", verb])
        .arg("--manifest-path")
        .arg(manifest);
    command
}

fn cargo() -> Command {
    shell::command("cargo")
}
