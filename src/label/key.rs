//! The key of a task.

use serde::{Deserialize, Serialize};

use crate::digest::{Digest, Digestible, Encoder};

/// What a label is about, apart from the candidate: structure, device and engine.
///
/// There is no lookup without all of them, so no device is handed another one's label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskKey {
    /// Structure digest of the subgraph.
    pub structure: Digest,
    /// Fingerprint of the device.
    pub device: Digest,
    /// Name of the backend, e.g. `native`.
    pub backend: String,
    /// Version of the backend: everything that decides what code a candidate becomes.
    pub backend_version: String,
    /// Threads that the subgraph may use.
    pub threads: u32,
}

impl Digestible for TaskKey {
    fn digest(&self, encoder: &mut Encoder) {
        encoder.digest(&self.structure);
        encoder.digest(&self.device);
        encoder.str(&self.backend);
        encoder.str(&self.backend_version);
        encoder.u64(self.threads.into());
    }
}

impl TaskKey {
    /// Returns the digest under which stores keep the task's labels.
    pub fn digest(&self) -> Digest {
        Digest::of("metainfer task v1", self)
    }
}
