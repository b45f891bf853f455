//! What the tool and its worker process say to each other: one JSON object per line.
//!
//! The tool writes [`Request`]s to the worker's standard input and reads one [`Response`] each
//! from its standard output. A worker serves one device; a crash or a hang of it is one failed
//! trial, and the tool starts another.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::backend::Artifact;
use crate::label::Outcome;

/// What the worker is asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// Loads an artifact into a slot; what was there is dropped.
    Load {
        /// Slot number, small.
        slot: u32,
        /// What to load.
        artifact: Box<Artifact>,
    },
    /// Runs the artifact in a slot step by step on the inputs of a reference file (safetensors,
    /// inputs, every intermediate value and outputs under their names) and compares each traced
    /// value. A step whose output is wrong gets the reference's numbers before the next one runs,
    /// so that each step is judged on right inputs. Then runs it twice as a whole and compares
    /// the outputs, which shows whether steps disturb each other.
    Verify {
        /// Slot number.
        slot: u32,
        /// Reference file.
        reference: PathBuf,
    },
    /// Runs the artifact `warmup` times, then takes `repeats` samples of every step.
    Profile {
        /// Slot number.
        slot: u32,
        /// Runs that are not sampled.
        warmup: u32,
        /// Runs that are.
        repeats: u32,
        /// Stop early once the run is slower than this for several runs in a row, nanoseconds.
        give_up_ns: Option<u64>,
    },
    /// Runs two or more slots in turn, in a random order each round, and samples whole runs.
    Compare {
        /// Slot numbers.
        slots: Vec<u32>,
        /// Rounds that are not sampled.
        warmup: u32,
        /// Rounds that are: each gives one sample of each slot.
        rounds: u32,
        /// Seed of the order.
        seed: u64,
    },
    /// Runs the artifact in a slot once on inputs that a file has (safetensors, under their names)
    /// and writes its outputs to another one.
    Run {
        /// Slot number.
        slot: u32,
        /// Inputs.
        inputs: PathBuf,
        /// Where the outputs go; what is there is replaced.
        outputs: PathBuf,
    },
    /// Ends the worker.
    Exit,
}

/// What the worker answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "response", rename_all = "snake_case")]
pub enum Response {
    /// The artifact is loaded.
    Loaded,
    /// How it compares with the reference.
    Verified(Verified),
    /// Samples by step.
    Profiled(Profile),
    /// Time of whole runs, nanoseconds, by the clock of [`Profile::run_ns`]: `slots_ns[i][j]` is
    /// round `j` of `slots[i]`.
    Compared {
        /// Samples by slot.
        slots_ns: Vec<Vec<u64>>,
    },
    /// The outputs are written.
    Ran,
    /// The request failed; the worker goes on.
    Failed {
        /// How the trial ended.
        outcome: Outcome,
        /// Why.
        message: String,
    },
}

/// How an artifact compares with the reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verified {
    /// By step: the largest distance of its traced values.
    pub steps: Vec<StepCheck>,
    /// The largest distance of an output after whole runs.
    pub run: StepCheck,
}

/// Samples of an artifact, nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Time of whole runs: processor time of the one thread, or wall time of several.
    pub run_ns: Vec<u64>,
    /// Wall time by step: `steps_ns[i][j]` is sample `j` of step `i`. A step during which the
    /// thread was preempted has an inflated sample; lower quantiles are robust against that.
    pub steps_ns: Vec<Vec<u64>>,
    /// Whether it gave up early; the samples are then those of the slow runs.
    pub gave_up: bool,
}

/// How values compare with the reference: relative L2 distance `‖y - r‖ / ‖r‖`, or `‖y‖` where
/// the reference is zero.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepCheck {
    /// The largest distance; `None` if it is not a finite number.
    pub relative_l2: Option<f64>,
    /// Whether anything was compared.
    pub compared: bool,
}
