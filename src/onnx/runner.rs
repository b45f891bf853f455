//! Graphs other than those of a file, run by the reference executor.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::error::{Error, Problem};
use super::executor::{Executor, from_value, single_thread};
use crate::graph::{DType, Graph, Shape, Tensor};

/// A graph ready to run on one thread. It may be sent to another thread.
pub struct Runner {
    executor: Executor,
    path: PathBuf,
    inputs: Vec<(String, DType, Shape)>,
    outputs: Vec<(String, DType)>,
}

impl Runner {
    /// Prepares a graph; `path` is the model that it is a part or a variant of, for messages.
    ///
    /// # Errors
    /// If the executor does not know an operator.
    pub fn new(graph: &Graph, path: &Path) -> Result<Self, Error> {
        let executor = Executor::new(graph, single_thread()).map_err(|problem| problem.at(path))?;
        let values = |ids: &[crate::graph::ValueId]| -> Vec<_> {
            ids.iter().map(|&id| graph.value(id).clone()).collect()
        };
        let inputs = values(&graph.inputs).into_iter();
        let outputs = values(&graph.outputs).into_iter();
        Ok(Self {
            executor,
            path: path.to_owned(),
            inputs: inputs
                .map(|value| (value.name, value.dtype, value.shape))
                .collect(),
            outputs: outputs.map(|value| (value.name, value.dtype)).collect(),
        })
    }

    /// Returns the outputs by name. `inputs` has every input of the graph, and may have more.
    ///
    /// # Errors
    /// If an input is missing or has another type or shape, or if the executor fails.
    pub fn run(
        &self,
        inputs: &BTreeMap<String, Tensor>,
    ) -> Result<BTreeMap<String, Tensor>, Error> {
        self.values(inputs)
            .map_err(|problem| problem.at(&self.path))
    }

    fn values(
        &self,
        inputs: &BTreeMap<String, Tensor>,
    ) -> Result<BTreeMap<String, Tensor>, Problem> {
        let given = self.inputs.iter().map(|(name, dtype, shape)| {
            let tensor = inputs
                .get(name)
                .filter(|tensor| tensor.dtype() == *dtype && tensor.shape() == shape);
            let tensor = tensor.ok_or_else(|| Problem::InputValue {
                input: name.clone(),
                dtype: *dtype,
                shape: shape.clone(),
            })?;
            Ok((name.as_str(), tensor))
        });
        let given = given.collect::<Result<Vec<_>, Problem>>()?;
        let names: Vec<&str> = self.outputs.iter().map(|(name, _)| name.as_str()).collect();
        let values = self.executor.run(&given, &names)?;
        let named = self.outputs.iter().zip(values);
        named
            .map(|((name, dtype), value)| Ok((name.clone(), from_value(value, *dtype)?)))
            .collect()
    }
}
