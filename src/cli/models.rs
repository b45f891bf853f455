//! Models loaded and cut, ready to be looked at.

use std::collections::BTreeMap;

use super::Error;
use super::files::shown;
use crate::backend::native::Native;
use crate::calibrate::{Fit, ModelSamples};
use crate::config::Model;
use crate::device::Target;
use crate::graph::{self, Digests, Graph, Partition};
use crate::lock::{Current, Deployment, Finding};
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
    Ok(Loaded::of(graph))
}

impl Loaded {
    /// Cuts a canonical graph.
    fn of(graph: Graph) -> Self {
        let partition = graph::partition(&graph);
        let subgraphs = partition.subgraphs.iter();
        Self {
            digests: graph.digests(),
            subgraphs: subgraphs.map(|subgraph| subgraph.digests(&graph)).collect(),
            partition,
            graph,
        }
    }
}

/// Reads the samples of a model, if it has any.
pub(crate) fn samples(model: &Model, loaded: &Loaded) -> Result<Option<ModelSamples>, Error> {
    let samples = ModelSamples::read(&model.samples, &model.accept, &loaded.graph);
    samples.map_err(Error::failed)
}

/// Returns in what a model differs from the one that was locked: in structure, weights or samples.
pub(crate) fn difference(
    model: &Model,
    loaded: &Loaded,
    locked: &Deployment,
) -> Result<Option<Finding>, Error> {
    if locked.structure != loaded.digests.structure {
        let known = |digests: &Digests| {
            locked
                .subgraphs
                .iter()
                .any(|s| s.structure == digests.structure)
        };
        return Ok(Some(Finding::Structure {
            n_new: loaded.subgraphs.iter().filter(|d| !known(d)).count(),
            n_subgraphs: loaded.subgraphs.len(),
        }));
    }
    if locked.content != loaded.digests.content {
        return Ok(Some(Finding::Weights));
    }
    let Some(accuracy) = locked.accuracy.as_ref().filter(|a| !a.variants.is_empty()) else {
        return Ok(None);
    };
    let samples = samples(model, loaded)?.map(|samples| samples.basis().samples);
    Ok(
        (samples != Some(accuracy.basis.samples)).then(|| Finding::Setting {
            key: "calibration",
            old: accuracy.basis.samples.short(),
            new: samples.map_or_else(|| "none".to_owned(), |samples| samples.short()),
        }),
    )
}

/// Returns the variant of a model that is locked.
pub(crate) fn varied(model: &Model, loaded: Loaded, locked: &Deployment) -> Result<Loaded, Error> {
    let variants = locked.accuracy.as_ref().map(|accuracy| &accuracy.variants);
    let (Some(variants), Some(samples)) = (
        variants.filter(|variants| !variants.is_empty()),
        samples(model, &loaded)?,
    ) else {
        return Ok(loaded);
    };
    let fit = Fit::new(
        &loaded.graph,
        &loaded.partition,
        &model.path,
        &samples.calibration,
    )?;
    let recipe = variants
        .iter()
        .map(|(site, variant)| (*site as usize, *variant));
    Ok(Loaded::of(graph::canonicalize(
        fit.graph_of(&recipe.collect()),
    )))
}

/// Returns what a deployment would rest on if it were made now.
pub(crate) fn current(model: &Model, target: &Target, loaded: &Loaded) -> Result<Current, Error> {
    let samples = samples(model, loaded)?;
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
        basis: samples.map(|samples| samples.basis()),
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
