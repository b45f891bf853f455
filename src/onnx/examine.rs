//! What must hold of any bytes: the one check of damaged models, for tests and fuzz targets.

use std::path::Path;

use super::load::{LoadOptions, decode};
use super::{Problem, encode};
use crate::graph::{canonicalize, partition};

/// Loads a model from bytes, rewrites it, cuts it, and writes it; returns whether it is one.
///
/// Takes no more memory than a small multiple of the bytes and 1 GiB for constants that are worked
/// out while loading. No external data is read.
///
/// # Errors
/// What went wrong with a model that had been loaded: rewriting it again changes it, or what is
/// written of it is not read.
pub fn survives(bytes: &[u8], options: &LoadOptions) -> Result<bool, String> {
    let path = Path::new("no/such/directory/damaged.onnx");
    let Ok(model) = decode(bytes, path, options) else {
        return Ok(false);
    };
    for subgraph in partition(&model.graph).subgraphs {
        subgraph.describe(&model.graph);
        subgraph.digests(&model.graph);
    }
    let digests = model.graph.digests();
    let again = canonicalize(model.graph.clone());
    if again.digests() != digests {
        return Err(format!("rewriting is not done: {}", model.graph.name));
    }
    let Ok(written) = encode(&model.source) else {
        return Ok(true);
    };
    // It need not be the same model: what became constant by folding is folded on.
    match decode(&written, path, &LoadOptions::default()) {
        Ok(_) | Err(Problem::ZeroSized { .. }) => Ok(true),
        Err(problem) => Err(format!("what is written of it is not read: {problem}")),
    }
}
