//! Models loaded and cut, ready to be looked at.

use std::collections::BTreeMap;

use super::Error;
use super::files::shown;
use crate::backend::native::Native;
use crate::config::Model;
use crate::device::Target;
use crate::graph::{self, Digests, Graph, Partition};
use crate::lock::Current;
use crate::onnx::{self, LoadOptions};

/// A loaded model.
pub(crate) struct Loaded {
    pub(crate) graph: Graph,
    pub(crate) partition: Partition,
    /// Digests of the whole model.
    pub(crate) digests: Digests,
    /// Digests of the subgraphs, in order.
    pub(crate) subgraphs: Vec<Digests>,
}

/// Loads a model with the input shapes that the project gives it.
pub(crate) fn load(model: &Model) -> Result<Loaded, Error> {
    expect_file(model)?;
    let input_shapes = model
        .inputs
        .iter()
        .map(|(name, shape)| (name.clone(), shape.dims().to_vec()))
        .collect();
    let graph = onnx::load(&model.path, &LoadOptions { input_shapes })?.graph;
    let partition = graph::partition(&graph);
    let subgraphs = partition
        .subgraphs
        .iter()
        .map(|subgraph| subgraph.digests(&graph))
        .collect();
    Ok(Loaded {
        digests: graph.digests(),
        subgraphs,
        partition,
        graph,
    })
}

/// Returns what a deployment would rest on if it were made now.
pub(crate) fn current(model: &Model, target: &Target, loaded: &Loaded) -> Result<Current, Error> {
    Ok(Current {
        structure: loaded.digests.structure,
        content: loaded.digests.content,
        subgraphs: loaded.subgraphs.iter().map(|d| d.structure).collect(),
        profile: target.profile_name.clone(),
        isa: target.profile.isa,
        processor: target.profile.processor.clone(),
        device: target.profile.fingerprint(),
        backend: target.backend.clone(),
        backend_version: Native::generator_version(&BTreeMap::new())?,
        threads: target.threads,
        objective: model.objective,
    })
}

/// Fails if a model's file is not there.
pub(crate) fn expect_file(model: &Model) -> Result<(), Error> {
    if model.path.exists() {
        return Ok(());
    }
    Err(Error::failed(format!(
        "model `{}` has no file: `{}` does not exist",
        model.name,
        shown(&model.path).display()
    ))
    .help("check `path` of its `[[model]]`, or fetch the file"))
}
