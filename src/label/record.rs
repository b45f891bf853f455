//! The label record, version 1.

use serde::{Deserialize, Serialize};

use super::canonical::{self, DecodeError, Record};
use super::{Implausible, Latency, TaskKey};
use crate::digest::Digest;
use crate::space::Candidate;

/// Id of a label: the digest of its canonical bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LabelId(pub Digest);

/// Whether a figure comes from a model of the device or from the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Predicted by a simulator: ranks only.
    Simulated,
    /// Measured on the device.
    Measured,
}

/// How an evaluation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Ran, with right numbers.
    Ok,
    /// The compiler refused it.
    CompileError,
    /// The compiler did not end in time.
    CompileTimeout,
    /// It crashed or returned an error.
    RunError,
    /// It did not end in time.
    RunTimeout,
    /// It ran, and its output differs from the reference.
    WrongOutput,
    /// It needs more memory than there is.
    OutOfMemory,
    /// The backend does not cover it.
    Unsupported,
    /// Given up early: slower than the bound that the search set.
    Abandoned,
    /// The device or its worker went away; the only outcome that is tried again.
    DeviceLost,
}

/// Clock that samples were taken with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Processor time of the measuring thread.
    ThreadCpu,
    /// Wall time.
    Wall,
    /// Time-stamp counter of the processor, converted to wall time.
    Tsc,
}

/// Where the samples were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Context {
    /// The subgraph alone.
    Alone,
    /// The subgraph within a run of its whole model.
    Chain,
}

/// Samples and what is read off them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Latency of one run of the subgraph.
    pub latency: Latency,
    /// All samples, nanoseconds, in the order taken.
    pub samples_ns: Vec<u64>,
    /// Clock of the samples.
    pub clock: Clock,
    /// Where they were taken.
    pub context: Context,
}

/// What an evaluation cost, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Compiling, wall time.
    pub compile_ns: u64,
    /// Measuring, wall time.
    pub measure_ns: u64,
}

/// Where a label comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of this tool.
    pub tool: String,
    /// Compiler and its version.
    pub toolchain: String,
    /// Digest of the artifact that was run; labels of one artifact share it.
    pub artifact: Option<Digest>,
    /// Milliseconds since the Unix epoch.
    pub time_ms: u64,
}

/// One evaluated candidate. Immutable; its id is the digest of its canonical bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Label {
    /// What was tuned, where.
    pub task: TaskKey,
    /// What was chosen.
    pub candidate: Candidate,
    /// Measured or simulated.
    pub stage: Stage,
    /// How it ended.
    pub outcome: Outcome,
    /// Message of a failure, at most a few lines; empty if it went well.
    pub message: String,
    /// Samples, if it ran.
    pub measurement: Option<Measurement>,
    /// Energy of one run, millijoules, with its source, if known.
    pub energy_mj: Option<(f64, String)>,
    /// Relative L2 distance of the output to the reference, if compared.
    pub divergence: Option<f64>,
    /// Content digest that `divergence` belongs to.
    pub content: Option<Digest>,
    /// What it cost.
    pub cost: Cost,
    /// Where it comes from.
    pub provenance: Provenance,
}

impl Outcome {
    /// Returns whether the candidate ran on the device, and so may have samples.
    pub fn has_run(self) -> bool {
        matches!(self, Self::Ok | Self::WrongOutput | Self::Abandoned)
    }

    /// Returns whether the candidate is to blame, so that it is never tried again.
    pub fn is_final(self) -> bool {
        self != Self::DeviceLost
    }

    /// Returns the name used in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::CompileError => "compile_error",
            Self::CompileTimeout => "compile_timeout",
            Self::RunError => "run_error",
            Self::RunTimeout => "run_timeout",
            Self::WrongOutput => "wrong_output",
            Self::OutOfMemory => "out_of_memory",
            Self::Unsupported => "unsupported",
            Self::Abandoned => "abandoned",
            Self::DeviceLost => "device_lost",
        }
    }
}

impl Measurement {
    /// Summarises samples; `None` if there are none.
    pub fn of(samples_ns: Vec<u64>, clock: Clock, context: Context) -> Option<Self> {
        Some(Self {
            latency: Latency::of(&samples_ns)?,
            samples_ns,
            clock,
            context,
        })
    }
}

impl Label {
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
    pub fn id(&self) -> LabelId {
        LabelId(Self::id_of(&self.encode()))
    }

    /// Checks that the figures can be true.
    ///
    /// # Errors
    /// [`Implausible`] names the field.
    pub fn check(&self) -> Result<(), Implausible> {
        Record::check(self)
    }

    /// Returns the digest that canonical bytes of a label have.
    pub(crate) fn id_of(bytes: &[u8]) -> Digest {
        Digest::of_bytes("metainfer label v1", bytes)
    }
}
