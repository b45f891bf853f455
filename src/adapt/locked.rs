//! From the lockfile and to it: what earlier adaptations decided, and what this one does.

use std::collections::BTreeMap;
use std::path::Path;

use super::finals::Known;
use super::job::{Choices, Job};
use super::session::Locked;
use super::vote::Decision;
use super::{Error, Request};
use crate::backend::Artifact;
use crate::digest::Digest;
use crate::event::{Event, Reporter};
use crate::fsx::{self, FsErrorKind};
use crate::label::Stage;
use crate::lock::{
    Accuracy, Current, Deployment, DeploymentKey, Figure, Finding, Footprint, LockedSubgraph,
    Lockfile, decode, encode,
};
use crate::space::Candidate;

/// Reads the lockfile; one that does not exist is empty.
pub(super) fn read_lock(path: &Path) -> Result<Lockfile, Error> {
    match fsx::read_to_string(path) {
        Ok(text) => Ok(decode(&text)?),
        Err(error) if error.kind == FsErrorKind::NotFound => Ok(Lockfile::default()),
        Err(error) => Err(error.into()),
    }
}

/// Returns what the lockfile is to have of a decision.
pub(super) fn deployment(
    job: &Job<'_>,
    decision: &Decision,
    n_evaluations: u32,
    is_interrupted: bool,
) -> Deployment {
    let current = job.current();
    let figure = |value: f64| Figure::new(value).or(Figure::new(0.0));
    let figure = |value: f64| figure(value).expect("zero is a figure");
    let graph = job.source.graph();
    let subgraphs = job.source.partition.subgraphs.iter().enumerate();
    let subgraphs = subgraphs.map(|(idx, subgraph)| LockedSubgraph {
        op: subgraph.describe(graph),
        structure: job.source.subgraphs[idx].structure,
        candidate: decision.choices.candidates[idx].clone(),
    });
    Deployment {
        file: job.source.file,
        structure: current.structure,
        content: current.content,
        profile: current.profile,
        isa: current.isa,
        processor: current.processor,
        device: current.device,
        backend: current.backend,
        backend_version: current.backend_version,
        toolchain: job.backend.toolchain().to_owned(),
        threads: current.threads,
        objective: current.objective,
        evidence: Stage::Measured,
        evaluations: n_evaluations,
        is_interrupted,
        speed_up: figure(decision.baseline_ns / decision.latency_ns),
        latency_ms: figure(decision.latency_ns / 1e6),
        divergence: figure(decision.divergence),
        footprint: decision.footprint,
        accuracy: current.basis.map(|basis| Accuracy {
            basis,
            gate: None,
            variants: BTreeMap::new(),
        }),
        options: decision.choices.options.clone(),
        subgraphs: subgraphs.collect(),
    }
}

/// Returns what a built deployment needs; `None` if somebody removed its files.
pub(super) fn footprint(artifact: &Artifact) -> Option<Footprint> {
    let bytes = |path: &Path| path.metadata().ok().map(|metadata| metadata.len());
    Some(Footprint {
        arena_bytes: artifact.arena_bytes as u64,
        weight_bytes: bytes(&artifact.weights)?,
        code_bytes: bytes(&artifact.library)?,
    })
}

/// Returns what is locked for tasks of this target, by structure: by the model's own entry first.
pub(super) fn locked_choices(job: &Job<'_>, lockfile: &Lockfile) -> BTreeMap<Digest, Locked> {
    let current = job.current();
    let own_key = job.key();
    let own = |key: &DeploymentKey| *key == own_key;
    let mut usable: Vec<_> = lockfile
        .deployments
        .iter()
        .filter(|(_, locked)| is_usable(locked, &current))
        .collect();
    usable.sort_by_key(|(key, _)| !own(key));
    let mut choices = BTreeMap::new();
    for (_, locked) in usable {
        for subgraph in &locked.subgraphs {
            choices.entry(subgraph.structure).or_insert_with(|| Locked {
                candidate: mapped(subgraph),
                is_final: !locked.is_interrupted,
            });
        }
    }
    choices
}

/// Returns the choices of a model all of whose subgraphs are locked: those of `old`, which is what
/// is locked for the model itself, or else those that are `locked` for each task.
pub(super) fn all_locked(
    job: &Job<'_>,
    locked: &[Option<Candidate>],
    old: Option<&Deployment>,
) -> Option<Known> {
    let current = job.current();
    let own = old.filter(|old| is_usable(old, &current) && old.structure == current.structure);
    // Equal subgraphs may have different choices, so that order counts.
    let own = own.filter(|own| {
        let structures = own.subgraphs.iter().map(|subgraph| &subgraph.structure);
        structures.eq(&current.subgraphs)
    });
    let choices = if let Some(own) = own {
        locked_whole(job, own)
    } else {
        let candidates: Option<_> = job
            .task_of
            .iter()
            .map(|&task| locked[task].clone())
            .collect();
        job.choices(candidates?)
    };
    Some(Known {
        choices,
        is_locked: own.is_some(),
    })
}

/// Returns the choices of a locked deployment; options that the backend does not have any more are
/// those of the search.
pub(super) fn locked_whole(job: &Job<'_>, locked: &Deployment) -> Choices {
    let subgraphs = locked.subgraphs.iter();
    let candidates = subgraphs.map(mapped);
    let choices = job.choices(candidates.collect());
    if job.backend.accepts(&locked.options) {
        Choices {
            options: locked.options.clone(),
            ..choices
        }
    } else {
        choices
    }
}

/// Returns how a locked subgraph is executed: what it computes is in its structure already.
fn mapped(subgraph: &LockedSubgraph) -> Candidate {
    Candidate {
        mapping: subgraph.candidate.mapping.clone(),
        ..Candidate::default()
    }
}

/// Returns whether choices for one device and engine hold for another.
fn is_usable(locked: &Deployment, current: &Current) -> bool {
    locked.device == current.device
        && locked.backend == current.backend
        && locked.backend_version == current.backend_version
        && locked.threads == current.threads
}

/// Removes what is locked and no longer in the project; returns whether there is anything.
pub(super) fn remove_orphans(
    request: &Request,
    reporter: &dyn Reporter,
    mut lockfile: Lockfile,
) -> Result<bool, Error> {
    let is_known = |key: &DeploymentKey| {
        request.models.iter().any(|model| model.name == key.model)
            && request.targets.iter().any(|t| t.name == key.target)
    };
    let orphans = lockfile.deployments.keys().filter(|key| !is_known(key));
    let orphans: Vec<DeploymentKey> = orphans.cloned().collect();
    match orphans.first() {
        None => return Ok(false),
        Some(key) if request.is_locked => return Err(stale(key, &[Finding::Orphan])),
        Some(_) if request.is_dry_run => return Ok(true),
        Some(_) => {}
    }
    for key in &orphans {
        lockfile.deployments.remove(key);
    }
    fsx::replace_if_changed(&request.lockfile(), encode(&lockfile)?.as_bytes())?;
    for DeploymentKey { model, target } in &orphans {
        reporter.report(&Event::DeploymentRemoved { model, target });
    }
    Ok(true)
}

/// Returns the error for a lock that would have to change, and may not.
pub(super) fn stale(key: &DeploymentKey, findings: &[Finding]) -> Error {
    let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
    Error::Stale {
        model: key.model.clone(),
        target: key.target.clone(),
        findings: findings.join(", "),
    }
}
