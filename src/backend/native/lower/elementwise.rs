//! Subgraphs of elementwise operators.

use super::epilogue::{is_conversion, is_view};
use super::layers::require_f32;
use super::subgraph::{Lowering, NotCovered};
use crate::backend::native::layout::dims4;
use crate::backend::native::spec::{Kind, Map, MapStep, Operand, Operation};
use crate::graph::{Node, NodeId, ValueId};

/// Lowers a chain of elementwise operators.
pub(super) fn chain(ctx: &Lowering<'_>) -> Result<Vec<Operation>, NotCovered> {
    let anchor = ctx.node(ctx.subgraph.anchor);
    let result = ctx.output(anchor)?;
    let nodes = ctx.subgraph.nodes();
    let converts = |&id: &NodeId| is_conversion(&ctx.node(id).op);
    if nodes.iter().any(converts) {
        return super::quantized::chain(ctx, &nodes);
    }
    let dims = dims4(&ctx.graph.value(result).shape);
    let is_full = |&value: &ValueId| {
        ctx.graph.constant(value).is_none() && dims4(&ctx.graph.value(value).shape) == dims
    };
    let x = anchor
        .inputs
        .iter()
        .flatten()
        .copied()
        .find(is_full)
        .ok_or_else(|| ctx.not_covered(anchor, "no kernel exists for it"))?;
    let mut map = Map {
        chain: Vec::new(),
        operands: Vec::new(),
        reads: Vec::new(),
        writes: None,
    };
    let mut current = x;
    let mut views = Vec::new();
    for &id in &nodes {
        let node = ctx.node(id);
        let output = ctx.output(node)?;
        if is_view(&node.op) {
            views.push((ctx.activation(node, 0)?, output));
            continue;
        }
        if !views.is_empty() {
            return Err(ctx.not_covered(node, "it follows a change of shape"));
        }
        require_f32(ctx, node, &[current, output])?;
        if dims4(&ctx.graph.value(output).shape) != dims {
            return Err(ctx.not_covered(node, "it changes the shape"));
        }
        let step = match ctx.unary(node).or_else(|| ctx.with_constant(node, current)) {
            Some(step) => MapStep::Unary(step),
            None => binary(ctx, node, current, dims, &mut map.operands, &|_| None)?.0,
        };
        map.chain.push(step);
        current = output;
    }
    let names: Vec<String> = nodes
        .iter()
        .map(|&id| ctx.node(id).op.to_lowercase())
        .collect();
    let name = names.join("+");
    let main = ctx.operation(name, Kind::Map(map), x, current);
    Ok(std::iter::once(main).chain(ctx.views(&views)).collect())
}

/// Classifies an operator of two values, one of which is `current`; returns the other one too, which
/// is read as what `read` says.
pub(super) fn binary(
    ctx: &Lowering<'_>,
    node: &Node,
    current: ValueId,
    dims: [usize; 4],
    operands: &mut Vec<Operand>,
    read: &dyn Fn(ValueId) -> Option<ValueId>,
) -> Result<(MapStep, ValueId), NotCovered> {
    let (Some(lhs), Some(rhs), None) = (node.input(0), node.input(1), node.input(2)) else {
        return Err(ctx.not_covered(node, "no kernel exists for it"));
    };
    let current_first = lhs == current;
    if !current_first && rhs != current {
        return Err(ctx.not_covered(node, "it does not read the chain"));
    }
    let op = match (node.op.as_str(), current_first) {
        ("Add", _) => "add",
        ("Mul", _) => "mul",
        ("Max", _) => "max",
        ("Min", _) => "min",
        ("Sub", true) => "sub",
        ("Sub", false) => "rsub",
        ("Div", true) => "div",
        ("Div", false) => "rdiv",
        _ => return Err(ctx.not_covered(node, "no kernel exists for it")),
    };
    let other = if current_first { rhs } else { lhs };
    operands.push(match (operand(ctx, node, other, dims)?, read(other)) {
        (Operand::Same(_), Some(bytes)) => Operand::Same(bytes),
        (Operand::Channel(_), Some(bytes)) => Operand::Channel(bytes),
        (operand, _) => operand,
    });
    let operand = operands.len() - 1;
    Ok((MapStep::Binary { op, operand }, other))
}

/// Classifies the other operand: the same extents, or one number a channel.
fn operand(
    ctx: &Lowering<'_>,
    node: &Node,
    value: ValueId,
    [n, c, h, w]: [usize; 4],
) -> Result<Operand, NotCovered> {
    let shape = &ctx.graph.value(value).shape;
    let rank = ctx.graph.value(ctx.output(node)?).shape.rank();
    let constant = ctx.graph.constant(value).and_then(|tensor| tensor.as_f32());
    // Axes as broadcasting aligns them, in the four that kernels see.
    let mut aligned = vec![1; rank.saturating_sub(shape.rank())];
    aligned.extend_from_slice(shape.dims());
    let aligned = dims4(&aligned.into());
    match (constant, aligned) {
        (None, dims) if dims == [n, c, h, w] => Ok(Operand::Same(value)),
        (None, dims) if dims == [n, c, 1, 1] && rank > 1 => Ok(Operand::Channel(value)),
        (Some(data), [1, channels, 1, 1]) if channels == c && n == 1 => {
            Ok(Operand::Constant(data.to_vec()))
        }
        _ => Err(ctx.not_covered(node, format!("an operand of shape {shape}"))),
    }
}
