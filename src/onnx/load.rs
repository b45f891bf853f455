//! From a file to a canonical graph.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::build::build;
use super::check;
use super::error::{Error, Problem};
use super::proto::{self, ProtoError};
use super::tensor::TensorReader;
use super::wire::WireError;
use crate::graph::{
    Graph, canonicalize, compact, spell_out_quantized, widen_halves, write_out_windows,
};

/// Default operator sets that are understood.
pub const OPSETS: std::ops::RangeInclusive<i64> = 7..=28;

/// Largest file: protobuf ends there.
const MAX_FILE_BYTES: u64 = 1 << 31;

/// What a project says about a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// Static shapes by input name; an input whose shape is fixed in the file needs none.
    pub input_shapes: BTreeMap<String, Vec<usize>>,
}

/// A model ready to be partitioned.
#[derive(Debug, Clone)]
pub struct LoadedModel {
    /// The file.
    pub path: PathBuf,
    /// The canonical graph.
    pub graph: Graph,
    /// The graph as the file has it, at static shapes and with constants folded, before any
    /// rewrite but that quantised layers are written in one form and that what is between operators
    /// of half precision is f32: what the reference executor runs.
    pub source: Graph,
}

/// Loads an ONNX file: fixes its input shapes, infers all others, folds and canonicalises.
///
/// External data is read relative to the file. The cost is that of reading and folding; no
/// inference of the model is run.
///
/// # Errors
/// [`Error`] names the file and what is wrong with it; [`Error::help`] says what to do.
pub fn load(path: &Path, options: &LoadOptions) -> Result<LoadedModel, Error> {
    let load = || {
        let bytes = read(path)?;
        decode(&bytes, path, options)
    };
    load().map_err(|problem: Problem| problem.at(path))
}

/// Decodes the bytes of an ONNX file; `path` tells where external data is.
pub(super) fn decode(
    bytes: &[u8],
    path: &Path,
    options: &LoadOptions,
) -> Result<LoadedModel, Problem> {
    let model = proto::decode(bytes).map_err(|error| undecodable(bytes, error))?;
    let (Some(_), Some(graph)) = (model.ir_version, &model.graph) else {
        let detail = if bytes.is_empty() {
            "it is empty"
        } else {
            "it has no graph"
        };
        return Err(Problem::NotOnnx {
            detail: detail.to_owned(),
        });
    };
    let opset = opset(&model)?;
    check::functions(&model, graph)?;
    let mut source = build(graph, opset, &TensorReader::new(path), options)?;
    widen_halves(&mut source);
    spell_out_quantized(&mut source);
    write_out_windows(&mut source);
    compact(&mut source);
    check::finite(&source)?;
    let graph = canonicalize(source.clone());
    Ok(LoadedModel {
        path: path.to_owned(),
        graph,
        source,
    })
}

/// Reads the file, unless it is too large or no file.
fn read(path: &Path) -> Result<Vec<u8>, Problem> {
    let failed = |source| Problem::Read {
        path: path.to_owned(),
        source,
    };
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        return Err(Problem::NotAFile(path.to_owned()));
    }
    if metadata.len() >= MAX_FILE_BYTES {
        return Err(Problem::FileTooLarge {
            bytes: metadata.len(),
        });
    }
    std::fs::read(path).map_err(failed)
}

fn opset(model: &proto::Model<'_>) -> Result<i64, Problem> {
    let version = model
        .opsets
        .iter()
        .filter(|(domain, _)| matches!(*domain, "" | "ai.onnx"))
        .map(|(_, version)| *version)
        .next()
        .unwrap_or(1);
    if OPSETS.contains(&version) {
        Ok(version)
    } else {
        Err(Problem::Opset { version })
    }
}

/// Tells a truncated model from a damaged one and from something else.
fn undecodable(bytes: &[u8], error: ProtoError) -> Problem {
    let detail = error.to_string();
    if bytes.starts_with(b"version https://git-lfs") {
        return Problem::NotOnnx {
            detail: "it is a Git LFS pointer".to_owned(),
        };
    }
    if !proto::begins_like_a_model(bytes) {
        return Problem::NotOnnx { detail };
    }
    match error {
        ProtoError::Wire(WireError::Overrun { needed, left, .. }) if needed > left as u64 => {
            Problem::Truncated { detail }
        }
        _ => Problem::Malformed { detail },
    }
}
