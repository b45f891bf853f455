//! `Concat` along the channels, which any layout holds together.

use super::subgraph::{Lowering, NotCovered};
use crate::backend::native::spec::{Concat, Kind, Operation};
use crate::graph::Node;

/// Lowers `Concat` of computed values `[n, c, h, w]` along `c`.
pub(super) fn concat(ctx: &Lowering<'_>, node: &Node) -> Result<Vec<Operation>, NotCovered> {
    let y = ctx.output(node)?;
    let rank = ctx.graph.value(y).shape.rank();
    let axis = node.int("axis", 1);
    if rank != 4 || !(axis == 1 || axis == -3) || !ctx.subgraph.epilogue.is_empty() {
        return Err(ctx.not_covered(node, "another axis than the channels"));
    }
    let mut inputs = Vec::new();
    for idx in 0..node.inputs.len() {
        inputs.push(ctx.activation(node, idx)?);
    }
    super::layers::require_moved(ctx, node, &inputs)?;
    let Some(&x) = inputs.first() else {
        return Err(ctx.not_covered(node, "it joins nothing"));
    };
    let name = format!("concat of {}", inputs.len());
    Ok(vec![ctx.operation(
        name,
        Kind::Concat(Concat { inputs }),
        x,
        y,
    )])
}
