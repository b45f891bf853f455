//! What the unchanged model computes on samples.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::graph::{Graph, Tensor, ValueId};
use crate::onnx::{Error, Runner};

/// Inputs of a model by name.
pub type Sample = BTreeMap<String, Tensor>;

/// Bytes of values that are kept at most.
const MAX_BYTES: usize = 1 << 30;

/// Samples that values are kept of at least, however large they are.
const MIN_SAMPLES: usize = 4;

/// A model, and all of its values on some samples.
pub struct Teacher {
    graph: Graph,
    path: PathBuf,
    traces: Vec<Sample>,
}

impl Teacher {
    /// Runs a model on samples, or on as many of them as there is memory for: values of at most 1 GiB
    /// are kept, or those of four samples. Cost: one run of the reference executor a sample.
    ///
    /// # Errors
    /// If the reference executor cannot run the model.
    pub fn new(graph: &Graph, path: &Path, samples: &[&Sample]) -> Result<Self, Error> {
        let bytes: usize = made(graph).map(|id| 4 * graph.value(id).shape.len()).sum();
        let n_fitting = (MAX_BYTES / bytes.max(1)).max(MIN_SAMPLES);
        let runner = Runner::new(&traced(graph), path)?;
        let used = samples.iter().take(n_fitting);
        let traces = used.map(|sample| {
            let mut values = runner.run(sample)?;
            values.extend((*sample).clone());
            Ok(values)
        });
        Ok(Self {
            traces: traces.collect::<Result<_, Error>>()?,
            graph: graph.clone(),
            path: path.to_owned(),
        })
    }

    /// Returns the model.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns the file of the model.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns all values of the model by name, constants aside, for each sample.
    pub fn traces(&self) -> &[Sample] {
        &self.traces
    }

    /// Returns the outputs of the model for a sample.
    pub fn outputs(&self, sample: usize) -> Sample {
        let values = &self.traces[sample];
        let outputs = self.graph.outputs.iter();
        let names = outputs.map(|&id| &self.graph.value(id).name);
        let found = names.filter_map(|name| Some((name.clone(), values.get(name)?.clone())));
        found.collect()
    }
}

/// Returns a graph all of whose values are outputs.
pub(super) fn traced(graph: &Graph) -> Graph {
    let mut traced = graph.clone();
    traced.outputs = made(graph).collect();
    traced
}

/// Returns the values that nodes make.
pub(super) fn made(graph: &Graph) -> impl Iterator<Item = ValueId> {
    let outputs = graph.nodes.iter().flat_map(|node| node.outputs.iter());
    outputs.flatten().copied()
}
