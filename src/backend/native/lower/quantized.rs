//! 8-bit integers between float operators: layers that multiply them, and chains that read and
//! write them.

use std::collections::BTreeMap;

use super::elementwise;
use super::epilogue::is_view;
use super::subgraph::{Lowering, NotCovered};
use crate::backend::native::layout::dims4;
use crate::backend::native::spec::{Affine, Kind, Map, MapStep, Operation, Quantized, Table};
use crate::graph::{DType, Node, NodeId, TensorData, ValueId, affine, from_front, table};

/// The operands of a layer of integers.
pub(super) struct Operands<'a> {
    /// The u8 input, and how it stands for numbers.
    pub(super) x: ValueId,
    pub(super) affine: Affine,
    /// The weights as they are stored.
    pub(super) weights: &'a [i8],
    /// Scales of the weights: one, or one an index of their axis.
    scales: &'a [f32],
    axis: i64,
}

impl Operands<'_> {
    /// Returns what the kernel needs, with weights in its order, whose output channels are along
    /// `axis` of the stored ones.
    pub(super) fn quantized(
        &self,
        ctx: &Lowering<'_>,
        node: &Node,
        weights: Vec<i8>,
        (axis, n_channels): (usize, usize),
        factor: f32,
    ) -> Result<Quantized, NotCovered> {
        let rank = node
            .input(1)
            .map_or(0, |id| ctx.graph.value(id).shape.rank());
        let own = from_front(self.axis, rank);
        let scales = match self.scales {
            [scale] => vec![*scale; n_channels],
            scales if own == Some(axis) && scales.len() == n_channels => scales.to_vec(),
            _ => return Err(ctx.not_covered(node, "scales along another axis of the weights")),
        };
        Ok(Quantized {
            x: self.affine,
            weights,
            weight_scales: scales.iter().map(|scale| scale * factor).collect(),
            y: None,
            residual: None,
            sums: false,
        })
    }
}

impl<'a> Lowering<'a> {
    /// Returns the operands of a layer whose subgraph begins with their conversions.
    pub(super) fn integer_operands(&self, node: &Node) -> Option<Operands<'a>> {
        let [x, weights] = self.subgraph.prologue.as_slice() else {
            return None;
        };
        let (x, weights) = (self.graph.node(*x), self.graph.node(*weights));
        let reads = |node: &Node, idx, from: &Node| node.input(idx) == from.output(0);
        let (from, affine) = self.dequantized(x)?;
        let constant = |idx| self.graph.constant(weights.input(idx)?);
        let TensorData::I8(data) = constant(0)?.data() else {
            return None;
        };
        (reads(node, 0, x) && reads(node, 1, weights)).then_some(Operands {
            x: from,
            affine,
            weights: data,
            scales: constant(1)?.as_f32()?,
            axis: weights.int("axis", 1),
        })
    }

    /// Returns the u8 value that a node dequantises, and how.
    pub(super) fn dequantized(&self, node: &Node) -> Option<(ValueId, Affine)> {
        let (scale, zero_point) = affine(self.graph, node)?;
        let from = node.input(0).filter(|_| node.op == "DequantizeLinear")?;
        let is_u8 = self.graph.value(from).dtype == DType::U8;
        is_u8.then_some((from, Affine { scale, zero_point }))
    }

    /// Returns the u8 value that a node quantises to, and how.
    pub(super) fn quantized(&self, node: &Node) -> Option<(ValueId, Affine)> {
        let (scale, zero_point) = affine(self.graph, node)?;
        let to = node.output(0).filter(|_| node.op == "QuantizeLinear")?;
        let is_u8 = self.graph.value(to).dtype == DType::U8;
        is_u8.then_some((to, Affine { scale, zero_point }))
    }

    /// Returns the function of an 8-bit value that nodes begin with, and how many of them it is.
    pub(super) fn table(&self, nodes: &[NodeId]) -> Option<(usize, Table, ValueId)> {
        let from = self.node(*nodes.first()?).input(0)?;
        let found = table(self.graph, self.consumers, from)?;
        let entries = found.entries;
        nodes
            .starts_with(&found.nodes)
            .then_some((found.nodes.len(), Table { entries }, from))
    }
}

/// Lowers a chain of elementwise operators and conversions, and views at its end: functions of 8
/// bits to tables, the rest to maps that convert what they read and write.
pub(super) fn chain(ctx: &Lowering<'_>, nodes: &[NodeId]) -> Result<Vec<Operation>, NotCovered> {
    let mut operations = Vec::new();
    let mut rest = nodes;
    while let Some(&first) = rest.first() {
        let node = ctx.node(first);
        let (n_nodes, operation) = if is_view(&node.op) {
            let (x, y) = (ctx.activation(node, 0)?, ctx.output(node)?);
            (1, ctx.operation("view".to_owned(), Kind::Alias, x, y))
        } else if let Some((n_nodes, table, x)) = ctx.table(rest) {
            let y = ctx.output(ctx.node(rest[n_nodes - 1]))?;
            let name = format!("table {}", name(ctx, &rest[..n_nodes]));
            (n_nodes, ctx.operation(name, Kind::Table(table), x, y))
        } else {
            map(ctx, rest)?
        };
        operations.push(operation);
        rest = &rest[n_nodes..];
    }
    Ok(operations)
}

