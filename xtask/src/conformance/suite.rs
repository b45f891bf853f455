//! The cases: where they come from, which there are.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use super::compare::Tolerance;
use crate::shell;

/// What the virtual environment holds.
const PACKAGES: &str = "numpy==2.4.6\nonnx==1.23.2\n";
/// The program that writes the cases.
const WRITER: &str = include_str!("cases.py");

/// A model with inputs and what they should give.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct Case {
    /// Its name, e.g. `test_add_bcast`.
    pub(super) name: String,
    /// The collection that it is from.
    pub(super) kind: String,
    /// The operator that it counts for, or the collection in brackets.
    pub(super) operator: String,
    /// How far outputs may be from what they should be, relative to that.
    pub(super) rtol: f64,
    /// How far they may be in any case.
    pub(super) atol: f64,
    /// Names of its inputs, in order.
    pub(super) inputs: Vec<String>,
    /// Sets of inputs and outputs.
    pub(super) sets: usize,
    /// Why there is no data that could be run.
    pub(super) not_covered: Option<String>,
}

impl Case {
    /// Returns how far outputs may be from what they should be.
    pub(super) fn tolerance(&self) -> Tolerance {
        Tolerance {
            rtol: self.rtol,
            atol: self.atol,
        }
    }

    /// Returns the model.
    pub(super) fn model(&self) -> PathBuf {
        self.file("model.onnx")
    }

    /// Returns the inputs of a set.
    pub(super) fn inputs_file(&self, set: usize) -> PathBuf {
        self.file(&format!("inputs_{set}.safetensors"))
    }

    /// Returns the expected outputs of a set.
    pub(super) fn outputs_file(&self, set: usize) -> PathBuf {
        self.file(&format!("outputs_{set}.safetensors"))
    }

    fn file(&self, name: &str) -> PathBuf {
        directory().join(&self.name).join(name)
    }
}

/// Returns all cases, in order of their names; writes them first if they are not there.
///
/// # Errors
/// If they cannot be made or read.
pub(super) fn cases() -> Result<Vec<Case>> {
    let directory = directory();
    let stamp = directory.join("made-by.txt");
    let maker = format!("{PACKAGES}{WRITER}");
    if !fs::read_to_string(&stamp).is_ok_and(|made_by| made_by == maker) {
        let python = shell::python("conformance/venv", PACKAGES)?;
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        fs::create_dir_all(&directory)?;
        let writer = directory.join("cases.py");
        fs::write(&writer, WRITER)?;
        shell::run(shell::command(python).arg(writer).arg(&directory))?;
        fs::write(&stamp, maker)?;
    }
    read(&directory.join("cases.json"))
}

fn read(list: &Path) -> Result<Vec<Case>> {
    let text =
        fs::read_to_string(list).with_context(|| format!("cannot read `{}`", list.display()))?;
    serde_json::from_str(&text).with_context(|| format!("cannot use `{}`", list.display()))
}

fn directory() -> PathBuf {
    shell::target("conformance/cases")
}
