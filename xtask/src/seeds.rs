//! `cargo xtask seeds`: models for the fuzz targets to start from.
//!
//! Copies the fixture, the cases of `cargo xtask conformance` and the small ones of `cargo xtask
//! models`, as far as they are there, to `target/fuzz/decode`, where
//! `cargo +nightly fuzz run --fuzz-dir tests/fuzz decode target/fuzz/decode` finds them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::shell;

/// Larger models are too slow to be mutated.
const MAX_BYTES: u64 = 1 << 20;

/// Writes the seeds.
pub(crate) fn run() -> Result<()> {
    let out = shell::target("fuzz/decode");
    fs::create_dir_all(&out)?;
    let mut n_seeds = 0;
    for directory in [
        shell::root().join("fixtures/fashion/models"),
        shell::target("conformance/cases"),
        shell::target("models"),
    ] {
        for model in models(&directory)? {
            let name = model.strip_prefix(shell::root())?.to_string_lossy();
            let seed = out.join(name.replace(std::path::MAIN_SEPARATOR, "_"));
            fs::copy(&model, &seed)
                .with_context(|| format!("cannot copy `{}`", model.display()))?;
            n_seeds += 1;
        }
    }
    println!("{n_seeds} seeds in {}", out.display());
    Ok(())
}

/// Returns the small models of a directory and of those in it, sorted; none if it does not exist.
fn models(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if !directory.exists() {
        return Ok(found);
    }
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(models(&path)?);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "onnx")
            && path.metadata()?.len() <= MAX_BYTES
        {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_models_are_found_at_any_depth() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("inner")).unwrap();
        for name in ["b.onnx", "inner/a.onnx", "c.txt"] {
            fs::write(path(name), "x").unwrap();
        }
        let large = fs::File::create(path("large.onnx")).unwrap();
        large.set_len(MAX_BYTES + 1).unwrap();
        let found = models(directory.path()).unwrap();
        assert_eq!(found, [path("b.onnx"), path("inner/a.onnx")]);
        assert!(models(&path("nothing")).unwrap().is_empty());
    }
}
