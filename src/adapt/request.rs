//! What an adaptation is asked to do.

use std::path::PathBuf;

use super::Cancellation;
use crate::config::{LimitSettings, Model, SearchSettings, TimeoutSettings};
use crate::device::Target;
use crate::measure::WorkerSpec;
use crate::queue::Priority;

/// Everything that an adaptation needs from its surroundings, resolved: it reads no environment
/// and looks up no configuration.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one flag of the command line, and they go together in any way"
)]
pub struct Request {
    /// Directory of the workspace's manifest; `metainfer.lock` is in it.
    pub workspace_root: PathBuf,
    /// Directory for what can be made again: `metainfer` in Cargo's target directory. It need not
    /// exist.
    pub scratch: PathBuf,
    /// The user's data directory, with the label store; it need not exist.
    pub home: PathBuf,
    /// Models to adapt, sorted by name.
    pub models: Vec<Model>,
    /// Targets to adapt them to, sorted by name; each can run here.
    pub targets: Vec<Target>,
    /// Whether these are all models and targets of the project: what is locked besides is removed.
    pub is_everything: bool,
    /// How much to search.
    pub search: SearchSettings,
    /// What a search may use beside evaluations.
    pub limits: LimitSettings,
    /// How much the run matters beside others on this machine.
    pub priority: Priority,
    /// Compilers that may run at once, at least 1. They keep off the cores that something is timed
    /// on.
    pub jobs: usize,
    /// Fail rather than change the lockfile.
    pub is_locked: bool,
    /// Open no network connection.
    pub is_offline: bool,
    /// Say what would be searched, and stop.
    pub is_dry_run: bool,
    /// How to start a worker process.
    pub worker: WorkerSpec,
    /// Longest time that a compiler may take, and a worker over one request.
    pub timeouts: TimeoutSettings,
    /// The compiler.
    pub rustc: PathBuf,
    /// Says when to stop.
    pub cancellation: Cancellation,
}

impl Request {
    /// Returns the path of the lockfile.
    pub fn lockfile(&self) -> PathBuf {
        self.workspace_root.join("metainfer.lock")
    }
}
