//! The backend: templates, a compiler, and models prepared for both.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::build::{BuildError, Builder, Toolchain, ToolchainError};
use super::kernels::{KernelCtx, KernelError, Share};
use super::layout::Layout;
use super::lower::lower;
use super::program::{AssembleError, Choice, Program, assemble};
use super::render::Renderer;
use super::space::{Spaces, default_mapping};
use super::spec::{Kind, Operation};
use crate::backend::{Artifact, Backend, BackendError, Failure, Prepared};
use crate::device::Isa;
use crate::graph::{Graph, Partition, ValueId};
use crate::label::Outcome;
use crate::space::{Candidate, Mapping, SearchSpace};

/// Changes whenever the generator makes other code of the same templates; a test holds it to that.
pub(super) const GENERATOR: u32 = 2;

/// Name of the option that says how far kernels are optimised.
const OPT_LEVEL: &str = "opt-level";

/// Levels of it that are worth a try.
const OPT_LEVELS: std::ops::RangeInclusive<u8> = 1..=3;

/// What the native backend is opened with.
#[derive(Debug, Clone)]
pub struct NativeOptions {
    /// Instruction set that code is made for.
    pub isa: Isa,
    /// The Rust compiler.
    pub rustc: PathBuf,
    /// Directory for sources, objects and libraries.
    pub dir: PathBuf,
    /// Optimisation level of kernels, 1 to 3, under which candidates are compared.
    pub opt_level: u8,
    /// Longest time that one compiler call may take.
    pub timeout: Duration,
    /// Templates that replace shipped ones of the same name.
    pub templates: BTreeMap<String, String>,
}

/// Compiles models to Rust kernels.
#[derive(Debug)]
pub struct Native {
    engine: Arc<Engine>,
    generator: String,
    /// Levels that a deployment may be built at, first that of the search.
    options: Vec<Mapping>,
}

#[derive(Debug)]
struct Engine {
    isa: Isa,
    renderer: Renderer,
    spaces: Spaces,
    toolchain: String,
    /// By optimisation level: each has its objects in a directory of its own, so that none gets
    /// into a library of another level.
    builders: BTreeMap<u8, Builder>,
}

impl Native {
    /// Opens the backend.
    ///
    /// # Errors
    /// [`BackendError`] if there is no compiler, a template does not parse, or the directory
    /// cannot be made.
    pub fn open(options: &NativeOptions) -> Result<Self, BackendError> {
        let renderer = renderer(&options.templates)?;
        let spaces = Spaces::new(&options.templates).map_err(|e| templates(Box::new(e)))?;
        let toolchain = Toolchain::discover(&options.rustc)
            .map_err(|source| toolchain_error(&options.rustc, source))?;
        let generator = generator_version(&renderer);
        let others = OPT_LEVELS.rev().filter(|level| *level != options.opt_level);
        let levels: Vec<u8> = std::iter::once(options.opt_level).chain(others).collect();
        let mut builders = BTreeMap::new();
        for &level in &levels {
            let builder = Builder::open(toolchain.clone(), &options.dir, level, options.timeout);
            builders.insert(level, builder.map_err(build_error)?);
        }
        let engine = Arc::new(Engine {
            isa: options.isa,
            renderer,
            spaces,
            toolchain: toolchain.version,
            builders,
        });
        let levels = levels.into_iter().map(i64::from);
        Ok(Self {
            engine,
            generator,
            options: levels
                .map(|level| Mapping::default().with(OPT_LEVEL, level))
                .collect(),
        })
    }

    /// Returns the part of the version that does not depend on the compiler: equal ones make equal
    /// source of equal candidates. A lockfile keeps it beside the compiler's own version, so that
    /// a lock can be checked where there is no compiler, or another one.
    ///
    /// # Errors
    /// [`BackendError::Templates`] if a template does not parse.
    pub fn generator_version(templates: &BTreeMap<String, String>) -> Result<String, BackendError> {
        Ok(generator_version(&renderer(templates)?))
    }

    /// Assembles the program of a deployment, without compiling it.
    ///
    /// # Errors
    /// The outer error names what is not covered; the inner one blames a candidate.
    pub fn program(
        &self,
        graph: &Graph,
        partition: &Partition,
        candidates: Option<&[Candidate]>,
    ) -> Result<Result<Program, Failure>, BackendError> {
        let model = Model::new(&self.engine, graph, partition)?;
        let defaults: Vec<Candidate>;
        let candidates = if let Some(candidates) = candidates {
            candidates
        } else {
            let all = 0..partition.subgraphs.len();
            defaults = all.map(|idx| model.default_candidate(idx)).collect();
            &defaults
        };
        Ok(model.assemble(candidates))
    }
}

impl Engine {
    /// Returns what builds under some options.
    fn builder(&self, options: &Mapping) -> Option<&Builder> {
        let level = u8::try_from(options.int(OPT_LEVEL)?).ok()?;
        self.builders.get(&level)
    }
}

impl Backend for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn options(&self) -> &[Mapping] {
        &self.options
    }

    fn version(&self, options: &Mapping) -> String {
        let level = options.int(OPT_LEVEL).unwrap_or_default();
        format!("{}-{}-O{level}", self.generator, self.toolchain())
    }

    fn generator(&self) -> &str {
        &self.generator
    }

    fn toolchain(&self) -> &str {
        &self.engine.toolchain
    }

    fn prepare(
        &self,
        graph: &Graph,
        partition: &Partition,
    ) -> Result<Arc<dyn Prepared>, BackendError> {
        Ok(Arc::new(Model::new(&self.engine, graph, partition)?))
    }
}

fn renderer(overrides: &BTreeMap<String, String>) -> Result<Renderer, BackendError> {
    Renderer::new(overrides).map_err(|error| templates(Box::new(error)))
}

