//! The int8 form of a model, as people get it: onnxruntime's static quantiser with its defaults.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;

use super::race::Shapes;
use super::scripts::Scripts;
use crate::models::{Form, Model, Precision};
use crate::shell;

/// Inputs that the ranges of values are taken from.
const SAMPLES: u32 = 8;

/// What the quantiser is asked for.
#[derive(Serialize)]
struct Specification<'a> {
    onnx: PathBuf,
    out: PathBuf,
    #[serde(flatten)]
    shapes: Shapes<'a>,
    samples: u32,
}

/// Makes the model file of a precision present.
///
/// # Errors
/// If the quantiser fails, with what it says.
pub(super) fn model_file(model: &Model, form: Form, scripts: &Scripts) -> Result<PathBuf> {
    let out = model.file(form.precision);
    if form.precision == Precision::F32 || out.exists() {
        return Ok(out);
    }
    let specification = Specification {
        onnx: model.file(Precision::F32),
        out: out.clone(),
        shapes: Shapes::of(model),
        samples: SAMPLES,
    };
    let path = shell::target("peers").join(format!("{}.quantize.json", model.name));
    fs::write(&path, serde_json::to_string_pretty(&specification)?)?;
    shell::capture(scripts.command("quantize.py", 1).arg(&path))
        .with_context(|| format!("cannot quantise `{}`", model.name))?;
    Ok(out)
}
