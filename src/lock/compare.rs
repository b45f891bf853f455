//! A locked deployment against what is there now: is it stale, and why.

use std::collections::BTreeMap;
use std::fmt;

use super::{Basis, Deployment};
use crate::config::Objective;
use crate::device::Isa;
use crate::digest::Digest;

/// What a deployment would rest on if it were made now.
#[derive(Debug, Clone, PartialEq)]
pub struct Current {
    /// Structure digest of the whole model.
    pub structure: Digest,
    /// Content digest of the whole model.
    pub content: Digest,
    /// Structure digests of the subgraphs, in order.
    pub subgraphs: Vec<Digest>,
    /// Profile as the configuration names it.
    pub profile: String,
    /// Instruction set of the target.
    pub isa: Isa,
    /// Processor of the target, as far as it is known here.
    pub processor: String,
    /// Fingerprint of the target's device, as far as it is known here.
    pub device: Digest,
    /// Name of the backend.
    pub backend: String,
    /// Version of the backend, apart from the compiler.
    pub backend_version: String,
    /// Threads of a run.
    pub threads: u32,
    /// What is minimised.
    pub objective: Objective,
    /// What variants are judged by; `None` if there are no calibration samples.
    pub basis: Option<Basis>,
}

/// One way in which a lockfile and the project differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// Nothing is locked for the model and target.
    Missing,
    /// The model's structure is another one.
    Structure {
        /// Subgraphs that the lock has no choice for.
        n_new: usize,
        /// Subgraphs of the model.
        n_subgraphs: usize,
    },
    /// The structure is the same, the weights are not: accuracy is to be checked again.
    Weights,
    /// A setting that the choices rest on is another one.
    Setting {
        /// Key of the setting.
        key: &'static str,
        /// Its locked value.
        old: String,
        /// Its value now.
        new: String,
    },
    /// The search was interrupted, and would go on.
    Interrupted,
    /// Something is locked that the project no longer names.
    Orphan,
    /// The lock is of another machine than this one: its figures cannot be judged here.
    OtherDevice {
        /// Processor that the lock was measured on.
        old: String,
        /// Processor of this machine.
        new: String,
    },
}

impl Finding {
    /// Returns whether the lock no longer says what an adaptation would rest on. A lock of
    /// another machine is not stale: where a project is checked says nothing of what it is for.
    pub fn is_stale(&self) -> bool {
        !matches!(self, Self::OtherDevice { .. })
    }

    /// Returns the stable code for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Structure { .. } => "structure-changed",
            Self::Weights => "weights-changed",
            Self::Setting { .. } => "setting-changed",
            Self::Interrupted => "interrupted",
            Self::Orphan => "orphan",
            Self::OtherDevice { .. } => "other-device",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("not locked"),
            Self::Structure { n_new, n_subgraphs } => {
                write!(
                    f,
                    "structure changed, {n_new} of {n_subgraphs} subgraphs are new"
                )
            }
            Self::Weights => f.write_str("weights changed"),
            Self::Setting { key, old, new } => write!(f, "`{key}` changed from {old} to {new}"),
            Self::Interrupted => f.write_str("the search was interrupted"),
            Self::Orphan => f.write_str("locked, but not in the project"),
            Self::OtherDevice { old, new } => {
                write!(f, "locked on another machine, {old}; this one is {new}")
            }
        }
    }
}

impl Deployment {
    /// Returns what differs from `current`, in order of importance; nothing if it is fresh.
    pub fn compare(&self, current: &Current) -> Vec<Finding> {
        let mut findings = Vec::new();
        if self.structure != current.structure {
            findings.push(Finding::Structure {
                n_new: self.count_new(&current.subgraphs),
                n_subgraphs: current.subgraphs.len(),
            });
        } else if self.content != current.content {
            findings.push(Finding::Weights);
        }
        let mut setting = |key, old: &str, new: &str| {
            if old != new {
                findings.push(Finding::Setting {
                    key,
                    old: old.to_owned(),
                    new: new.to_owned(),
                });
            }
        };
        setting("backend", &self.backend, &current.backend);
        setting(
            "backend-version",
            &self.backend_version,
            &current.backend_version,
        );
        setting("profile", &self.profile, &current.profile);
        setting(
            "threads",
            &self.threads.to_string(),
            &current.threads.to_string(),
        );
        setting("objective", self.objective.name(), current.objective.name());
        let own = self.accuracy.as_ref().map(|accuracy| &accuracy.basis);
        let (own, basis) = (Shown::of(own), Shown::of(current.basis.as_ref()));
        setting("calibration", &own.samples, &basis.samples);
        setting("accept", own.accept, basis.accept);
        // `host` is whatever machine this is; any other profile fixes the instruction set.
        if current.profile != "host" && self.profile == current.profile {
            setting("isa", self.isa.name(), current.isa.name());
        }
        if self.is_interrupted {
            findings.push(Finding::Interrupted);
        }
        if self.device != current.device && findings.is_empty() {
            findings.push(Finding::OtherDevice {
                old: format!("{} ({})", self.processor, self.isa),
                new: format!("{} ({})", current.processor, current.isa),
            });
        }
        findings
    }

    /// Counts the subgraphs that no locked one can be matched with.
    fn count_new(&self, subgraphs: &[Digest]) -> usize {
        let mut n_locked: BTreeMap<Digest, usize> = BTreeMap::new();
        for subgraph in &self.subgraphs {
            *n_locked.entry(subgraph.structure).or_default() += 1;
        }
        subgraphs
            .iter()
            .filter(|digest| match n_locked.get_mut(digest) {
                Some(n) if *n > 0 => {
                    *n -= 1;
                    false
                }
                _ => true,
            })
            .count()
    }
}

/// What variants are judged by, for people.
struct Shown<'a> {
    samples: String,
    accept: &'a str,
}

impl<'a> Shown<'a> {
    fn of(basis: Option<&'a Basis>) -> Self {
        match basis {
            Some(basis) => Self {
                samples: basis.samples.short(),
                accept: &basis.accept,
            },
            None => Self {
                samples: "none".to_owned(),
                accept: "nothing",
            },
        }
    }
}
