//! `check`: is the lockfile what an adaptation would rest on? Nothing is measured.

use crate::cli::args::Selection;
use crate::cli::commands::diff::in_working_tree;
use crate::cli::exit_code::Outcome;
use crate::cli::models;
use crate::cli::project::Project;
use crate::cli::run::Ctx;
use crate::cli::{Error, select};
use crate::config::Overrides;
use crate::lock::{DeploymentKey, Finding, Lockfile};
use crate::report::{CheckRow, Checks};

/// Say whether metainfer.lock is up to date, without measuring
///
/// A deployment is stale if the model's structure or weights, the backend or a setting that it
/// rests on has changed since it was locked. A lock of another machine is noted and not stale.
/// Exits with 100 if anything is stale or missing.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
}

/// Compares the lockfile with the project.
pub(crate) fn run(args: &Args, ctx: &Ctx) -> Result<Outcome, Error> {
    let Args { selection } = args;
    let project = Project::read(ctx, Overrides::default())?;
    let selected = select::models(&project, selection)?;
    let targets = select::targets(&project, selection)?;
    let lockfile = in_working_tree(&project.workspace)?;

    let mut checks = Checks::default();
    for model in &selected {
        let loaded = models::load(model)?;
        for target in &targets {
            let key = DeploymentKey {
                model: model.name.clone(),
                target: target.name.clone(),
            };
            let findings = match lockfile.deployments.get(&key) {
                Some(deployment) => deployment.compare(&models::current(model, target, &loaded)?),
                None => vec![Finding::Missing],
            };
            checks.rows.push(CheckRow { key, findings });
        }
    }
    let is_everything = *selection == Selection::default() && !ctx.global.selects_packages();
    if is_everything {
        checks.rows.extend(orphans(&project, &lockfile));
        checks.rows.sort_by(|lhs, rhs| lhs.key.cmp(&rhs.key));
    }
    ctx.console.answer(&checks);
    if checks.n_stale() == 0 {
        return Ok(Outcome::Done);
    }
    ctx.console.warning(
        "stale-lock",
        &format!(
            "{} of {} deployments are stale",
            checks.n_stale(),
            checks.rows.len()
        ),
        &["cargo metainfer adapt brings `metainfer.lock` up to date".to_owned()],
    );
    Ok(Outcome::No)
}

/// Returns what is locked and is no longer in the project.
fn orphans(project: &Project, lockfile: &Lockfile) -> Vec<CheckRow> {
    let settings = &project.settings;
    let is_known = |key: &DeploymentKey| {
        settings.models.iter().any(|model| model.name == key.model)
            && settings.targets.iter().any(|t| t.name == key.target)
    };
    lockfile
        .deployments
        .keys()
        .filter(|key| !is_known(key))
        .map(|key| CheckRow {
            key: key.clone(),
            findings: vec![Finding::Orphan],
        })
        .collect()
}
