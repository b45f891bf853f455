//! From layouts to kernels, memory and arguments.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::buffers::{BufferId, Buffers};
use super::emit::Emitter;
use super::memory::Memory;
use super::planned::{Bound, Planned};
use super::schedule::schedule;
use super::segment::{Segments, resolve};
use super::threads::{Access, barriers, is_conversion_worthwhile, is_worthwhile};
use super::types::Program;
use crate::backend::IoSpec;
use crate::backend::native::isa;
use crate::backend::native::kernels::{self, ConvGeometry, Kernel, KernelCtx, KernelError, Share};
use crate::backend::native::layout::{Geometry, dims4};
use crate::backend::native::plan::ALIGN;
use crate::backend::native::spec::{Kind, Operand, Operation};
use crate::graph::{Graph, Tensor, ValueId, affine};
use crate::space::{Candidate, Mapping};

/// A candidate for each subgraph.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'a>(pub &'a [Candidate]);

/// A choice that makes no program.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// A mapping does not apply.
    #[error("candidate of subgraph {subgraph} makes no kernel")]
    Kernel {
        /// Which one.
        subgraph: usize,
        /// Why.
        #[source]
        source: KernelError,
    },
    /// A conversion cannot be rendered.
    #[error("cannot convert between layouts")]
    Convert(#[source] KernelError),
    /// A mapping names no layout.
    #[error("candidate of subgraph {subgraph} has no usable `{parameter}`")]
    Layout {
        /// Which one.
        subgraph: usize,
        /// The parameter.
        parameter: &'static str,
    },
    /// A segment cannot run some rows at a time.
    #[error("segment `{segment}` cannot run row by row: {reason}")]
    Segment {
        /// Its subgraphs and rows.
        segment: String,
        /// Why.
        reason: String,
    },
    /// A value is read that nothing computes.
    #[error("value `{value}` is read before anything computes it")]
    NoValue {
        /// Its name.
        value: String,
    },
}

impl<'a> Choice<'a> {
    /// Returns the mapping of a subgraph.
    pub fn mapping(&self, subgraph: usize) -> &'a Mapping {
        &self.0[subgraph].mapping
    }
}

/// Assembles a program for one thread, of which each step runs as a whole.
///
/// # Errors
/// [`AssembleError`], naming the subgraph whose candidate does not apply.
pub fn assemble(
    ctx: KernelCtx<'_>,
    graph: &Graph,
    operations: &[Operation],
    choice: &Choice<'_>,
) -> Result<Program, AssembleError> {
    assemble_for(1, ctx, graph, operations, choice, &Segments::default())
}

