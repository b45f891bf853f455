//! The backend: templates, a compiler, and models prepared for both.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::build::{BuildError, Builder, Toolchain, ToolchainError};
use super::model::{Model, SEGMENTS, THREADS, segments, threads};
use super::program::Program;
use super::render::Renderer;
use super::space::Spaces;
use crate::backend::{Backend, BackendError, Failure, Prepared};
use crate::device::Isa;
use crate::graph::{Graph, Partition};
use crate::space::{Candidate, Mapping};

/// Changes whenever the generator makes other code of the same templates; a test holds it to that.
pub(super) const GENERATOR: u32 = 4;

/// Name of the option that says how far kernels are optimised.
const OPT_LEVEL: &str = "opt-level";

/// Levels of it that are worth a try.
const OPT_LEVELS: std::ops::RangeInclusive<u8> = 1..=3;

/// What the native backend is opened with.
#[derive(Debug, Clone)]
pub struct NativeOptions {
    /// Instruction set that code is made for.
    pub isa: Isa,
    /// Threads that run a model together; at least 1.
    pub threads: usize,
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
pub(super) struct Engine {
    pub(super) isa: Isa,
    /// Threads that run a model together.
    pub(super) threads: usize,
    pub(super) renderer: Renderer,
    pub(super) spaces: Spaces,
    pub(super) toolchain: String,
    /// By optimisation level: each has its objects in a directory of its own, so that none gets
    /// into a library of another level.
    pub(super) builders: BTreeMap<u8, Builder>,
    /// Held by whoever packs weights: those of one deployment at a time are in memory.
    pub(super) packing: Mutex<()>,
}

impl Native {
    /// Opens the backend.
    ///
    /// # Errors
    /// [`BackendError`] if there is no compiler, a template does not parse, or the directory
    /// cannot be made.
    pub fn open(options: &NativeOptions) -> Result<Self, BackendError> {
        let renderer = renderer(&options.templates)?;
        let spaces =
            Spaces::new(&options.templates, options.threads).map_err(|e| templates(Box::new(e)))?;
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
            threads: options.threads.max(1),
            renderer,
            spaces,
            toolchain: toolchain.version,
            builders,
            packing: Mutex::new(()),
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
        options: &Mapping,
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
        Ok(model.assemble(candidates, options))
    }
}

impl Engine {
    /// Returns what builds under some options.
    pub(super) fn builder(&self, options: &Mapping) -> Option<&Builder> {
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

    fn accepts(&self, options: &Mapping) -> bool {
        let level = options.int(OPT_LEVEL);
        let known = self
            .options
            .iter()
            .any(|known| known.int(OPT_LEVEL) == level);
        known && segments(options).is_ok() && threads(options, self.engine.threads).is_ok()
    }

    fn version(&self, options: &Mapping) -> String {
        let level = options.int(OPT_LEVEL).unwrap_or_default();
        let segments = options
            .word(SEGMENTS)
            .map(|segments| format!("-{segments}"));
        let segments = segments.unwrap_or_default();
        let threads = options.int(THREADS).map(|threads| format!("-{threads}t"));
        let threads = threads.unwrap_or_default();
        let Self { generator, .. } = self;
        format!(
            "{generator}-{}-O{level}{threads}{segments}",
            self.toolchain()
        )
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

    fn prepare_plain(&self, graph: &Graph) -> Result<Arc<dyn Prepared>, BackendError> {
        Ok(Arc::new(Model::plain(&self.engine, graph)?))
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

pub(super) fn build_error(error: BuildError) -> BackendError {
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
