//! The order of steps, with the conversions that the chosen layouts need.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::assemble::{AssembleError, Choice};
use super::buffers::{BufferId, Buffers, Holder, Want};
use super::planned::{Bound, Planned};
use super::readers::{read_dense, readers};
use crate::backend::native::isa;
use crate::backend::native::kernels::{conv_margins, deconv_margins};
use crate::backend::native::layout::{Border, Layout, dims4, is_flat};
use crate::backend::native::spec::{Concat, Conv, Deconv, Kind, Map, Operand, Operation, Source};
use crate::device::Isa;
use crate::graph::{Graph, Tensor, ValueId};
use crate::space::Mapping;

/// Steps and buffers.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    pub(super) steps: Vec<Planned>,
    pub(super) buffers: Buffers,
    pub(super) constants: Vec<Arc<Tensor>>,
}

/// Orders the steps.
pub(super) fn schedule(
    graph: &Graph,
    isa: Isa,
    operations: &[Operation],
    choice: &Choice<'_>,
) -> Result<Schedule, AssembleError> {
    let mut scheduler = Scheduler {
        graph,
        isa,
        readers: readers(graph, operations),
        read_dense: read_dense(graph, operations),
        out: Schedule::default(),
    };
    for (idx, &input) in graph.inputs.iter().enumerate() {
        scheduler
            .out
            .buffers
            .add(graph, input, Layout::Nchw, Holder::Input(idx), 0);
    }
    for (idx, operation) in operations.iter().enumerate() {
        let bound = scheduler.bind(operation, choice.mapping(operation.subgraph))?;
        if let Some(bound) = bound {
            scheduler.out.steps.push(Planned::Operation { idx, bound });
        }
    }
    for (idx, &output) in graph.outputs.iter().enumerate() {
        scheduler.publish(idx, output)?;
    }
    Ok(scheduler.out)
}

struct Scheduler<'a> {
    graph: &'a Graph,
    isa: Isa,
    /// How often each value is read, outputs of the model included.
    readers: BTreeMap<ValueId, usize>,
    /// The values that are read as dense rows only.
    read_dense: BTreeSet<ValueId>,
    out: Schedule,
}

