//! What a lockfile holds.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Accuracy, Figure};
use crate::config::Objective;
use crate::device::Isa;
use crate::digest::Digest;
use crate::label::Stage;
use crate::space::{Candidate, Mapping, ParamValue, Variant};

/// Version of the format: another one cannot be read.
pub const VERSION: i64 = 1;

/// Revision of the format: a newer one can be read, apart from what it adds, and is not written.
///
/// Revision 1 adds what a deployment needs of memory and disk ([`Footprint`]), revision 2 what its
/// accuracy rests on ([`Accuracy`]).
pub const REVISION: i64 = 2;

/// Word for a search that was interrupted.
pub(super) const INTERRUPTED: &str = "interrupted";

/// A whole lockfile, sorted by model and target.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lockfile {
    /// Revision that the text had; 0 for a new one.
    pub revision: i64,
    /// What is locked.
    pub deployments: BTreeMap<DeploymentKey, Deployment>,
}

/// What a deployment is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeploymentKey {
    /// Name of the model.
    pub model: String,
    /// Name of the target.
    pub target: String,
}

/// The locked choices for one model on one target, and what they rest on.
#[derive(Debug, Clone, PartialEq)]
pub struct Deployment {
    /// Digest of the ONNX file's bytes.
    pub file: Digest,
    /// Structure digest of the whole model.
    pub structure: Digest,
    /// Content digest of the whole model: structure and weights.
    pub content: Digest,
    /// Profile as the configuration names it.
    pub profile: String,
    /// Instruction set that the choices are made for.
    pub isa: Isa,
    /// Processor that was measured on.
    pub processor: String,
    /// Fingerprint of the device that was measured on.
    pub device: Digest,
    /// Name of the backend.
    pub backend: String,
    /// Version of the backend, apart from the compiler: equal ones make equal source.
    pub backend_version: String,
    /// Compiler and its version.
    pub toolchain: String,
    /// Threads of a run.
    pub threads: u32,
    /// What was minimised.
    pub objective: Objective,
    /// Whether the figures were measured or simulated.
    pub evidence: Stage,
    /// Real evaluations spent when the choices were made.
    pub evaluations: u32,
    /// Whether the search was interrupted: the next adaptation goes on with it.
    pub is_interrupted: bool,
    /// Latency of the untuned baseline over that of the choices, both measured in one session.
    pub speed_up: Figure,
    /// Latency of a whole run, milliseconds.
    pub latency_ms: Figure,
    /// Largest relative L2 distance of an output to the reference's.
    pub divergence: Figure,
    /// What it needs of memory and disk; `None` if it was locked before revision 1.
    pub footprint: Option<Footprint>,
    /// What its accuracy rests on; `None` if its model has no calibration samples.
    pub accuracy: Option<Accuracy>,
    /// Choices that concern the whole deployment, e.g. `opt-level`.
    pub options: Mapping,
    /// Choices by subgraph, in the order of the model.
    pub subgraphs: Vec<LockedSubgraph>,
}

/// What a deployment needs of memory and disk, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footprint {
    /// Memory for all values of a run.
    pub arena_bytes: u64,
    /// Packed weights and constants, in memory and on disk.
    pub weight_bytes: u64,
    /// Compiled kernels, as a shared library.
    pub code_bytes: u64,
}

/// The choice for one subgraph.
#[derive(Debug, Clone, PartialEq)]
pub struct LockedSubgraph {
    /// What it is, for people, derived from the structure alone, e.g. `conv_3x3 16→32 relu`.
    pub op: String,
    /// Structure digest.
    pub structure: Digest,
    /// What was chosen.
    pub candidate: Candidate,
}

/// One line of a lockfile as a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Key, e.g. `speed-up` or `mapping.layout`.
    pub key: Cow<'static, str>,
    /// Value.
    pub value: FieldValue,
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldValue {
    /// A string.
    Text(String),
    /// A digest; people are shown the start of it.
    Digest(Digest),
    /// A whole number.
    Int(i64),
    /// A measured figure.
    Figure(Figure),
    /// A size, bytes.
    Bytes(u64),
}

impl Deployment {
    /// Returns the oldest revision of the format that has all of it.
    pub(super) fn revision(&self) -> i64 {
        match (&self.accuracy, self.footprint) {
            (Some(_), _) => 2,
            (None, Some(_)) => 1,
            (None, None) => 0,
        }
    }

