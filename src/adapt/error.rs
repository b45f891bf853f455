//! What ends an adaptation.

use crate::backend::BackendError;
use crate::fsx::FsError;
use crate::lock::LockError;
use crate::measure::WorkerError;
use crate::onnx;
use crate::store::StoreError;

/// Why a run could not finish.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A model cannot be used.
    #[error("cannot adapt model `{model}`")]
    Model {
        /// Its name.
        model: String,
        /// Why.
        #[source]
        source: Box<onnx::Error>,
    },
    /// The backend cannot build it.
    #[error("cannot adapt model `{model}` to target `{target}`")]
    Backend {
        /// Name of the model.
        model: String,
        /// Name of the target.
        target: String,
        /// Why.
        #[source]
        source: BackendError,
    },
    /// The untuned default does not work, so that nothing can be compared with it.
    #[error("the untuned default of model `{model}` does not run on target `{target}`: {message}")]
    Default {
        /// Name of the model.
        model: String,
        /// Name of the target.
        target: String,
        /// What happened.
        message: String,
    },
    /// The lock would have to change, and may not.
    #[error(
        "the lock of model `{model}` on target `{target}` is stale: {findings}, and `--locked` was given"
    )]
    Stale {
        /// Name of the model.
        model: String,
        /// Name of the target.
        target: String,
        /// What differs.
        findings: String,
    },
    /// The lockfile cannot be read or written.
    #[error("cannot use the lockfile `metainfer.lock`")]
    Lock(#[from] LockError),
    /// Files cannot be read or written.
    #[error(transparent)]
    Files(#[from] FsError),
    /// The label store does not work.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No worker can be started.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// A thread of the run panicked, which is a mistake in this program.
    #[error("a build thread panicked")]
    Panicked,
}
