//! `diff`: two revisions of the lockfile, side by side.

use std::path::Path;
use std::process::Command;

use crate::cli::Error;
use crate::cli::exit_code::Outcome;
use crate::cli::files::{read_text, shown};
use crate::cli::run::Ctx;
use crate::cli::workspace::Workspace;
use crate::lock::{self, Diff, Lockfile};
use crate::report::DiffAnswer;

/// Show what differs between two revisions of metainfer.lock
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Git revision of the old side
    #[arg(value_name = "REV", default_value = "HEAD")]
    old: String,
    /// Git revision of the new side; the working tree if not given
    #[arg(value_name = "REV")]
    new: Option<String>,
}

/// Compares two lockfiles; what differs is an answer, not a failure.
pub(crate) fn run(args: &Args, ctx: &Ctx) -> Result<Outcome, Error> {
    let Args { old, new } = args;
    let workspace = Workspace::read(&ctx.global, &ctx.environment)?;
    let old_lockfile = at_revision(&workspace, old)?;
    let new_lockfile = match new {
        Some(revision) => at_revision(&workspace, revision)?,
        None => in_working_tree(&workspace)?,
    };
    ctx.console.answer(&DiffAnswer {
        diff: Diff::new(&old_lockfile, &new_lockfile),
        old: old.clone(),
        new: new.clone().unwrap_or_else(|| "the working tree".to_owned()),
    });
    Ok(Outcome::Done)
}

/// Reads the lockfile as it is on disk; none is an empty one.
pub(crate) fn in_working_tree(workspace: &Workspace) -> Result<Lockfile, Error> {
    let path = workspace.lockfile();
    match read_text(&path)? {
        Some(text) => lock::decode(&text).map_err(|error| {
            Error::from(error).context(format!("cannot read lockfile `{}`", shown(&path).display()))
        }),
        None => Ok(Lockfile::default()),
    }
}

/// Reads the lockfile as it was in a revision; none is an empty one.
fn at_revision(workspace: &Workspace, revision: &str) -> Result<Lockfile, Error> {
    let root = &workspace.root;
    let commit = format!("{revision}^{{commit}}");
    let arguments = [
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        &commit,
    ];
    let Some(commit) = git(root, &arguments)? else {
        return Err(Error::failed(format!(
            "`{revision}` is not a revision of the git repository at `{}`",
            shown(root).display()
        ))
        .help("cargo metainfer diff REV compares REV with the working tree"));
    };
    let commit = commit.trim();
    let listed = git(
        root,
        &["ls-tree", "--name-only", commit, "--", "metainfer.lock"],
    )?;
    if listed.is_none_or(|listed| listed.trim().is_empty()) {
        return Ok(Lockfile::default());
    }
    let object = format!("{commit}:./metainfer.lock");
    let text = git(root, &["show", &object])?.unwrap_or_default();
    lock::decode(&text).map_err(|error| {
        Error::from(error).context(format!("cannot read `metainfer.lock` of `{revision}`"))
    })
}

/// Runs git and returns what it prints; `None` if it fails.
fn git(dir: &Path, arguments: &[&str]) -> Result<Option<String>, Error> {
    let output = Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(arguments)
        .output()
        .map_err(|error| {
            Error::failed(error)
                .context("cannot run `git`")
                .help("install git: revisions of the lockfile are read through it")
        })?;
    let text = output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned());
    Ok(text)
}
