//! One model on one target: what there is to tune.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Error, OpenBackend, Request, ledger};
use crate::backend::native::{Native, NativeOptions};
use crate::backend::{Backend, BackendError, Prepared};
use crate::calibrate::ModelSamples;
use crate::config::Model;
use crate::device::Target;
use crate::digest::{Digest, Encoder};
use crate::fsx;
use crate::graph::{Digests, Graph, Partition, canonicalize, partition};
use crate::label::TaskKey;
use crate::lock::{Basis, Current, DeploymentKey};
use crate::onnx::{self, LoadOptions, LoadedModel};
use crate::space::{Candidate, Mapping};

/// Optimisation level of kernels while they are searched. Levels 1 to 3 are close to each other, as
/// kernels are unrolled in their source, so that they need not be searched together: the finals
/// compare them.
const OPT_LEVEL: u8 = 2;

/// A model that is loaded and cut into subgraphs.
#[derive(Debug)]
pub(super) struct Source {
    /// As loaded; the reference executor runs it.
    pub(super) loaded: LoadedModel,
    /// Its subgraphs.
    pub(super) partition: Partition,
    /// Digests of the subgraphs, in order.
    pub(super) subgraphs: Vec<Digests>,
    /// Digests of the whole.
    pub(super) whole: Digests,
    /// Digest of the file.
    pub(super) file: Digest,
    /// Whether it is a variant of what the file has.
    pub(super) is_variant: bool,
    /// What its variants are judged by, if there are samples.
    pub(super) basis: Option<Basis>,
    /// The samples themselves.
    pub(super) samples: Option<Arc<ModelSamples>>,
}

/// A model on a target.
pub(super) struct Job<'a> {
    /// The model.
    pub(super) model: &'a Model,
    /// The target.
    pub(super) target: &'a Target,
    /// What was loaded.
    pub(super) source: &'a Source,
    /// The compiler.
    pub(super) backend: Arc<dyn Backend>,
    /// The model, ready to be built.
    pub(super) prepared: Arc<dyn Prepared>,
    /// Different subgraphs.
    pub(super) tasks: Vec<Task>,
    /// By subgraph: its task.
    pub(super) task_of: Vec<usize>,
}

/// Everything that is chosen for a whole model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Choices {
    /// By subgraph.
    pub(super) candidates: Vec<Candidate>,
    /// For the whole, of those that the backend has.
    pub(super) options: Mapping,
}

/// Subgraphs that are equal in structure: what is tuned once.
#[derive(Debug)]
pub(super) struct Task {
    /// Under what its labels are kept.
    pub(super) key: TaskKey,
    /// The subgraphs, in order.
    pub(super) occurrences: Vec<usize>,
}

impl Source {
    /// Loads a model.
    ///
    /// # Errors
    /// [`Error::Model`] says what is wrong with the file.
    pub(super) fn load(model: &Model) -> Result<Self, Error> {
        let input_shapes = model.inputs.iter();
        let input_shapes = input_shapes.map(|(name, shape)| (name.clone(), shape.0.clone()));
        let options = LoadOptions {
            input_shapes: input_shapes.collect(),
        };
        let loaded = onnx::load(&model.path, &options).map_err(|source| Error::Model {
            model: model.name.clone(),
            source: Box::new(source),
        })?;
        let file = Digest::of_bytes("metainfer file v1", &fsx::read(&model.path)?);
        let samples = ModelSamples::read(&model.samples, &model.accept, &loaded.graph);
        let samples = samples.map_err(|source| Error::Samples {
            model: model.name.clone(),
            source,
        })?;
        Ok(Self {
            basis: samples.as_ref().map(ModelSamples::basis),
            samples: samples.map(Arc::new),
            ..Self::of(loaded, file)
        })
    }

    /// Returns another graph as a model in the place of this one, e.g. a variant of it.
    pub(super) fn like(&self, graph: Graph) -> Self {
        let loaded = LoadedModel {
            path: self.loaded.path.clone(),
            graph: canonicalize(graph.clone()),
            source: graph,
        };
        Self {
            is_variant: true,
            basis: self.basis.clone(),
            ..Self::of(loaded, self.file)
        }
    }

    /// Returns a graph that is canonical already in the place of the model.
    pub(super) fn canonical(&self, graph: Graph) -> Self {
        let loaded = LoadedModel {
            path: self.loaded.path.clone(),
            source: graph.clone(),
            graph,
        };
        Self {
            is_variant: true,
            basis: self.basis.clone(),
            ..Self::of(loaded, self.file)
        }
    }

    fn of(loaded: LoadedModel, file: Digest) -> Self {
        let partition = partition(&loaded.graph);
        let digests = |subgraph: &crate::graph::Subgraph| subgraph.digests(&loaded.graph);
        let subgraphs = partition.subgraphs.iter().map(digests).collect();
        let whole = loaded.graph.digests();
        Self {
            loaded,
            partition,
            subgraphs,
            whole,
            file,
            is_variant: false,
            basis: None,
            samples: None,
        }
    }

    /// Returns how far the outputs of a whole may be from the reference's.
    pub(super) fn tolerance(&self) -> f64 {
        let rounds = |node: &crate::graph::Node| node.op == "QuantizeLinear";
        if self.graph().nodes.iter().any(rounds) {
            ledger::ROUNDED_TOLERANCE
        } else {
            ledger::TOLERANCE
        }
    }

    /// Returns the canonical graph.
    pub(super) fn graph(&self) -> &Graph {
        &self.loaded.graph
    }
}

