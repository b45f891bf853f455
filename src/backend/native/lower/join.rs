//! `Concat` along the channels, which any layout holds together.

use super::epilogue::is_conversion;
use super::subgraph::{Lowering, NotCovered};
use crate::backend::native::spec::{Concat, Kind, Operation};
use crate::graph::Node;

/// Lowers `Concat` of computed values `[n, c, h, w]` along `c`, and conversions of the result.
pub(super) fn concat(ctx: &Lowering<'_>, node: &Node) -> Result<Vec<Operation>, NotCovered> {
    let y = ctx.output(node)?;
    let rank = ctx.graph.value(y).shape.rank();
    let axis = node.int("axis", 1);
    if rank != 4 || !(axis == 1 || axis == -3) {
        return Err(ctx.not_covered(node, "another axis than the channels"));
    }
    let epilogue = &ctx.subgraph.epilogue;
    if let Some(&first) = epilogue.first()
        && !is_conversion(&ctx.node(first).op)
    {
        return Err(ctx.not_covered(node, "operators fused after it"));
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
    let main = ctx.operation(name, Kind::Concat(Concat { inputs }), x, y);
    let after = ctx.after(epilogue)?;
    Ok(std::iter::once(main).chain(after).collect())
}
