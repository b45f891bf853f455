//! From names to what they name: `--model`, `--target`, profiles.

use std::path::Path;

use super::Error;
use super::args::Selection;
use super::files::{read_text, shown};
use super::project::Project;
use crate::config::{Model, TargetSettings};
use crate::device::{self, DeviceProfile, Obstacle, Target};

/// Returns the models that `--model` leaves; an error if there is none.
pub(crate) fn models<'a>(
    project: &'a Project,
    selection: &Selection,
) -> Result<Vec<&'a Model>, Error> {
    let models = &project.settings.models;
    if models.is_empty() {
        let root = shown(&project.workspace.root);
        let root = root.display();
        return Err(
            Error::failed(format!("no models are configured in `{root}`"))
                .help("cargo metainfer init finds ONNX files and writes `metainfer.toml`"),
        );
    }
    let names = models.iter().map(|model| model.name.as_str());
    expect_known("model", &selection.models, names)?;
    let is_selected =
        |model: &&Model| selection.models.is_empty() || selection.models.contains(&model.name);
    Ok(models.iter().filter(is_selected).collect())
}

/// Returns the targets that `--target` leaves, resolved on this machine.
pub(crate) fn targets(project: &Project, selection: &Selection) -> Result<Vec<Target>, Error> {
    let targets = &project.settings.targets;
    let names = targets.iter().map(|target| target.name.as_str());
    expect_known("target", &selection.targets, names)?;
    let host = device::probe::host();
    targets
        .iter()
        .filter(|target| selection.targets.is_empty() || selection.targets.contains(&target.name))
        .map(|target| resolve_target(target, &host))
        .collect()
}

/// Resolves a target: finds its profile and fits it to this machine.
pub(crate) fn resolve_target(
    settings: &TargetSettings,
    host: &DeviceProfile,
) -> Result<Target, Error> {
    let TargetSettings {
        name,
        backend,
        profile: profile_name,
        dir,
        threads,
        threads_place,
    } = settings;
    let profile = find_profile(profile_name, dir, host)
        .map_err(|error| error.context(format!("target `{name}` has no device profile")))?;
    let (profile, obstacle) = device::adopt(profile, host);
    let place = threads_place.as_ref().map(ToString::to_string);
    let too_many = (*threads > host.threads).then(|| Obstacle::Threads {
        needed: *threads,
        available: host.threads,
        place: place.unwrap_or_default(),
    });
    Ok(Target {
        name: name.clone(),
        backend: backend.clone(),
        profile_name: profile_name.clone(),
        profile,
        threads: *threads,
        obstacle: obstacle.or(too_many),
    })
}

/// Fails on the first target that cannot be run here.
pub(crate) fn expect_usable(targets: &[Target]) -> Result<(), Error> {
    match targets
        .iter()
        .find_map(|target| Some((target, target.obstacle.as_ref()?)))
    {
        Some((target, obstacle @ Obstacle::Threads { available, .. })) => {
            Err(Error::failed(format!(
                "target `{}` cannot be measured here: {obstacle}",
                target.name
            ))
            .help(format!(
                "set `threads` to {available} or less in its `[[target]]`"
            )))
        }
        Some((target, obstacle)) => Err(Error::failed(format!(
            "target `{}` cannot be measured here: profile `{}` {obstacle}",
            target.name, target.profile_name
        ))
        .help("run on such a machine, or choose others with --target NAME")
        .help("cargo metainfer targets lists what can be used here")),
        None => Ok(()),
    }
}

/// Finds a profile: this machine's, a shipped one, or a file.
fn find_profile(name: &str, dir: &Path, host: &DeviceProfile) -> Result<DeviceProfile, Error> {
    if name == "host" {
        return Ok(host.clone());
    }
    let shipped = device::shipped();
    if let Some(profile) = shipped.iter().find(|profile| profile.name == name) {
        return Ok(profile.clone());
    }
    let path = dir.join(name);
    let Some(text) = read_text(&path)? else {
        let mut names: Vec<_> = shipped.into_iter().map(|profile| profile.name).collect();
        names.insert(0, "host".to_owned());
        return Err(Error::failed(format!(
            "`{name}` is neither a shipped profile nor a file (`{}`)",
            shown(&path).display()
        ))
        .help(format!("shipped profiles: {}", names.join(", "))));
    };
    device::parse(&text).map_err(|error| {
        Error::from(error).context(format!("cannot read `{}`", shown(&path).display()))
    })
}

fn expect_known<'a>(
    what: &str,
    wanted: &[String],
    known: impl Iterator<Item = &'a str>,
) -> Result<(), Error> {
    let known: Vec<&str> = known.collect();
    match wanted.iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(Error::usage(format!("no {what} is named `{name}`"))
            .help(format!("{what}s: {}", known.join(", ")))),
        None => Ok(()),
    }
}