impl<'a> Job<'a> {
    /// Prepares a model for a target.
    ///
    /// # Errors
    /// If the backend does not cover the model or cannot work here.
    pub(super) fn new(
        request: &Request,
        model: &'a Model,
        target: &'a Target,
        source: &'a Source,
        open_backend: &OpenBackend<'_>,
    ) -> Result<Self, Error> {
        let failed = |source| Error::Backend {
            model: model.name.clone(),
            target: target.name.clone(),
            source,
        };
        let backend = open_backend(request, target).map_err(failed)?;
        let prepared = backend
            .prepare(source.graph(), &source.partition)
            .map_err(failed)?;
        let mut tasks: Vec<Task> = Vec::new();
        let mut task_of = Vec::new();
        for (idx, digests) in source.subgraphs.iter().enumerate() {
            let known = tasks
                .iter()
                .position(|task| task.key.structure == digests.structure);
            let task = known.unwrap_or_else(|| {
                let key = key(
                    backend.as_ref(),
                    target,
                    digests.structure,
                    &backend.default_options(),
                );
                tasks.push(Task {
                    key,
                    occurrences: Vec::new(),
                });
                tasks.len() - 1
            });
            tasks[task].occurrences.push(idx);
            task_of.push(task);
        }
        Ok(Self {
            model,
            target,
            source,
            backend,
            prepared,
            tasks,
            task_of,
        })
    }

    /// Returns the key under which a lockfile has its deployment.
    pub(super) fn key(&self) -> DeploymentKey {
        DeploymentKey {
            model: self.model.name.clone(),
            target: self.target.name.clone(),
        }
    }

    /// Returns the key under which the evaluations of this adaptation are counted.
    pub(super) fn adaptation(&self) -> Digest {
        let mut encoder = Encoder::new("metainfer adaptation v1");
        encoder.digest(&self.source.whole.structure);
        encoder.digest(&self.target.profile.fingerprint());
        encoder.str(self.backend.name());
        encoder.str(&self.backend.version(&self.options()));
        encoder.u64(self.target.threads.into());
        encoder.finish()
    }

    /// Returns under what labels of a task are kept that were measured under some options.
    pub(super) fn task_key(&self, task: usize, options: &Mapping) -> TaskKey {
        let structure = self.tasks[task].key.structure;
        key(self.backend.as_ref(), self.target, structure, options)
    }

    /// Returns the task key of something else that is timed in the chain, such as a conversion.
    pub(super) fn side_key(&self, what: &str, options: &Mapping) -> TaskKey {
        let structure = Digest::of_bytes("metainfer side task v1", what.as_bytes());
        key(self.backend.as_ref(), self.target, structure, options)
    }

    /// Returns under what the labels of its tasks are kept.
    pub(super) fn keys(&self) -> Vec<Digest> {
        self.tasks.iter().map(|task| task.key.digest()).collect()
    }

    /// Returns the name of the model, and which of its variants it is.
    pub(super) fn title(&self) -> String {
        let name = &self.model.name;
        if self.source.is_variant {
            format!("{name}.{}", self.source.whole.content.short())
        } else {
            name.clone()
        }
    }

    /// Returns the options that candidates are searched under.
    pub(super) fn options(&self) -> Mapping {
        self.backend.default_options()
    }

    /// Returns candidates under the options of the search.
    pub(super) fn choices(&self, candidates: Vec<Candidate>) -> Choices {
        Choices {
            candidates,
            options: self.options(),
        }
    }

    /// Returns the untuned default of every subgraph.
    pub(super) fn defaults(&self) -> Vec<Candidate> {
        (0..self.task_of.len())
            .map(|idx| self.prepared.default_candidate(idx))
            .collect()
    }

    /// Returns what a deployment would rest on if it were made now.
    pub(super) fn current(&self) -> Current {
        let profile = &self.target.profile;
        Current {
            structure: self.source.whole.structure,
            content: self.source.whole.content,
            subgraphs: self
                .source
                .subgraphs
                .iter()
                .map(|digests| digests.structure)
                .collect(),
            profile: self.target.profile_name.clone(),
            isa: profile.isa,
            processor: profile.processor.clone(),
            device: profile.fingerprint(),
            backend: self.backend.name().to_owned(),
            backend_version: self.backend.generator().to_owned(),
            threads: self.target.threads,
            objective: self.model.objective,
            basis: self.source.basis.clone(),
        }
    }

    /// Returns the path of its file of reference values.
    pub(super) fn reference(&self, request: &Request) -> std::path::PathBuf {
        let file = format!("reference-{}.safetensors", request.search.seed);
        self.scratch(request).join(file)
    }

    /// Returns the directory for files of this model.
    pub(super) fn scratch(&self, request: &Request) -> std::path::PathBuf {
        let dir: &Path = &request.scratch;
        dir.join("models").join(self.source.whole.content.short())
    }
}

/// Opens the native backend for a target.
///
/// # Errors
/// [`BackendError`] if there is no compiler or its directory cannot be used.
pub fn open_native(request: &Request, target: &Target) -> Result<Arc<dyn Backend>, BackendError> {
    let native = Native::open(&NativeOptions {
        isa: target.profile.isa,
        threads: target.threads as usize,
        rustc: request.rustc.clone(),
        dir: request.scratch.join("native"),
        opt_level: OPT_LEVEL,
        timeout: request.timeouts.compile_timeout,
        templates: BTreeMap::new(),
    })?;
    Ok(Arc::new(native))
}

fn key(backend: &dyn Backend, target: &Target, structure: Digest, options: &Mapping) -> TaskKey {
    TaskKey {
        structure,
        device: target.profile.fingerprint(),
        backend: backend.name().to_owned(),
        backend_version: backend.version(options),
        threads: target.threads,
    }
}
