//! What a backend does.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Artifact, Failure};
use crate::fsx::{FsError, FsErrorKind};
use crate::graph::{Graph, Partition, ValueId};
use crate::space::{Candidate, Mapping, SearchSpace};

/// A compiler and the engine it compiles for.
pub trait Backend: Send + Sync {
    /// Returns its name, e.g. `native`.
    fn name(&self) -> &str;

    /// Returns what may be chosen for a deployment as a whole, such as an optimisation level. The
    /// first one is what candidates are compared with each other under.
    fn options(&self) -> &[Mapping];

    /// Returns the first of the options.
    fn default_options(&self) -> Mapping {
        self.options().first().cloned().unwrap_or_default()
    }

    /// Returns whether it can build under options that were chosen earlier, perhaps by another
    /// release.
    fn accepts(&self, options: &Mapping) -> bool {
        self.options().contains(options)
    }

    /// Returns its version under some options: equal versions make equal code of equal candidates.
    fn version(&self, options: &Mapping) -> String;

    /// Returns the part of the version that does not depend on the compiler: equal ones make equal
    /// source of equal candidates. A lockfile keeps this one, and the compiler beside it.
    fn generator(&self) -> &str;

    /// Returns the compiler it uses, as it calls itself.
    fn toolchain(&self) -> &str;

    /// Gets ready to build deployments of a model.
    ///
    /// # Errors
    /// [`BackendError::NotCovered`] names every operator without a kernel.
    fn prepare(
        &self,
        graph: &Graph,
        partition: &Partition,
    ) -> Result<Arc<dyn Prepared>, BackendError>;

    /// Gets ready to build a graph in the plainest way there is: node by node, nothing chosen, for
    /// any processor. Its values say what is right where the reference executor cannot. Every node is
    /// a subgraph.
    ///
    /// # Errors
    /// As [`Backend::prepare`].
    fn prepare_plain(&self, graph: &Graph) -> Result<Arc<dyn Prepared>, BackendError>;
}

/// A model that a backend is ready to build.
pub trait Prepared: Send + Sync {
    /// Returns the mappings of a subgraph; `None` if there is nothing to choose.
    fn space(&self, subgraph: usize) -> Option<&SearchSpace>;

    /// Returns the candidate that a subgraph has untuned.
    fn default_candidate(&self, subgraph: usize) -> Candidate;

    /// Returns the value that a subgraph mainly reads and the one that it mainly gives.
    fn main_values(&self, subgraph: usize) -> Option<[ValueId; 2]>;

    /// Returns the layouts in which a mapping reads and writes the main values of a subgraph;
    /// `None` for a subgraph that takes its input as it comes.
    fn layouts(&self, subgraph: usize, mapping: &Mapping) -> Option<[String; 2]>;

    /// Returns options under which a deployment of these candidates may be faster than under
    /// `options`, such as other ways to run their steps together; none by default.
    fn refinements(&self, candidates: &[Candidate], options: &Mapping) -> Vec<Mapping> {
        let _ = (candidates, options);
        Vec::new()
    }

    /// Builds the model with a candidate for each subgraph, under one of the backend's options or
    /// a refinement of it, in at most `jobs` processes.
    ///
    /// # Errors
    /// The outer error stops everything; the inner one blames a candidate.
    fn build(
        &self,
        candidates: &[Candidate],
        options: &Mapping,
        jobs: usize,
    ) -> Result<Result<Artifact, Failure>, BackendError>;

    /// Ends what is being built: builds fail with an outcome that says nothing of a candidate. One
    /// that is between two steps may go on, and later ones are not affected; nothing by default.
    fn abandon(&self) {}

    /// Removes what is kept to build faster, first what was not used for the longest time, until
    /// all of it takes `max_bytes` at most or is in use; returns what it takes. Nothing is kept by
    /// default.
    fn make_room(&self, max_bytes: u64) -> u64 {
        let _ = max_bytes;
        0
    }

    /// Removes the files of an artifact that will not be run again.
    fn discard(&self, artifact: &Artifact);
}

/// Something that no candidate is to blame for.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// Operators that have no kernel: node, operator and reason.
    #[error("the {backend} backend does not cover {}", list(missing))]
    NotCovered {
        /// Name of the backend.
        backend: String,
        /// Each operator, as a sentence.
        missing: Vec<String>,
    },
    /// The compiler does not work.
    #[error("cannot use the compiler `{}`", command.display())]
    Toolchain {
        /// Its executable.
        command: PathBuf,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Files cannot be written or read.
    #[error(transparent)]
    Files(#[from] FsError),
    /// Templates that people may override do not work.
    #[error("cannot use the templates of the {backend} backend")]
    Templates {
        /// Name of the backend.
        backend: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

fn list(items: &[String]) -> String {
    match items {
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
        [] => "the model".to_owned(),
    }
}

impl BackendError {
    /// Returns whether there was no room for a file, which others may make.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Files(error) if error.kind == FsErrorKind::DiskFull)
    }
}
