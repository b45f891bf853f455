//! Libraries of cases, kept from one run to the next.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use metainfer::backend::native::Native;
use metainfer::backend::native::program::Program;
use metainfer::backend::{Artifact, Backend, IoSpec, Prepared};
use metainfer::digest::Digest;
use metainfer::space::Mapping;

use crate::shell;

/// What else makes a library what it is, beside the program: how calls are strung together.
const LINKING: &str = "src/backend/native/build";

/// A directory of artifacts.
#[derive(Debug)]
pub(super) struct Cache {
    directory: PathBuf,
}

impl Cache {
    /// Opens the directory for a backend.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(super) fn open(native: &Native) -> Result<Self> {
        let mut key = native.version(&native.default_options()).into_bytes();
        let mut sources: Vec<PathBuf> = fs::read_dir(shell::root().join(LINKING))?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<_>>()?;
        sources.sort();
        for source in sources {
            key.extend(fs::read(source)?);
        }
        let name = Digest::of_bytes("metainfer conformance v1", &key).short();
        let directory = shell::target("conformance/artifacts").join(name);
        fs::create_dir_all(&directory)?;
        Ok(Self { directory })
    }

    /// Returns the artifact of a program if it is there.
    pub(super) fn find(&self, program: &Program) -> Option<Artifact> {
        let text = fs::read_to_string(self.path(program, "json")).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Keeps an artifact that was just built, and returns it where it is now.
    ///
    /// # Errors
    /// If it cannot be moved.
    pub(super) fn keep(&self, program: &Program, built: &Artifact) -> Result<Artifact> {
        let kept = Artifact {
            library: self.path(program, "so"),
            weights: self.path(program, "bin"),
            ..built.clone()
        };
        let rename = |from: &Path, to: &Path| {
            fs::rename(from, to).with_context(|| format!("cannot move `{}`", from.display()))
        };
        rename(&built.library, &kept.library)?;
        rename(&built.weights, &kept.weights)?;
        // Last, and whole or not at all: it says that the others are there.
        let text = serde_json::to_string(&kept)?;
        let unfinished = built.library.with_extension("json");
        fs::write(&unfinished, text)?;
        rename(&unfinished, &self.path(program, "json"))?;
        Ok(kept)
    }

    fn path(&self, program: &Program, extension: &str) -> PathBuf {
        let key = key(program.digest(), &program.inputs, &program.outputs);
        self.directory.join(format!("{}.{extension}", key.short()))
    }
}

/// Returns what tells programs apart: also their inputs and outputs, as equal code may serve
/// several shapes.
fn key(code: Digest, inputs: &[IoSpec], outputs: &[IoSpec]) -> Digest {
    let text = format!("{code:?} {inputs:?} {outputs:?}");
    Digest::of_bytes("metainfer conformance program v1", text.as_bytes())
}

/// Builds a model with the default mapping of each subgraph.
///
/// # Errors
/// If it does not compile, or the compiler does not work.
pub(super) fn build(
    prepared: &dyn Prepared,
    options: &Mapping,
    n_subgraphs: usize,
) -> Result<Artifact> {
    let candidates: Vec<_> = (0..n_subgraphs)
        .map(|subgraph| prepared.default_candidate(subgraph))
        .collect();
    prepared
        .build(&candidates, options, 1)?
        .map_err(|failure| anyhow::anyhow!("{}", failure.message))
}

#[cfg(test)]
mod tests {
    use metainfer::graph::{DType, Shape};

    use super::*;

    #[test]
    fn equal_code_for_other_shapes_is_another_program() {
        let key = |dims: &[usize]| {
            let y = IoSpec {
                name: "y".to_owned(),
                dtype: DType::F32,
                shape: Shape(dims.to_vec()),
            };
            key(Digest::of_bytes("metainfer test v1", b"code"), &[], &[y])
        };
        assert_eq!(key(&[3, 1]), key(&[3, 1]));
        assert_ne!(key(&[3, 1]), key(&[1, 3]));
    }
}
