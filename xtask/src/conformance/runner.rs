//! Runs artifacts in a worker process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use metainfer::backend::Artifact;
use metainfer::measure::{Worker, WorkerError, WorkerSpec};
use tokio::runtime::Runtime;

use super::values::{self, Values};

/// Time that a request to the worker may take.
const LIMIT: Duration = Duration::from_secs(20);

/// A worker, started when needed.
pub(super) struct Runner {
    runtime: Runtime,
    spec: WorkerSpec,
    worker: Option<Worker>,
    outputs: PathBuf,
}

impl Runner {
    /// Makes a runner that hands outputs over in the file `outputs`.
    ///
    /// # Errors
    /// If the system does not say what this program is.
    pub(super) fn new(outputs: PathBuf) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(Self {
            runtime,
            spec: WorkerSpec::of_this_program()?,
            worker: None,
            outputs,
        })
    }

    /// Runs an artifact and returns its outputs. What `is_right` finds fault with is run again in a
    /// new worker, so that nobody pays for what an earlier artifact did to the process.
    ///
    /// # Errors
    /// How the run ended instead.
    pub(super) fn run(
        &mut self,
        artifact: &Artifact,
        inputs: &Path,
        is_right: impl Fn(&BTreeMap<String, Values>) -> bool,
    ) -> Result<BTreeMap<String, Values>, String> {
        let is_fresh = self.worker.is_none();
        let first = self.attempt(artifact, inputs);
        let is_final = match &first {
            Ok(outputs) => is_right(outputs),
            Err((_, error)) => matches!(error, Some(WorkerError::TimedOut { .. })),
        };
        if is_fresh || is_final {
            return first.map_err(|(message, _)| message);
        }
        self.worker = None;
        self.attempt(artifact, inputs)
            .map_err(|(message, _)| message)
    }

    fn attempt(
        &mut self,
        artifact: &Artifact,
        inputs: &Path,
    ) -> Result<BTreeMap<String, Values>, (String, Option<WorkerError>)> {
        let (runtime, outputs) = (&self.runtime, self.outputs.clone());
        let worker = &mut self.worker;
        let ended = runtime.block_on(async {
            let worker = match worker {
                Some(worker) => worker,
                none => none.insert(Worker::spawn(&self.spec)?),
            };
            worker.load(0, artifact.clone(), LIMIT).await?;
            worker.run(0, inputs.to_owned(), outputs, LIMIT).await
        });
        match ended {
            Ok(()) => values::read(&self.outputs).map_err(|error| (format!("{error:#}"), None)),
            Err(error) => {
                self.worker = None;
                Err((error.message(), Some(error)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use metainfer::digest::Digest;

    use super::*;

    #[test]
    fn a_worker_that_ends_is_a_message_and_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let mut runner = Runner::new(dir.path().join("outputs")).unwrap();
        runner.spec.command = "sh".into();
        // Answers one request, then ends.
        let answer = "read request; echo '{\"response\":\"loaded\"}'";
        runner.spec.args = vec!["-c".into(), answer.into()];
        let artifact = Artifact {
            digest: Digest::of_bytes("metainfer test v1", b""),
            library: PathBuf::new(),
            weights: PathBuf::new(),
            arena_bytes: 0,
            threads: 1,
            fills: Vec::new(),
            resolutions: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            steps: Vec::new(),
            compile_ns: 0,
        };
        for _ in 0..2 {
            let ended = runner.run(&artifact, Path::new("inputs"), |_| true);
            let message = ended.unwrap_err();
            assert!(message.contains("ended"), "{message}");
            assert!(runner.worker.is_none());
        }
    }
}
