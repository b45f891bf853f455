//! What ends an adaptation.

use std::path::PathBuf;

use super::TrialError;
use crate::backend::BackendError;
use crate::data::DataError;
use crate::fsx::FsError;
use crate::lock::LockError;
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
    /// The samples of a model cannot be used.
    #[error("cannot adapt model `{model}`")]
    Samples {
        /// Its name.
        model: String,
        /// What is wrong with them.
        #[source]
        source: DataError,
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
    /// The device does not work.
    #[error(transparent)]
    Device(#[from] TrialError),
    /// A journal does not say any more; the run that wrote it was killed or failed there.
    #[error("the journal ends after {n_entries} entries")]
    JournalEnds {
        /// Entries that were gone through.
        n_entries: usize,
    },
    /// There is no journal that can be replayed.
    #[error("cannot replay `{}`: {reason}", path.display())]
    NoJournal {
        /// Where it should be.
        path: PathBuf,
        /// Why.
        reason: &'static str,
    },
    /// A replay decided otherwise than the run.
    #[error("entry {n_entries} of the journal is not what the replay is at ({wanted}): {found}")]
    Diverged {
        /// Entries that were gone through.
        n_entries: usize,
        /// What the replay is at.
        wanted: String,
        /// The head of the entry.
        found: String,
    },
    /// Somebody ended the run before there was anything to keep.
    #[error("interrupted")]
    Interrupted,
    /// A thread of the run panicked, which is a mistake in this program.
    #[error("a build thread panicked")]
    Panicked,
}
