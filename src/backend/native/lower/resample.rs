//! `Resize` and `Upsample` to the nearest pixels, in any layout.

use super::loops::nearest_pixels;
use super::subgraph::{Lowering, NotCovered};
use crate::backend::native::layout::{dims4, is_flat};
use crate::backend::native::spec::{Kind, Operation, Resample};
use crate::graph::Node;

/// Lowers a resampling of values `[n, c, h, w]` to the nearest pixels.
pub(super) fn nearest(ctx: &Lowering<'_>, node: &Node) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = (ctx.activation(node, 0)?, ctx.output(node)?);
    super::layers::require_moved(ctx, node, &[x, y])?;
    let flat =
        is_flat(dims4(&ctx.graph.value(x).shape)) || is_flat(dims4(&ctx.graph.value(y).shape));
    let pixels = nearest_pixels(ctx, node);
    let Some([rows, columns]) = pixels.filter(|_| !flat && ctx.subgraph.epilogue.is_empty()) else {
        return Err(ctx.not_covered(node, "other than nearest pixels"));
    };
    let kind = Kind::Resample(Resample { rows, columns });
    Ok(vec![ctx.operation(node.op.to_lowercase(), kind, x, y)])
}