impl Scheduler<'_> {
    fn step(&self) -> usize {
        self.out.steps.len()
    }

    /// Returns a copy of the value that serves, converting if there is none.
    fn want(&mut self, value: ValueId, want: Want) -> Result<BufferId, AssembleError> {
        if let Some(id) = self.out.buffers.find(value, want) {
            return Ok(id);
        }
        let from = self.home(value)?;
        if let Some(id) = self.out.buffers.find(value, want) {
            return Ok(id);
        }
        let layout = Buffers::layout_for(self.graph, value, want);
        let step = self.step();
        let to = self
            .out
            .buffers
            .add(self.graph, value, layout, Holder::Arena, step);
        if let Want::Layout(_, border) = want {
            self.out.buffers.all[to.0].border = border;
        }
        self.out.buffers.all[to.0].exact = matches!(want, Want::Dense);
        self.out.buffers.read(from, step);
        self.out.steps.push(Planned::Convert { from, to });
        Ok(to)
    }

    /// Returns the copy of a value that was made first; that of a constant is made here.
    fn home(&mut self, value: ValueId) -> Result<BufferId, AssembleError> {
        if let Some(id) = self.out.buffers.home(value) {
            return Ok(id);
        }
        let known = self.graph.value(value);
        let Some(data) = &known.data else {
            return Err(AssembleError::NoValue {
                value: known.name.clone(),
            });
        };
        let holder = Holder::Constant(self.out.constants.len());
        self.out.constants.push(Arc::clone(data));
        let graph = self.graph;
        Ok(self.out.buffers.add(graph, value, Layout::Nchw, holder, 0))
    }

    fn flat(&mut self, value: ValueId) -> Result<BufferId, AssembleError> {
        self.want(value, Want::Layout(Layout::Flat, Border::default()))
    }

    /// Finds or makes the buffers of an operation; `None` if it needs no step.
    fn bind(
        &mut self,
        operation: &Operation,
        mapping: &Mapping,
    ) -> Result<Option<Bound>, AssembleError> {
        let mut bound = Bound::default();
        let output = match &operation.kind {
            Kind::Conv(conv) | Kind::Depthwise(conv) => {
                self.bind_conv(operation, conv, mapping, &mut bound)?
            }
            Kind::Deconv(deconv) => Some(self.bind_deconv(operation, deconv, mapping, &mut bound)?),
            Kind::Resample(_) | Kind::Table(_) => {
                let x = self.want(operation.x, Want::Any)?;
                bound.x = Some(x);
                Some(self.out.buffers.all[x.0].layout)
            }
            Kind::Concat(concat) => Some(self.bind_concat(concat, &mut bound)?),
            Kind::Dense(dense) => {
                bound.x = Some(self.flat(operation.x)?);
                bound.residual = dense.residual.map(|value| self.flat(value)).transpose()?;
                Some(Layout::Flat)
            }
            Kind::Pool(pool) => {
                let lanes = isa::widest(self.isa).lanes;
                let is_plain = pool.epilogue.is_empty() && pool.bytes == [None, None];
                let want = if is_plain {
                    Want::Any
                } else {
                    Want::Vectors(lanes, Layout::Blocked(lanes.max(8)))
                };
                let x = self.want(operation.x, want)?;
                bound.x = Some(x);
                Some(self.out.buffers.all[x.0].layout)
            }
            Kind::Map(map) => Some(self.bind_map(operation, map, &mut bound)?),
            Kind::Loops(loops) => {
                return self.bind_loops(&loops.inputs, &loops.outputs).map(Some);
            }
            Kind::MatMul(matmul) => {
                return self
                    .bind_loops(&matmul.operands, &[matmul.output])
                    .map(Some);
            }
            Kind::Alias => {
                self.alias(operation)?;
                return Ok(None);
            }
        };
        let step = self.step();
        if let Some(layout) = output {
            let dims = dims4(&self.graph.value(operation.y).shape);
            let layout = if is_flat(dims) { Layout::Flat } else { layout };
            let y = self
                .out
                .buffers
                .add(self.graph, operation.y, layout, Holder::Arena, step);
            bound.y = Some(y);
        }
        let reads = [bound.x, bound.residual, bound.scale];
        for id in reads
            .into_iter()
            .chain(bound.operands.iter().copied())
            .flatten()
        {
            self.out.buffers.read(id, step);
        }
        Ok(Some(bound))
    }

    /// Binds all but the output; returns the output's layout, or `None` if only means are wanted.
    fn bind_conv(
        &mut self,
        operation: &Operation,
        conv: &Conv,
        mapping: &Mapping,
        bound: &mut Bound,
    ) -> Result<Option<Layout>, AssembleError> {
        let (layout_in, layout_out) = (
            layout_of(operation, mapping, "layout_in")?,
            layout_of(operation, mapping, "layout_out")?,
        );
        let fill = conv.quantized.as_ref();
        let fill = fill.map_or(0, |quantized| quantized.x.zero_point as u8);
        let margins = conv_margins(conv, mapping).filled(fill);
        let x = self.want(operation.x, Want::Layout(layout_in, margins))?;
        bound.x = Some(x);
        if let Some(residual) = conv.residual {
            let lanes = mapping.int("lanes").unwrap_or(1).max(1) as usize;
            let want = if mapping.word("vector") == Some("width") {
                Want::Layout(layout_out, Border::default())
            } else {
                Want::Vectors(lanes, layout_out)
            };
            bound.residual = Some(self.want(residual, want)?);
        }
        bound.scale = conv.scale.map(|value| self.flat(value)).transpose()?;
        bound.x_is_exclusive = self.readers.get(&operation.x) == Some(&1)
            && matches!(self.out.buffers.all[x.0].holder, Holder::Arena);
        if let Some(pooled) = conv.pooled {
            let step = self.step();
            let id = self
                .out
                .buffers
                .add(self.graph, pooled, Layout::Flat, Holder::Arena, step);
            bound.pooled = Some(id);
        }
        Ok(conv.stored.then_some(layout_out))
    }

    fn bind_deconv(
        &mut self,
        operation: &Operation,
        deconv: &Deconv,
        mapping: &Mapping,
        bound: &mut Bound,
    ) -> Result<Layout, AssembleError> {
        let layout_in = layout_of(operation, mapping, "layout_in")?;
        let margins = deconv_margins(deconv, mapping);
        bound.x = Some(self.want(operation.x, Want::Layout(layout_in, margins))?);
        layout_of(operation, mapping, "layout_out")
    }

    /// Binds values that are joined: each as it comes, the whole as most of its elements come.
    fn bind_concat(&mut self, concat: &Concat, bound: &mut Bound) -> Result<Layout, AssembleError> {
        let mut elements: BTreeMap<Layout, usize> = BTreeMap::new();
        for &value in &concat.inputs {
            let id = self.want(value, Want::Any)?;
            bound.operands.push(Some(id));
            let layout = self.out.buffers.all[id.0].layout;
            *elements.entry(layout).or_default() += self.graph.value(value).shape.len();
        }
        let most = elements.into_iter().max_by_key(|(_, n)| *n);
        Ok(most.map_or(Layout::Nchw, |(layout, _)| layout))
    }

    fn bind_map(
        &mut self,
        operation: &Operation,
        map: &Map,
        bound: &mut Bound,
    ) -> Result<Layout, AssembleError> {
        let bytes = |value: ValueId| self.graph.value(value).dtype.bytes();
        let grows = bytes(operation.y) > bytes(operation.x);
        let mut x = self.want(operation.x, Want::Any)?;
        // What has to be dense rows is converted before it becomes larger.
        if grows
            && self.read_dense.contains(&operation.y)
            && !matches!(
                self.out.buffers.all[x.0].layout,
                Layout::Nchw | Layout::Flat
            )
        {
            x = self.want(operation.x, Want::Dense)?;
        }
        let layout = self.out.buffers.all[x.0].layout;
        bound.x = Some(x);
        for operand in &map.operands {
            bound.operands.push(match operand {
                Operand::Same(value) => {
                    Some(self.want(*value, Want::Layout(layout, Border::default()))?)
                }
                Operand::Channel(value) => Some(self.flat(*value)?),
                Operand::Constant(_) => None,
            });
        }
        Ok(layout)
    }

    /// Binds plain loops: all values dense, outputs of the model written in place.
    fn bind_loops(
        &mut self,
        inputs: &[Source],
        outputs: &[ValueId],
    ) -> Result<Bound, AssembleError> {
        let mut bound = Bound::default();
        for source in inputs {
            bound.operands.push(match source {
                Source::Value(value) => Some(self.want(*value, Want::Dense)?),
                Source::Constant(_) => None,
            });
        }
        let step = self.step();
        for &value in outputs {
            let readers = self.readers.get(&value).copied().unwrap_or(0);
            let mut ports = self.graph.outputs.iter();
            let holder = match ports.position(|&output| output == value) {
                Some(idx) if readers == 1 => Holder::Output(idx),
                _ => Holder::Arena,
            };
            let dims = dims4(&self.graph.value(value).shape);
            let layout = match holder {
                Holder::Arena if is_flat(dims) && dims[0] == 1 => Layout::Flat,
                _ => Layout::Nchw,
            };
            let graph = self.graph;
            let id = self.out.buffers.add(graph, value, layout, holder, step);
            self.out.buffers.all[id.0].exact = true;
            bound.results.push(id);
        }
        for id in bound.operands.iter().copied().flatten() {
            self.out.buffers.read(id, step);
        }
        Ok(bound)
    }

    /// Gives a value the memory of another one.
    fn alias(&mut self, operation: &Operation) -> Result<(), AssembleError> {
        let x = self.want(operation.x, Want::Dense)?;
        let holder = match self.out.buffers.all[x.0].holder {
            Holder::Input(idx) => Holder::Input(idx),
            Holder::Constant(idx) => Holder::Constant(idx),
            Holder::Same(root) => Holder::Same(root),
            Holder::Arena | Holder::Output(_) => Holder::Same(x),
        };
        let dims = dims4(&self.graph.value(operation.y).shape);
        let own = matches!(holder, Holder::Same(_));
        let layout = if own && is_flat(dims) && dims[0] == 1 {
            Layout::Flat
        } else {
            Layout::Nchw
        };
        let step = self.step().saturating_sub(1);
        self.out
            .buffers
            .add(self.graph, operation.y, layout, holder, step);
        Ok(())
    }

    /// Copies an output of the model to the caller's memory, unless a kernel writes it there.
    fn publish(&mut self, idx: usize, value: ValueId) -> Result<(), AssembleError> {
        let written = self
            .out
            .buffers
            .all
            .iter()
            .any(|buffer| buffer.value == value && buffer.holder == Holder::Output(idx));
        if written {
            return Ok(());
        }
        let from = self.home(value)?;
        let step = self.step();
        let to = self
            .out
            .buffers
            .add(self.graph, value, Layout::Nchw, Holder::Output(idx), step);
        self.out.buffers.read(from, step);
        self.out.steps.push(Planned::Convert { from, to });
        Ok(())
    }
}

fn layout_of(
    operation: &Operation,
    mapping: &Mapping,
    name: &'static str,
) -> Result<Layout, AssembleError> {
    let word = mapping.word(name).and_then(|word| word.parse().ok());
    word.ok_or(AssembleError::Layout {
        subgraph: operation.subgraph,
        parameter: name,
    })
}