/// Assembles a program for some threads, of which some parts run some rows at a time. Several threads
/// divide the work of kernels among them, except for those parts, which are left to one.
///
/// # Errors
/// [`AssembleError`], naming the subgraph or segment that does not apply.
pub fn assemble_for(
    threads: usize,
    ctx: KernelCtx<'_>,
    graph: &Graph,
    operations: &[Operation],
    choice: &Choice<'_>,
    segments: &Segments,
) -> Result<Program, AssembleError> {
    let mut schedule = schedule(graph, ctx.isa, operations, choice)?;
    let banded = resolve(segments, &mut schedule, operations, choice)?;
    let buffers = &schedule.buffers;
    let mut rendered = Vec::new();
    let mut is_divided = false;
    for (step, planned) in schedule.steps.iter().enumerate() {
        let is_banded = banded.iter().any(|banded| banded.steps.contains(&step));
        let share = if is_banded { Share::Rows } else { ctx.share };
        let ctx = KernelCtx { share, ..ctx };
        let is_shared = threads > 1 && !is_banded;
        rendered.push(match planned {
            Planned::Operation { idx, bound } => {
                let operation = &operations[*idx];
                let mapping = choice.mapping(operation.subgraph);
                let axes = axes(mapping.word("share"));
                let axes = (is_shared && is_worthwhile(graph, operation)).then_some(axes);
                let kernel = divided(ctx, axes, threads, |ctx| {
                    render(ctx, graph, operation, mapping, bound, buffers)
                });
                kernel.map_err(|source| AssembleError::Kernel {
                    subgraph: operation.subgraph,
                    source,
                })?
            }
            Planned::Convert { from, to } => {
                let value = buffers.all[to.0].value;
                let is_worthwhile = is_shared && is_conversion_worthwhile(graph, value);
                let kernel = divided(ctx, is_worthwhile.then_some(axes(None)), threads, |ctx| {
                    kernels::reorder(
                        ctx,
                        &buffers.geometry(*from),
                        &buffers.geometry(*to),
                        buffers.all[to.0].dtype.bytes(),
                    )
                });
                kernel.map_err(AssembleError::Convert)?
            }
        });
        let shares = rendered.last().and_then(|kernel: &Kernel| kernel.shares);
        is_divided |= is_shared && shares.is_some();
    }
    let in_turns: Vec<_> = banded.iter().map(|banded| banded.steps.clone()).collect();
    let memory = Memory::plan(buffers, &rendered, threads, &in_turns);
    let mut program = Program {
        isa: ctx.isa,
        features: features(ctx),
        kernels: BTreeMap::new(),
        steps: Vec::new(),
        threads: if is_divided { threads } else { 1 },
        arena_bytes: memory.len,
        fills: memory.fills.iter().copied().collect(),
        weights: Vec::new(),
        inputs: ports(graph, &graph.inputs),
        outputs: ports(graph, &graph.outputs),
        resolutions: resolutions(graph),
    };
    let constants = schedule.constants.iter().map(|tensor| tensor_bytes(tensor));
    let packed = rendered.iter().map(|kernel| kernel.weights.len());
    let padded = constants.chain(packed).map(|n| n.next_multiple_of(ALIGN));
    program.weights.reserve_exact(padded.sum());
    let constants = pack_constants(&schedule.constants, &mut program.weights);
    let mut weights = Vec::new();
    for kernel in &mut rendered {
        weights.push(program.weights.len());
        // They are there once: those of a large model fill the memory of a small machine.
        program.weights.append(&mut kernel.weights);
        kernel.weights = Vec::new();
        let padded = program.weights.len().next_multiple_of(ALIGN);
        program.weights.resize(padded, 0);
    }
    let emitter = Emitter {
        ctx,
        graph,
        operations,
        schedule: &schedule,
        rendered: &rendered,
        memory: &memory,
        constants: &constants,
        weights: &weights,
    };
    let mut step = 0;
    let mut accesses = Vec::new();
    while step < rendered.len() {
        if let Some(banded) = banded.iter().find(|banded| banded.steps.start == step) {
            emitter.banded(banded, &mut program)?;
            // Its windows move, so that it has the arena to itself.
            accesses.resize(program.steps.len(), Access::of_everything());
            step = banded.steps.end;
        } else {
            emitter.whole(step, &mut program);
            accesses.push(emitter.access(step));
            step += 1;
        }
    }
    if program.threads > 1 {
        for (step, has_barrier) in program.steps.iter_mut().zip(barriers(&accesses)) {
            step.has_barrier = has_barrier;
        }
    }
    Ok(program)
}

/// Returns the axes along which work is to be divided, the best first.
fn axes(word: Option<&str>) -> [Share; 2] {
    match word {
        Some("channels") => [Share::Channels, Share::Rows],
        _ => [Share::Rows, Share::Channels],
    }
}

