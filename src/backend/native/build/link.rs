//! The two ends of a build: weights go to their file first, objects to a library last.

use std::path::PathBuf;
use std::time::Instant;

use super::leftovers::CallDir;
use super::{BuildError, Builder, entry};
use crate::backend::native::program::Program;
use crate::backend::{Artifact, Failure, StepSpec};
use crate::digest::{Digest, Encoder};
use crate::fsx;

/// A program whose weights are in a file, which goes unless it becomes that of an artifact.
#[derive(Debug)]
pub struct Packed {
    /// Without weights.
    pub(super) program: Program,
    /// Of the artifact.
    pub(super) digest: Digest,
    stem: String,
    weights: PathBuf,
    is_kept: bool,
}

impl Builder {
    /// Writes the weights of a program to the file that its artifact will have, and drops them.
    ///
    /// # Errors
    /// [`BuildError::Files`] if they cannot be written.
    pub fn pack(&self, program: Program) -> Result<Packed, BuildError> {
        let mut encoder = Encoder::new("metainfer artifact v1");
        encoder.digest(&program.digest());
        encoder.u64(self.opt_level.into());
        let digest = encoder.finish();
        let stem = self.stem(digest);
        let mut packed = Packed {
            weights: self.path(&stem, "bin"),
            program,
            digest,
            stem,
            is_kept: false,
        };
        let weights = std::mem::take(&mut packed.program.weights);
        fsx::write_scratch(&packed.weights, &weights)?;
        Ok(packed)
    }

    /// Links objects.
    pub(super) fn link(
        &self,
        mut packed: Packed,
        call: &CallDir,
        objects: &[PathBuf],
    ) -> Result<Result<Artifact, Failure>, BuildError> {
        let started = Instant::now();
        let program = &packed.program;
        let (source, unfinished) = (call.file("program.rs"), call.file("program.so"));
        fsx::write_scratch(&source, entry::source(program).as_bytes())?;
        let mut command = self.rustc("cdylib", call);
        command.args(["-C", "linker=rust-lld", "-C", "linker-flavor=ld.lld"]);
        for object in objects {
            command
                .arg("-C")
                .arg(format!("link-arg={}", object.display()));
        }
        command.arg(&source).arg("-o").arg(&unfinished);
        if let Err((outcome, message)) = self.run(command, call)? {
            return Ok(Err(Failure {
                subgraph: None,
                outcome,
                message,
            }));
        }
        let library = self.path(&packed.stem, "so");
        fsx::rename(&unfinished, &library)?;
        let artifact = Artifact {
            digest: packed.digest,
            library,
            weights: packed.weights.clone(),
            arena_bytes: program.arena_bytes,
            threads: program.threads,
            fills: program.fills.clone(),
            inputs: program.inputs.clone(),
            outputs: program.outputs.clone(),
            resolutions: program.resolutions.clone(),
            steps: program.steps.iter().map(step_spec).collect(),
            compile_ns: started.elapsed().as_nanos() as u64,
        };
        packed.is_kept = true;
        Ok(Ok(artifact))
    }
}

impl Drop for Packed {
    fn drop(&mut self) {
        if !self.is_kept {
            // What cannot be removed now is removed by a later process.
            let _ = fsx::remove_file(&self.weights);
        }
    }
}

fn step_spec(step: &crate::backend::native::program::Step) -> StepSpec {
    StepSpec {
        name: step.name.clone(),
        subgraph: step.subgraph,
        conversion: step.conversion.clone(),
        traces: step.traces.clone(),
    }
}
