//! From layouts to kernels, memory and arguments.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::buffers::{BufferId, Buffers, Holder};
use super::schedule::{Bound, Planned, schedule};
use super::types::{Arg, KernelSource, Program, Step};
use crate::backend::native::isa;
use crate::backend::native::kernels::{self, ConvGeometry, Kernel, KernelCtx, KernelError, Slot};
use crate::backend::native::layout::{Geometry, dims4};
use crate::backend::native::plan::{Buffer, plan};
use crate::backend::native::spec::{Kind, Operand, Operation};
use crate::backend::{IoSpec, Place, TraceSpec};
use crate::graph::{Graph, Tensor, ValueId};
use crate::space::{Candidate, Mapping};

/// Bytes that the weights of each kernel are aligned to.
const ALIGN: usize = 64;

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

/// Assembles a program.
///
/// # Errors
/// [`AssembleError`], naming the subgraph whose candidate does not apply.
pub fn assemble(
    ctx: KernelCtx<'_>,
    graph: &Graph,
    operations: &[Operation],
    choice: &Choice<'_>,
) -> Result<Program, AssembleError> {
    let (inputs, outputs) = (ports(graph, &graph.inputs), ports(graph, &graph.outputs));
    let schedule = schedule(graph, ctx.isa, operations, choice)?;
    let buffers = &schedule.buffers;
    let mut rendered = Vec::new();
    for planned in &schedule.steps {
        rendered.push(match planned {
            Planned::Operation { idx, bound } => {
                let operation = &operations[*idx];
                let mapping = choice.mapping(operation.subgraph);
                render(ctx, graph, operation, mapping, bound, buffers).map_err(|source| {
                    AssembleError::Kernel {
                        subgraph: operation.subgraph,
                        source,
                    }
                })?
            }
            Planned::Convert { from, to } => kernels::reorder(
                ctx,
                &buffers.geometry(*from),
                &buffers.geometry(*to),
                buffers.all[to.0].dtype.bytes(),
            )
            .map_err(AssembleError::Convert)?,
        });
    }
    let memory = Memory::plan(buffers, &rendered);
    let mut program = Program {
        isa: ctx.isa,
        features: features(ctx),
        kernels: BTreeMap::new(),
        steps: Vec::new(),
        arena_bytes: memory.len,
        weights: Vec::new(),
        inputs,
        outputs,
    };
    let constants = pack_constants(&schedule.constants, &mut program.weights);
    for (step, (planned, kernel)) in schedule.steps.iter().zip(rendered).enumerate() {
        let weights = program.weights.len();
        program.weights.extend_from_slice(&kernel.weights);
        let bind = Binder {
            graph,
            buffers,
            memory: &memory,
            constants: &constants,
            step,
            weights,
        };
        let step = match planned {
            Planned::Operation { idx, bound } => bind.operation(&operations[*idx], bound, &kernel),
            Planned::Convert { from, to } => bind.conversion(*from, *to, &kernel),
        };
        program
            .weights
            .resize(program.weights.len().next_multiple_of(ALIGN), 0);
        program
            .kernels
            .entry(kernel.symbol())
            .or_insert_with(|| KernelSource {
                digest: kernel.digest,
                parameters: kernel.parameter_types().collect(),
                subgraph: step.subgraph,
                source: kernel.source,
            });
        program.steps.push(step);
    }
    Ok(program)
}

/// Appends constants that are values of the graph; returns where each begins, in bytes.
fn pack_constants(constants: &[Arc<Tensor>], weights: &mut Vec<u8>) -> Vec<usize> {
    let mut offsets = Vec::new();
    for tensor in constants {
        offsets.push(weights.len());
        weights.extend(tensor.data().to_le_bytes());
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
            } else if matches!(operation.kind, Kind::Conv(_)) {
                kernels::conv(ctx, conv, mapping, &places)
            } else {
                kernels::depthwise(ctx, conv, mapping, &places)
            }
        }
        Kind::Deconv(deconv) => kernels::deconv(ctx, deconv, mapping, x, y),
        Kind::Resample(resample) => kernels::resample(ctx, resample, &x, &y),
        Kind::Concat(_) => {
            let inputs = bound.operands.iter().flatten();
            let inputs: Vec<Geometry> = inputs.map(|id| buffers.geometry(*id)).collect();
            kernels::concat(ctx, &inputs, &y)
        }
        Kind::Dense(dense) if dense.quantized.is_some() => kernels::qdense(ctx, dense, mapping),
        Kind::Dense(dense) => kernels::dense(ctx, dense, mapping),
        Kind::MatMul(matmul) if matmul.quantized.is_some() => kernels::qmatmul(ctx, matmul),
        Kind::MatMul(matmul) => kernels::matmul(ctx, matmul),
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
        Kind::Loops(loops) => kernels::loops(ctx, loops),
        Kind::Alias => Err(KernelError::Unsupported(
            "an alias has no kernel".to_owned(),
        )),
    }
}

/// Where everything lies in the arena.
struct Memory {
    /// Offset by value buffer.
    values: Vec<usize>,
    /// Offset of the scratch memory by step.
    scratch: BTreeMap<usize, usize>,
    zeros: usize,
    len: usize,
}