fn templates(source: Box<dyn std::error::Error + Send + Sync>) -> BackendError {
    BackendError::Templates {
        backend: "native".to_owned(),
        source,
    }
}

fn generator_version(renderer: &Renderer) -> String {
    format!("{GENERATOR}-{}", renderer.digest().short())
}

/// A lowered model.
struct Model {
    engine: Arc<Engine>,
    graph: Graph,
    operations: Vec<Operation>,
    /// By subgraph.
    spaces: Vec<Option<SearchSpace>>,
}

impl Model {
    fn new(
        engine: &Arc<Engine>,
        graph: &Graph,
        partition: &Partition,
    ) -> Result<Self, BackendError> {
        let operations = lower(graph, partition).map_err(|missing| BackendError::NotCovered {
            backend: "native".to_owned(),
            missing: missing.iter().map(ToString::to_string).collect(),
        })?;
        let mut spaces = vec![None; partition.subgraphs.len()];
        for operation in operations.iter().rev() {
            spaces[operation.subgraph] =
                engine
                    .spaces
                    .of(engine.isa, operation)
                    .map_err(|e| BackendError::Templates {
                        backend: "native".to_owned(),
                        source: Box::new(e),
                    })?;
        }
        Ok(Self {
            engine: Arc::clone(engine),
            graph: graph.clone(),
            operations,
            spaces,
        })
    }

    fn main_operation(&self, subgraph: usize) -> Option<&Operation> {
        self.operations
            .iter()
            .find(|operation| operation.subgraph == subgraph)
    }

    fn assemble(&self, candidates: &[Candidate]) -> Result<Program, Failure> {
        let ctx = KernelCtx {
            renderer: &self.engine.renderer,
            isa: self.engine.isa,
            share: Share::Whole,
        };
        assemble(ctx, &self.graph, &self.operations, &Choice(candidates)).map_err(|error| {
            let subgraph = match &error {
                AssembleError::Kernel { subgraph, .. } | AssembleError::Layout { subgraph, .. } => {
                    Some(*subgraph)
                }
                _ => None,
            };
            Failure {
                subgraph,
                outcome: Outcome::Unsupported,
                message: chain(&error),
            }
        })
    }
}

impl Prepared for Model {
    fn space(&self, subgraph: usize) -> Option<&SearchSpace> {
        self.spaces.get(subgraph).and_then(Option::as_ref)
    }

    fn default_candidate(&self, subgraph: usize) -> Candidate {
        let mapping = self
            .main_operation(subgraph)
            .map(|operation| default_mapping(self.engine.isa, operation))
            .unwrap_or_default();
        Candidate {
            mapping,
            ..Candidate::default()
        }
    }

    fn main_values(&self, subgraph: usize) -> Option<[ValueId; 2]> {
        let main = self.main_operation(subgraph)?;
        // Elementwise operations behind it have its layout.
        let behind = self.operations.iter().filter(|o| o.subgraph == subgraph);
        let keeps = |o: &&Operation| matches!(o.kind, Kind::Map(_) | Kind::Table(_));
        let y = behind
            .filter(keeps)
            .fold(main.y, |y, o| if o.x == y { o.y } else { y });
        Some([main.x, y])
    }

    fn layouts(&self, subgraph: usize, mapping: &Mapping) -> Option<[String; 2]> {
        match self.main_operation(subgraph)?.kind {
            Kind::Conv(_) | Kind::Depthwise(_) | Kind::Deconv(_) => {
                Some(["layout_in", "layout_out"].map(|name| {
                    mapping
                        .word(name)
                        .map_or_else(|| Layout::Nchw.to_string(), str::to_owned)
                }))
            }
            Kind::Dense(_) => Some([Layout::Flat.to_string(), Layout::Flat.to_string()]),
            Kind::Concat(_)
            | Kind::Resample(_)
            | Kind::Pool(_)
            | Kind::Map(_)
            | Kind::Table(_)
            | Kind::MatMul(_)
            | Kind::Loops(_)
            | Kind::Alias => None,
        }
    }

    fn build(
        &self,
        candidates: &[Candidate],
        options: &Mapping,
        jobs: usize,
    ) -> Result<Result<Artifact, Failure>, BackendError> {
        let started = std::time::Instant::now();
        let Some(builder) = self.engine.builder(options) else {
            return Ok(Err(Failure {
                subgraph: None,
                outcome: Outcome::Unsupported,
                message: format!("the native backend has no options `{options}`"),
            }));
        };
        let program = match self.assemble(candidates) {
            Ok(program) => program,
            Err(failure) => return Ok(Err(failure)),
        };
        if let Err(failure) = builder.compile(&program, jobs).map_err(build_error)? {
            return Ok(Err(failure));
        }
        let built = builder.link(&program).map_err(build_error)?;
        Ok(built.map(|artifact| Artifact {
            compile_ns: started.elapsed().as_nanos() as u64,
            ..artifact
        }))
    }

    fn discard(&self, artifact: &Artifact) {
        // What cannot be removed now goes with the directory.
        let _ = Builder::discard(artifact);
    }
}

fn chain(error: &AssembleError) -> String {
    match error {
        AssembleError::Kernel {
            source: KernelError::Unsupported(why),
            ..
        } => why.clone(),
        AssembleError::Kernel { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

fn build_error(error: BuildError) -> BackendError {
    match error {
        BuildError::Files(error) => BackendError::Files(error),
        BuildError::Spawn { ref rustc, .. } => BackendError::Toolchain {
            command: rustc.clone(),
            source: Box::new(error),
        },
    }
}

fn toolchain_error(rustc: &Path, source: ToolchainError) -> BackendError {
    BackendError::Toolchain {
        command: rustc.to_owned(),
        source: Box::new(source),
    }
}
