//! A model prepared for the backend: its operations, their spaces, and what builds it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::backend::{Engine, build_error};
use super::build::Builder;
use super::kernels::{KernelCtx, KernelError, Share};
use super::layout::Layout;
use super::lower::{NotCovered, lower, lower_plain};
use super::program::{
    AssembleError, Choice, ParseSegmentsError, Program, Segments, assemble_for, neighbours, propose,
};
use super::space::{default_mapping, shared};
use super::spec::{Kind, Operation};
use crate::backend::{Artifact, BackendError, Failure, Prepared};
use crate::device::Isa;
use crate::graph::{Graph, Partition, ValueId};
use crate::label::Outcome;
use crate::space::{Candidate, Mapping, SearchSpace};

/// Name of the option that says which subgraphs run together, some rows at a time.
pub(super) const SEGMENTS: &str = "segments";

/// Name of the option that says how many threads run the model, if those are fewer than the target
/// has.
pub(super) const THREADS: &str = "threads";

/// Bytes that a segment may keep at hand, and rows that its last step gives at a time, which are
/// worth a try: from parts of typical second-level caches to more than they hold.
const SEGMENTATIONS: [(usize, usize); 4] =
    [(512 << 10, 2), (1 << 20, 2), (2 << 20, 1), (4 << 20, 1)];

/// Segments with one other cut that are tried at a time: each is built and measured whole.
const MOST_MOVED: usize = 10;

/// A lowered model.
pub(super) struct Model {
    engine: Arc<Engine>,
    isa: Isa,
    threads: usize,
    graph: Graph,
    operations: Vec<Operation>,
    /// By subgraph.
    spaces: Vec<Option<SearchSpace>>,
}