impl Memory {
    fn plan(buffers: &Buffers, kernels: &[Kernel]) -> Self {
        let mut wanted = Vec::new();
        let mut index = vec![None; buffers.all.len()];
        for (idx, buffer) in buffers.all.iter().enumerate() {
            if buffer.holder == Holder::Arena {
                index[idx] = Some(wanted.len());
                wanted.push(Buffer::of(
                    &buffers.geometry(BufferId(idx)),
                    buffer.dtype.bytes(),
                    buffer.first,
                    buffer.last,
                ));
            }
        }
        // A buffer that shares memory may need more padding than the one it shares with.
        for (idx, buffer) in buffers.all.iter().enumerate() {
            if let Holder::Same(root) = buffer.holder
                && let Some(root) = index[root.0]
            {
                let len: &mut usize = &mut wanted[root].len;
                let bytes = buffers.geometry(BufferId(idx)).len * buffer.dtype.bytes();
                *len = (*len).max(bytes);
                index[idx] = Some(root);
            }
        }
        let mut zeros_len = 0;
        let mut scratch_of = BTreeMap::new();
        for (step, kernel) in kernels.iter().enumerate() {
            for slot in &kernel.slots {
                let bytes = match *slot {
                    Slot::Scratch(len) => len * size_of::<f32>(),
                    Slot::Room(bytes) => bytes,
                    Slot::Zeros(len) => {
                        zeros_len = zeros_len.max(len * size_of::<f32>());
                        continue;
                    }
                    _ => continue,
                };
                scratch_of.insert(step, wanted.len());
                wanted.push(Buffer {
                    len: bytes,
                    bordered: None,
                    first: step,
                    last: step,
                });
            }
        }
        let plan = plan(&wanted);
        Self {
            values: index
                .iter()
                .map(|idx| idx.map_or(0, |idx| plan.offsets[idx]))
                .collect(),
            scratch: scratch_of
                .iter()
                .map(|(&step, &idx)| (step, plan.offsets[idx]))
                .collect(),
            zeros: plan.len,
            // Memory of no bytes cannot be allocated.
            len: (plan.len + zeros_len.next_multiple_of(ALIGN)).max(ALIGN),
        }
    }
}

/// Resolves the arguments of one step.
struct Binder<'a> {
    graph: &'a Graph,
    buffers: &'a Buffers,
    memory: &'a Memory,
    constants: &'a [usize],
    step: usize,
    weights: usize,
}

impl Binder<'_> {
    fn pointer(&self, id: Option<BufferId>) -> Arg {
        let Some(id) = id else { return Arg::Arena(0) };
        match self.buffers.all[id.0].holder {
            Holder::Input(idx) => Arg::Input(idx),
            Holder::Output(idx) => Arg::Output(idx),
            Holder::Constant(idx) => Arg::Weights(self.constants[idx]),
            Holder::Arena | Holder::Same(_) => {
                let origin = self.buffers.geometry(id).origin();
                let element = self.buffers.all[id.0].dtype.bytes();
                Arg::Arena(self.memory.values[id.0] + origin * element)
            }
        }
    }

    fn operation(&self, operation: &Operation, bound: &Bound, kernel: &Kernel) -> Step {
        let mut args = Vec::new();
        for slot in &kernel.slots {
            args.push(match *slot {
                Slot::Input => self.pointer(bound.x),
                Slot::Output => self.pointer(bound.y),
                Slot::Weights => Arg::Weights(self.weights),
                Slot::Residual => self.pointer(bound.residual),
                Slot::Scale => self.pointer(bound.scale),
                Slot::Pooled => self.pointer(bound.pooled),
                Slot::Scratch(_) | Slot::Room(_) => Arg::Arena(self.memory.scratch[&self.step]),
                Slot::Zeros(_) => Arg::Arena(self.memory.zeros),
                Slot::Operand(idx) | Slot::Source(idx) => {
                    self.pointer(bound.operands.get(idx).copied().flatten())
                }
                Slot::Result(idx) => self.pointer(bound.results.get(idx).copied()),
                Slot::Constant(at) | Slot::Bytes(at) => Arg::Weights(self.weights + at),
            });
        }
        let made = bound.results.iter().copied();
        let made = [bound.y, bound.pooled].into_iter().flatten().chain(made);
        let traces = made.map(|id| self.trace(id));
        Step {
            name: operation.name.clone(),
            symbol: kernel.symbol(),
            args,
            subgraph: Some(operation.subgraph),
            conversion: None,
            traces: traces.collect(),
        }
    }

    fn conversion(&self, from: BufferId, to: BufferId, kernel: &Kernel) -> Step {
        let (source, target) = (&self.buffers.all[from.0], &self.buffers.all[to.0]);
        let [n, c, h, w] = source.dims;
        let what = format!("{}→{} {n}x{c}x{h}x{w}", source.layout, target.layout);
        Step {
            name: what.clone(),
            symbol: kernel.symbol(),
            args: vec![self.pointer(Some(from)), self.pointer(Some(to))],
            subgraph: None,
            conversion: Some(what),
            traces: vec![self.trace(to)],
        }
    }

    fn trace(&self, id: BufferId) -> TraceSpec {
        let buffer = &self.buffers.all[id.0];
        let (place, offset) = match buffer.holder {
            Holder::Output(idx) => (Place::Output(idx), 0),
            _ => (
                Place::Arena,
                self.memory.values[id.0] / buffer.dtype.bytes(),
            ),
        };
        TraceSpec {
            value: self.graph.value(buffer.value).name.clone(),
            place,
            dtype: buffer.dtype,
            view: self.buffers.geometry(id).view(offset),
        }
    }
}
