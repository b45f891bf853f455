//! The evaluation record, version 1: the currency of a search.

use serde::{Deserialize, Serialize};

use super::canonical::{self, DecodeError, Record};
use super::plausible::{self, Implausible};
use super::{Cost, Outcome};
use crate::digest::Digest;

/// Id of an evaluation: the digest of its canonical bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EvaluationId(pub Digest);

/// Why an artifact was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To give labels to the candidates in it.
    Screening,
    /// To choose among whole deployments.
    Final,
    /// To confirm or replace what is locked.
    Confirm,
}

/// One compiled artifact run on the device. Immutable; its id is the digest of its canonical bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Key of the adaptation that spent it: the caller's digest of model and target.
    pub adaptation: Digest,
    /// Digest of the artifact; its labels have the same one in their provenance.
    pub artifact: Digest,
    /// Why it was run.
    pub purpose: Purpose,
    /// How it ended.
    pub outcome: Outcome,
    /// Message of a failure; empty if it went well.
    pub message: String,
    /// Lower quartile of the latency of whole runs, nanoseconds, if it ran.
    pub run_p25_ns: Option<f64>,
    /// Latency over that of the baseline of the same session, if they were compared.
    pub ratio_to_baseline: Option<f64>,
    /// Labels that it gave.
    pub n_labels: u32,
    /// What it cost.
    pub cost: Cost,
    /// When it ended, milliseconds since the Unix epoch.
    pub time_ms: u64,
}

impl Evaluation {
    /// Returns the canonical bytes.
    pub fn encode(&self) -> Vec<u8> {
        canonical::encode(self)
    }

    /// Reads canonical bytes.
    ///
    /// # Errors
    /// [`DecodeError`] if they are of a newer version, not canonical, or cannot be true.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        canonical::decode(bytes)
    }

    /// Returns the id.
    pub fn id(&self) -> EvaluationId {
        EvaluationId(Self::id_of(&self.encode()))
    }

    /// Checks that the figures can be true.
    ///
    /// # Errors
    /// [`Implausible`] names the field.
    pub fn check(&self) -> Result<(), Implausible> {
        Record::check(self)
    }

    /// Returns the digest that canonical bytes of an evaluation have.
    pub(crate) fn id_of(bytes: &[u8]) -> Digest {
        Digest::of_bytes("metainfer evaluation v1", bytes)
    }
}

impl Record for Evaluation {
    const NAME: &'static str = "evaluation";
    const VERSION: u32 = 1;

    fn check(&self) -> Result<(), Implausible> {
        plausible::time("time_ms", self.time_ms)?;
        plausible::message(self.outcome, &self.message)?;
        plausible::positive("run_p25_ns", self.run_p25_ns)?;
        plausible::positive("ratio_to_baseline", self.ratio_to_baseline)?;
        if self.outcome == Outcome::Ok && self.run_p25_ns.is_none() {
            return Err(Implausible::Missing("run_p25_ns"));
        }
        Ok(())
    }
}