impl Model {
    pub(super) fn new(
        engine: &Arc<Engine>,
        graph: &Graph,
        partition: &Partition,
    ) -> Result<Self, BackendError> {
        let operations = lower(graph, partition).map_err(|missing| not_covered(&missing))?;
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
            isa: engine.isa,
            threads: engine.threads,
            graph: graph.clone(),
            operations,
            spaces,
        })
    }

    /// Returns every node as plain loops, for any processor and one thread.
    pub(super) fn plain(engine: &Arc<Engine>, graph: &Graph) -> Result<Self, BackendError> {
        let operations = lower_plain(graph).map_err(|missing| not_covered(&missing))?;
        Ok(Self {
            engine: Arc::clone(engine),
            isa: Isa::Portable,
            threads: 1,
            graph: graph.clone(),
            operations,
            spaces: Vec::new(),
        })
    }

    fn main_operation(&self, subgraph: usize) -> Option<&Operation> {
        self.operations
            .iter()
            .find(|operation| operation.subgraph == subgraph)
    }

    pub(super) fn assemble(
        &self,
        candidates: &[Candidate],
        options: &Mapping,
    ) -> Result<Program, Failure> {
        let wrong = |message| Failure {
            subgraph: None,
            outcome: Outcome::Unsupported,
            message,
        };
        let segments = segments(options).map_err(wrong)?;
        let threads = threads(options, self.threads).map_err(wrong)?;
        let ctx = KernelCtx {
            renderer: &self.engine.renderer,
            isa: self.isa,
            share: Share::Whole,
        };
        let (graph, operations) = (&self.graph, &self.operations);
        let choice = Choice(candidates);
        let program = assemble_for(threads, ctx, graph, operations, &choice, &segments);
        program.map_err(|error| {
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

/// Returns how many threads options ask for, of those that the target has.
pub(super) fn threads(options: &Mapping, most: usize) -> Result<usize, String> {
    let Some(value) = options.0.get(THREADS) else {
        return Ok(most);
    };
    let threads = options.int(THREADS);
    let threads = threads.and_then(|threads| usize::try_from(threads).ok());
    threads
        .filter(|threads| (1..=most).contains(threads))
        .ok_or_else(|| format!("`{THREADS} = {value}` is not from 1 to {most}"))
}

/// Returns smaller numbers of threads that are worth a try: as few as can be, half as many, and one
/// less.
fn fewer(threads: usize) -> BTreeSet<usize> {
    let fewer = [1, threads / 2, threads - 1];
    let fewer = fewer
        .into_iter()
        .filter(|fewer| (1..threads).contains(fewer));
    fewer.collect()
}

/// Returns the segments that options ask for.
pub(super) fn segments(options: &Mapping) -> Result<Segments, String> {
    let text = options.word(SEGMENTS).unwrap_or_default();
    text.parse()
        .map_err(|error: ParseSegmentsError| error.to_string())
}

impl Model {
    /// Returns segments worth a try: of several sizes, or those of the options with other rows or
    /// one other cut.
    fn segments(&self, candidates: &[Candidate], options: &Mapping) -> Vec<Segments> {
        let (graph, operations, isa) = (&self.graph, &self.operations, self.isa);
        let choice = Choice(candidates);
        match segments(options) {
            Ok(known) if !known.0.is_empty() => {
                let moved = neighbours(graph, isa, operations, &choice, &known);
                let rows = [
                    known.with_rows(|rows| rows.div_ceil(2)),
                    known.with_rows(|rows| rows * 2),
                ];
                let moved = moved.unwrap_or_default().into_iter().take(MOST_MOVED);
                rows.into_iter().chain(moved).collect()
            }
            _ => {
                let proposed = SEGMENTATIONS
                    .iter()
                    .map(|&(bytes, rows)| propose(graph, isa, operations, &choice, bytes, rows));
                // What cannot be assembled is found out when it is built.
                proposed.filter_map(Result::ok).collect()
            }
        }
    }
}

impl Prepared for Model {
    fn space(&self, subgraph: usize) -> Option<&SearchSpace> {
        self.spaces.get(subgraph).and_then(Option::as_ref)
    }

    fn default_candidate(&self, subgraph: usize) -> Candidate {
        let mapping = self
            .main_operation(subgraph)
            .map(|operation| {
                let mapping = default_mapping(self.isa, operation);
                shared(self.threads, operation, mapping)
            })
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

    fn refinements(&self, candidates: &[Candidate], options: &Mapping) -> Vec<Mapping> {
        let mut found: Vec<Mapping> = Vec::new();
        // A program of which nothing can be divided runs on one thread, however many there are.
        let threads = match threads(options, self.threads) {
            Ok(2..) => self.assemble(candidates, options).map_or(1, |p| p.threads),
            _ => 1,
        };
        // What runs some rows at a time is done by one of several threads.
        if threads > 1 {
            for n in fewer(threads) {
                found.push(options.clone().with(THREADS, n as i64));
            }
            return found;
        }
        for segments in self.segments(candidates, options) {
            let refined = options
                .clone()
                .with(SEGMENTS, segments.to_string().as_str());
            if !segments.0.is_empty() && refined != *options && !found.contains(&refined) {
                found.push(refined);
            }
        }
        found
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
        // Weights are in memory once, however much is built at a time.
        let packing = self.engine.packing.lock();
        let program = match self.assemble(candidates, options) {
            Ok(program) => program,
            Err(failure) => return Ok(Err(failure)),
        };
        let packed = builder.pack(program).map_err(build_error)?;
        drop(packing);
        let built = builder.build(packed, jobs).map_err(build_error)?;
        Ok(built.map(|artifact| Artifact {
            compile_ns: started.elapsed().as_nanos() as u64,
            ..artifact
        }))
    }

    fn abandon(&self) {
        self.engine.builders.values().for_each(Builder::abandon);
    }

    fn make_room(&self, max_bytes: u64) -> u64 {
        let builder = self.engine.builders.values().next();
        builder.map_or(0, |builder| builder.make_room(max_bytes))
    }

    fn discard(&self, artifact: &Artifact) {
        // What cannot be removed now goes with the directory.
        let _ = Builder::discard(artifact);
    }
}

fn not_covered(missing: &[NotCovered]) -> BackendError {
    BackendError::NotCovered {
        backend: "native".to_owned(),
        missing: missing.iter().map(ToString::to_string).collect(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_threads_are_tried_down_to_one() {
        let check = |threads, expected: &[usize]| {
            let fewer: Vec<usize> = fewer(threads).into_iter().collect();
            assert_eq!(fewer, expected);
        };
        check(1, &[]);
        check(2, &[1]);
        check(3, &[1, 2]);
        check(8, &[1, 4, 7]);
    }

    #[test]
    fn options_name_no_more_threads_than_the_target_has() {
        let of = |n: i64| threads(&Mapping::default().with(THREADS, n), 3);
        assert_eq!(threads(&Mapping::default(), 3), Ok(3));
        assert_eq!((of(1), of(3)), (Ok(1), Ok(3)));
        for n in [-1, 0, 4] {
            let error = of(n).unwrap_err();
            assert!(error.contains(&format!("threads = {n}")), "{error}");
        }
    }
}
