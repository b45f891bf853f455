//! Reference execution: what every value of a model should be.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rten::ThreadPool;

use super::error::{Error, Problem};
use super::executor::{Executor, from_value, single_thread};
use super::load::{LoadOptions, LoadedModel, load};
use crate::graph::{DType, Graph, Tensor};

/// Runs a model as its file says, before any rewrite, on one thread.
///
/// Any value of the canonical graph can be asked for. The few that rewriting made, such as the
/// pooled value between a mean over `[h, w]` and its flattening, come from the canonical graph.
pub struct Reference {
    model: LoadedModel,
    source: Executor,
    canonical: OnceLock<Executor>,
    threads: Arc<ThreadPool>,
}

impl Reference {
    /// Loads a model for reference execution.
    ///
    /// # Errors
    /// As [`load`], and if the executor does not know an operator.
    pub fn load(path: &Path, options: &LoadOptions) -> Result<Self, Error> {
        Self::new(load(path, options)?)
    }

    /// Prepares a loaded model for reference execution.
    ///
    /// # Errors
    /// If the executor does not know an operator.
    pub fn new(model: LoadedModel) -> Result<Self, Error> {
        let threads = single_thread();
        let source = Executor::new(&model.source, Arc::clone(&threads))
            .map_err(|problem| problem.at(&model.path))?;
        Ok(Self {
            model,
            source,
            canonical: OnceLock::new(),
            threads,
        })
    }

    /// Returns the model.
    pub fn model(&self) -> &LoadedModel {
        &self.model
    }

    /// Runs the model and returns the wanted values by name.
    ///
    /// `inputs` has every input of the model. The same inputs give the same bits.
    ///
    /// # Errors
    /// If an input is missing or has another type or shape, if there is no value of a wanted name,
    /// or if the executor fails.
    pub fn run(
        &self,
        inputs: &BTreeMap<String, Tensor>,
        wanted: &[&str],
    ) -> Result<BTreeMap<String, Tensor>, Error> {
        self.values(inputs, wanted)
            .map_err(|problem| problem.at(&self.model.path))
    }

    /// Runs the model and returns every value of the canonical graph that is not a constant:
    /// inputs, intermediate values and outputs.
    ///
    /// # Errors
    /// As [`Reference::run`].
    pub fn trace(
        &self,
        inputs: &BTreeMap<String, Tensor>,
    ) -> Result<BTreeMap<String, Tensor>, Error> {
        let open = self
            .model
            .graph
            .values
            .iter()
            .filter(|value| value.data.is_none());
        let names: Vec<&str> = open.map(|value| value.name.as_str()).collect();
        self.run(inputs, &names)
    }

    fn values(
        &self,
        inputs: &BTreeMap<String, Tensor>,
        wanted: &[&str],
    ) -> Result<BTreeMap<String, Tensor>, Problem> {
        let source = Names::of(&self.model.source);
        let canonical = Names::of(&self.model.graph);
        let mut given = Vec::new();
        for &id in &self.model.source.inputs {
            let value = self.model.source.value(id);
            let tensor = inputs
                .get(&value.name)
                .filter(|tensor| tensor.dtype() == value.dtype && *tensor.shape() == value.shape);
            let tensor = tensor.ok_or_else(|| Problem::InputValue {
                input: value.name.clone(),
                dtype: value.dtype,
                shape: value.shape.clone(),
            })?;
            given.push((value.name.as_str(), tensor));
        }
        let mut results = BTreeMap::new();
        let (mut direct, mut derived) = (Vec::new(), Vec::new());
        for &name in wanted {
            let known = source.0.get(name).or_else(|| canonical.0.get(name));
            let value = known.ok_or_else(|| Problem::UnknownValue(name.to_owned()))?;
            let ready = value.data.as_deref().or_else(|| inputs.get(name));
            if let Some(tensor) = ready {
                results.insert(name.to_owned(), tensor.clone());
            } else if source.0.contains_key(name) {
                direct.push((name, value.dtype));
            } else {
                derived.push((name, value.dtype));
            }
        }
        collect(&self.source, &given, &direct, &mut results)?;
        if !derived.is_empty() {
            collect(self.canonical()?, &given, &derived, &mut results)?;
        }
        Ok(results)
    }

    fn canonical(&self) -> Result<&Executor, Problem> {
        if let Some(executor) = self.canonical.get() {
            return Ok(executor);
        }
        let executor = Executor::new(&self.model.graph, Arc::clone(&self.threads))?;
        Ok(self.canonical.get_or_init(|| executor))
    }
}

/// The values of a graph by name.
struct Names<'a>(BTreeMap<&'a str, &'a crate::graph::Value>);

impl<'a> Names<'a> {
    fn of(graph: &'a Graph) -> Self {
        let pairs = graph
            .values
            .iter()
            .map(|value| (value.name.as_str(), value));
        Self(pairs.collect())
    }
}

fn collect(
    executor: &Executor,
    given: &[(&str, &Tensor)],
    wanted: &[(&str, DType)],
    results: &mut BTreeMap<String, Tensor>,
) -> Result<(), Problem> {
    let names: Vec<&str> = wanted.iter().map(|(name, _)| *name).collect();
    let values = executor.run(given, &names)?;
    for ((name, dtype), value) in wanted.iter().zip(values) {
        results.insert((*name).to_owned(), from_value(value, *dtype)?);
    }
    Ok(())
}