    /// Returns the fields in the order of the file, without the subgraphs.
    pub fn fields(&self) -> Vec<Field> {
        let text = |text: &str| FieldValue::Text(text.to_owned());
        let mut fields: Vec<Field> = [
            ("file", FieldValue::Digest(self.file)),
            ("structure", FieldValue::Digest(self.structure)),
            ("content", FieldValue::Digest(self.content)),
            ("profile", text(&self.profile)),
            ("isa", text(self.isa.name())),
            ("processor", text(&self.processor)),
            ("device", FieldValue::Digest(self.device)),
            ("backend", text(&self.backend)),
            ("backend-version", text(&self.backend_version)),
            ("toolchain", text(&self.toolchain)),
            ("threads", FieldValue::Int(self.threads.into())),
            ("objective", text(self.objective.name())),
            ("evidence", text(evidence_name(self.evidence))),
            ("evaluations", FieldValue::Int(self.evaluations.into())),
            ("speed-up", FieldValue::Figure(self.speed_up)),
            ("latency-ms", FieldValue::Figure(self.latency_ms)),
            ("divergence", FieldValue::Figure(self.divergence)),
        ]
        .map(|(key, value)| Field {
            key: Cow::Borrowed(key),
            value,
        })
        .into();
        if let Some(footprint) = self.footprint {
            fields.extend(footprint.fields());
        }
        if let Some(accuracy) = &self.accuracy {
            fields.extend(accuracy.fields());
        }
        if self.is_interrupted {
            fields.push(Field {
                key: Cow::Borrowed("search"),
                value: FieldValue::Text(INTERRUPTED.to_owned()),
            });
        }
        fields.extend(mapping_fields("options", &self.options));
        fields
    }

    /// Takes over from an older deployment what has not really changed.
    ///
    /// Figures that are within `noise` of the older ones stay, if both are of one device, and so
    /// does the number of evaluations if every choice is the same. So a run that confirms the
    /// locked choices changes no byte.
    #[must_use]
    pub fn settled(mut self, old: &Self, noise: f64) -> Self {
        if self.device != old.device {
            return self;
        }
        let settle = |old: Figure, new: Figure| Figure::settle(Some(old), new.get(), noise);
        let is_confirmed = self.options == old.options
            && self.subgraphs == old.subgraphs
            && self.is_interrupted == old.is_interrupted;
        self.speed_up = settle(old.speed_up, self.speed_up).unwrap_or(self.speed_up);
        self.latency_ms = settle(old.latency_ms, self.latency_ms).unwrap_or(self.latency_ms);
        if is_confirmed {
            self.evaluations = old.evaluations;
            if self.content == old.content {
                // Same code, same weights: what differs is the choice of check inputs.
                self.divergence = old.divergence;
            }
            if self.toolchain == old.toolchain && self.backend_version == old.backend_version {
                // A linker may well pad otherwise.
                self.footprint = old.footprint.or(self.footprint);
            }
        }
        self
    }
}

impl Footprint {
    fn fields(self) -> impl Iterator<Item = Field> {
        let fields = [
            ("arena-bytes", self.arena_bytes),
            ("weight-bytes", self.weight_bytes),
            ("code-bytes", self.code_bytes),
        ];
        fields.into_iter().map(|(key, bytes)| Field {
            key: Cow::Borrowed(key),
            value: FieldValue::Bytes(bytes),
        })
    }
}

impl LockedSubgraph {
    /// Returns the fields in the order of the file; the default variant has none.
    pub fn fields(&self) -> Vec<Field> {
        let mut fields = vec![
            Field {
                key: Cow::Borrowed("op"),
                value: FieldValue::Text(self.op.clone()),
            },
            Field {
                key: Cow::Borrowed("structure"),
                value: FieldValue::Digest(self.structure),
            },
        ];
        fields.extend(self.choice());
        fields
    }

    /// Returns the fields that were chosen: variant and mapping.
    pub fn choice(&self) -> Vec<Field> {
        let variant = &self.candidate.variant;
        let mut fields = Vec::new();
        if *variant != Variant::default() {
            fields.push(Field {
                key: Cow::Borrowed("variant"),
                value: FieldValue::Text(variant.to_string()),
            });
        }
        fields.extend(mapping_fields("mapping", &self.candidate.mapping));
        fields
    }
}

/// Returns the word for an evidence.
pub(super) fn evidence_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Simulated => "simulated",
        Stage::Measured => "measured",
    }
}

fn mapping_fields(prefix: &str, mapping: &Mapping) -> Vec<Field> {
    mapping
        .0
        .iter()
        .map(|(name, value)| Field {
            key: Cow::Owned(format!("{prefix}.{name}")),
            value: match value {
                ParamValue::Int(value) => FieldValue::Int(*value),
                ParamValue::Word(word) => FieldValue::Text(word.clone()),
            },
        })
        .collect()
}