/// Renders a kernel whose work can be divided among threads at once: along the first axis that has
/// something for all of them, or else for most. If there is none, or none is asked for, it is the
/// kernel of one thread.
fn divided(
    ctx: KernelCtx<'_>,
    axes: Option<[Share; 2]>,
    threads: usize,
    render: impl Fn(KernelCtx<'_>) -> Result<Kernel, KernelError>,
) -> Result<Kernel, KernelError> {
    let mut best: Option<(usize, Kernel)> = None;
    for share in axes.into_iter().flatten() {
        let kernel = render(KernelCtx { share, ..ctx })?;
        let units = kernel.shares.filter(|shares| shares.concurrent);
        let units = units.map_or(0, |shares| shares.n_ranges().min(threads));
        if units > best.as_ref().map_or(1, |(most, _)| *most) {
            best = Some((units, kernel));
        }
    }
    match best {
        Some((_, kernel)) => Ok(kernel),
        None => render(ctx),
    }
}

fn tensor_bytes(tensor: &Tensor) -> usize {
    tensor.data().len() * tensor.dtype().bytes()
}

/// Appends constants that are values of the graph; returns where each begins, in bytes.
fn pack_constants(constants: &[Arc<Tensor>], weights: &mut Vec<u8>) -> Vec<usize> {
    let mut offsets = Vec::new();
    for tensor in constants {
        offsets.push(weights.len());
        tensor.data().append_le_bytes(weights);
        weights.resize(weights.len().next_multiple_of(ALIGN), 0);
    }
    offsets
}

fn ports(graph: &Graph, values: &[ValueId]) -> Vec<IoSpec> {
    let port = |&id: &ValueId| {
        let value = graph.value(id);
        IoSpec {
            name: value.name.clone(),
            dtype: value.dtype,
            shape: value.shape.clone(),
        }
    };
    values.iter().map(port).collect()
}

/// Returns the scale of each output that is dequantised, and 0 for the others.
fn resolutions(graph: &Graph) -> Vec<f32> {
    let producers = graph.producers();
    let scale = |id: &ValueId| {
        let node = graph.node(producers[id.0]?);
        let scale = affine(graph, node)?.0;
        (node.op == "DequantizeLinear").then_some(scale)
    };
    let outputs = graph.outputs.iter();
    outputs.map(|id| scale(id).unwrap_or(0.0)).collect()
}

fn features(ctx: KernelCtx<'_>) -> BTreeSet<String> {
    isa::widest(ctx.isa)
        .features
        .split(',')
        .filter(|f| !f.is_empty())
        .map(str::to_owned)
        .collect()
}

fn render(
    ctx: KernelCtx<'_>,
    graph: &Graph,
    operation: &Operation,
    mapping: &Mapping,
    bound: &Bound,
    buffers: &Buffers,
) -> Result<Kernel, KernelError> {
    let geometry = |id: Option<BufferId>, value: ValueId| match id {
        Some(id) => buffers.geometry(id),
        None => Geometry::external(dims4(&graph.value(value).shape)),
    };
    let (x, y) = (
        geometry(bound.x, operation.x),
        geometry(bound.y, operation.y),
    );
    match &operation.kind {
        Kind::Conv(conv) | Kind::Depthwise(conv) => {
            let places = ConvGeometry {
                x,
                y,
                residual: bound.residual.map(|id| buffers.geometry(id)),
                x_is_exclusive: bound.x_is_exclusive,
            };
            if conv.quantized.is_some() {
                match operation.kind {
                    Kind::Conv(_) => kernels::qconv(ctx, conv, mapping, &places),
                    _ => kernels::qdepthwise(ctx, conv, mapping, &places),
                }
            } else if mapping.word("vector") == Some("width") {
                kernels::conv_width(ctx, conv, mapping, &places)
            } else if kernels::winograd_side(mapping).is_some() {
                kernels::winograd(ctx, conv, mapping, &places)
            } else if matches!(operation.kind, Kind::Conv(_)) {
                kernels::conv(ctx, conv, mapping, &places)
            } else {
                kernels::depthwise(ctx, conv, mapping, &places)
            }
        }
        Kind::Deconv(deconv) => kernels::deconv(ctx, deconv, mapping, x, y),
        Kind::Resample(resample) => {
            let element = graph.value(operation.y).dtype.bytes();
            kernels::resample(ctx, resample, &x, &y, element)
        }
        Kind::Concat(_) => {
            let inputs = bound.operands.iter().flatten();
            let inputs: Vec<Geometry> = inputs.map(|id| buffers.geometry(*id)).collect();
            let element = graph.value(operation.y).dtype.bytes();
            kernels::concat(ctx, &inputs, &y, element)
        }
        Kind::Dense(dense) if dense.quantized.is_some() => kernels::qdense(ctx, dense, mapping),
        Kind::Dense(dense) => kernels::dense(ctx, dense, mapping),
        Kind::MatMul(matmul) if matmul.quantized.is_some() => {
            kernels::qmatmul(ctx, matmul, mapping)
        }
        Kind::MatMul(matmul) => kernels::matmul(ctx, matmul, mapping),
        Kind::Pool(pool) => kernels::pool(ctx, pool, &x, &y),
        Kind::Map(map) => {
            let others = bound
                .operands
                .iter()
                .map(|id| id.map_or(x, |id| buffers.geometry(id)));
            let mut others: Vec<Geometry> = others.collect();
            for (other, operand) in others.iter_mut().zip(&map.operands) {
                if matches!(operand, Operand::Constant(_)) {
                    other.batch = 0;
                }
            }
            kernels::map(ctx, map, &x, &y, &others)
        }
        Kind::Table(table) => kernels::table(ctx, table, &x, &y),
        Kind::Loops(loops) => kernels::loops(ctx, loops),
        Kind::Alias => Err(KernelError::Unsupported(
            "an alias has no kernel".to_owned(),
        )),
    }
}