fn name(ctx: &Lowering<'_>, nodes: &[NodeId]) -> String {
    let names = nodes.iter().map(|&id| ctx.node(id).op.to_lowercase());
    let names: Vec<String> = names.filter(|op| !op.ends_with("quantizelinear")).collect();
    if names.is_empty() {
        "conversion".to_owned()
    } else {
        names.join("+")
    }
}

/// A map in the making.
struct Chain<'a, 'g> {
    ctx: &'a Lowering<'g>,
    map: Map,
    /// The u8 value behind each dequantised one.
    bytes: BTreeMap<ValueId, (ValueId, Affine)>,
    /// The main input, and the value that the chain gives so far.
    ends: Option<[ValueId; 2]>,
}

/// Lowers as many nodes as one map can compute.
fn map(ctx: &Lowering<'_>, nodes: &[NodeId]) -> Result<(usize, Operation), NotCovered> {
    let mut chain = Chain {
        ctx,
        map: Map {
            chain: Vec::new(),
            operands: Vec::new(),
            reads: vec![None],
            writes: None,
        },
        bytes: BTreeMap::new(),
        ends: None,
    };
    let mut n_nodes = 0;
    while let Some(&id) = nodes.get(n_nodes) {
        let node = ctx.node(id);
        if is_view(&node.op) {
            break;
        }
        n_nodes += 1;
        if let Some((from, affine)) = ctx.dequantized(node) {
            chain.bytes.insert(ctx.output(node)?, (from, affine));
        } else if let Some((to, affine)) = ctx.quantized(node) {
            chain.begin(ctx.activation(node, 0)?);
            let Some(next) = chain.goes_on(&nodes[n_nodes..], to) else {
                chain.map.writes = Some(affine);
                chain.ends = chain.ends.map(|[x, _]| [x, to]);
                break;
            };
            chain.map.chain.push(MapStep::Unary(affine.requantize()));
            chain.ends = chain.ends.map(|[x, _]| [x, next]);
            n_nodes += 1;
        } else {
            chain.step(node)?;
        }
    }
    // Nothing but a conversion to numbers.
    if let (None, Some(&real)) = (chain.ends, chain.bytes.keys().next()) {
        chain.begin(real);
    }
    let last = ctx.node(nodes[0]);
    let [x, y] = chain
        .ends
        .ok_or_else(|| ctx.not_covered(last, "nothing is computed"))?;
    let name = name(ctx, &nodes[..n_nodes]);
    Ok((n_nodes, ctx.operation(name, Kind::Map(chain.map), x, y)))
}

impl Chain<'_, '_> {
    /// Makes a value the main input, unless there is one.
    fn begin(&mut self, real: ValueId) {
        if self.ends.is_none() {
            let (x, affine) = self.read(real);
            self.map.reads[0] = affine;
            self.ends = Some([x, real]);
        }
    }

    /// Returns what is read for a value.
    fn read(&self, real: ValueId) -> (ValueId, Option<Affine>) {
        match self.bytes.get(&real) {
            Some(&(from, affine)) => (from, Some(affine)),
            None => (real, None),
        }
    }

    /// Returns the number that the chain goes on with if what follows a rounding to u8 reads it in
    /// the same chain, and is no function of it alone.
    fn goes_on(&self, rest: &[NodeId], rounded: ValueId) -> Option<ValueId> {
        let next = self.ctx.node(*rest.first()?);
        let (from, _) = self.ctx.dequantized(next)?;
        let is_alone = self.ctx.table(rest).is_some();
        let is_seen = self.ctx.subgraph.outputs.contains(&rounded);
        (from == rounded && !is_alone && !is_seen && rest.len() > 1).then(|| next.output(0))?
    }

    /// Applies an operator.
    fn step(&mut self, node: &Node) -> Result<(), NotCovered> {
        let ctx = self.ctx;
        let output = ctx.output(node)?;
        let dims = dims4(&ctx.graph.value(output).shape);
        let is_full = |id: &ValueId| {
            ctx.graph.constant(*id).is_none() && dims4(&ctx.graph.value(*id).shape) == dims
        };
        if self.ends.is_none() {
            let full = node.inputs.iter().flatten().copied().find(is_full);
            self.begin(full.ok_or_else(|| ctx.not_covered(node, "no kernel exists for it"))?);
        }
        let Some([x, current]) = self.ends else {
            return Err(ctx.not_covered(node, "it reads nothing"));
        };
        super::layers::require_f32(ctx, node, &[current, output])?;
        if dims4(&ctx.graph.value(current).shape) != dims {
            return Err(ctx.not_covered(node, "it changes the shape"));
        }
        let unary = ctx.unary(node).or_else(|| ctx.with_constant(node, current));
        let step = if let Some(step) = unary {
            MapStep::Unary(step)
        } else {
            let read = |real| self.bytes.get(&real).map(|&(from, _)| from);
            let (step, other) =
                elementwise::binary(ctx, node, current, dims, &mut self.map.operands, &read)?;
            self.map.reads.push(self.read(other).1);
            step
        };
        self.map.chain.push(step);
        self.ends = Some([x, output]);
        Ok(())
    }
}
