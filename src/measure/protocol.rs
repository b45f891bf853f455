//! What the tool and its worker process say to each other: one JSON object per line.
//!
//! The tool writes [`Request`]s to the worker's standard input and reads one [`Response`] each
//! from its standard output. A worker serves one device; a crash or a hang of it is one failed
//! trial, and the tool starts another.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::backend::Artifact;

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
    /// inputs, every intermediate value and outputs under their names) and compares each traced value. A step whose
    /// output is wrong gets the reference's numbers before the next one runs, so that each step
    /// is judged on right inputs.
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
    /// Ends the worker.
    Exit,
}

/// What the worker answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "response", rename_all = "snake_case")]
pub enum Response {
    /// The artifact is loaded.
    Loaded,
    /// The comparison of each step's traced values: relative L2 distance `‖y - r‖ / ‖r‖`, the
    /// largest of the step's traces, NaN as `null`; `None` for a step without traces.
    Verified {
        /// By step.
        steps: Vec<StepCheck>,
    },
    /// Samples by step, nanoseconds: `steps[i][j]` is sample `j` of step `i`.
    Profiled {
        /// Samples of the whole run.
        run_ns: Vec<u64>,
        /// Samples by step.
        steps_ns: Vec<Vec<u64>>,
        /// Whether it gave up early.
        gave_up: bool,
    },
    /// Thread CPU time of whole runs, nanoseconds: `slots[i][j]` is round `j` of `slots[i]`.
    Compared {
        /// Samples by slot.
        slots_ns: Vec<Vec<u64>>,
    },
    /// The request failed; the worker goes on.
    Failed {
        /// Why.
        message: String,
    },
}

/// How a step compares with the reference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepCheck {
    /// Relative L2 distance, largest of the step's traces; `None` if it is not a number.
    pub relative_l2: Option<f64>,
    /// Whether anything was compared.
    pub compared: bool,
}
