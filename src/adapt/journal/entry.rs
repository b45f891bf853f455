//! The entries of a journal.

use serde::{Deserialize, Serialize};

use crate::adapt::bench::{Trial, TrialError};
use crate::adapt::job::Choices;
use crate::backend::{Artifact, Failure};
use crate::config::SearchSettings;
use crate::digest::Digest;
use crate::lock::Footprint;

/// What a run was told, or did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub(in crate::adapt) enum Entry {
    /// The run began.
    Started(Box<Header>),
    /// What the store knew, as canonical bytes.
    Known {
        /// Labels of the tasks.
        labels: Vec<String>,
        /// Evaluations of the adaptation.
        evaluations: Vec<String>,
    },
    /// A build was begun.
    Launched {
        /// Number of the build.
        build: u64,
        /// What is built.
        choices: Choices,
    },
    /// A build ended.
    Built {
        /// Number of the build.
        build: u64,
        /// What came of it.
        result: Result<Artifact, Failure>,
    },
    /// A trial could not be begun, as another run was at it.
    Refused,
    /// Nothing was built that waited for the device.
    Idle,
    /// An artifact was checked and timed.
    Ran {
        /// The artifact.
        artifact: Digest,
        /// What it did.
        result: Result<Trial, TrialError>,
    },
    /// An artifact was checked.
    Checked {
        /// The artifact.
        artifact: Digest,
        /// What its numbers are.
        result: Result<Trial, TrialError>,
    },
    /// The untuned default was looked at.
    Glanced {
        /// Latency, nanoseconds.
        result: Result<f64, TrialError>,
    },
    /// Artifacts were timed in turn.
    Compared {
        /// The artifacts.
        artifacts: Vec<Digest>,
        /// Samples of each, nanoseconds.
        result: Result<Vec<Vec<u64>>, TrialError>,
    },
    /// The files of what was decided were looked at.
    Weighed {
        /// What it needs.
        footprint: Option<Footprint>,
    },
    /// The run was told to end.
    Stopped {
        /// By what.
        stop: Stop,
        /// How often it had asked since the entry before.
        n_asked: u64,
    },
    /// What was decided: the lock of this deployment alone.
    Decided {
        /// As in a lockfile.
        lock: String,
    },
}

/// What a run depends on beside what it is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::adapt) struct Header {
    /// Version of the entries.
    pub(in crate::adapt) version: u32,
    /// Release of this tool.
    pub(in crate::adapt) tool: String,
    /// Key of the adaptation: structure, device, backend.
    pub(in crate::adapt) adaptation: Digest,
    /// Digest of the model's weights and structure.
    pub(in crate::adapt) content: Digest,
    /// Settings of the search.
    pub(in crate::adapt) search: SearchSettings,
    /// Compilers at once.
    pub(in crate::adapt) jobs: usize,
    /// The lockfile before.
    pub(in crate::adapt) lock: String,
}

/// Why a run ends before its search does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::adapt) enum Stop {
    /// Somebody said so.
    Cancelled,
    /// Its wall time is spent.
    Time,
    /// Its time for compiling is spent.
    CompileTime,
}
