//! `targets`: what is configured, what is available, what can be used here.

use crate::cli::exit_code::Outcome;
use crate::cli::project::Project;
use crate::cli::run::Ctx;
use crate::cli::{Error, select};
use crate::config::Overrides;
use crate::device;
use crate::report::{TargetRow, Targets};

/// List targets and device profiles, and whether they can be used here
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Lists the configured targets, then the profiles that none of them uses.
pub(crate) fn run(args: &Args, ctx: &Ctx) -> Result<Outcome, Error> {
    let Args {} = args;
    let project = Project::read(ctx, Overrides::default())?;
    let host = device::probe::host();
    let mut rows = Vec::new();
    for settings in &project.settings.targets {
        let target = select::resolve_target(settings, &host)?;
        rows.push(TargetRow {
            target: Some((target.name, target.backend)),
            profile_name: target.profile_name,
            profile: target.profile,
            threads: Some(target.threads),
            obstacle: target.obstacle,
        });
    }
    for profile in std::iter::once(host.clone()).chain(device::shipped()) {
        let profile_name = profile.name.clone();
        if rows.iter().any(|row| row.profile_name == profile_name) {
            continue;
        }
        let (profile, obstacle) = device::adopt(profile, &host);
        rows.push(TargetRow {
            target: None,
            profile_name,
            profile,
            threads: None,
            obstacle,
        });
    }
    ctx.console.answer(&Targets { rows });
    Ok(Outcome::Done)
}
