//! Which family lowers which operator.

use super::node::LoopNode;
use super::{copy, elementwise};
use crate::backend::native::lower::epilogue::is_view;
use crate::backend::native::lower::subgraph::{Lowering, NotCovered};
use crate::backend::native::spec::{Kind, Operation};
use crate::graph::Node;

/// Lowers one node.
///
/// # Errors
/// [`NotCovered`] says what about it has no loops.
pub(in crate::backend::native::lower) fn lower(
    ctx: &Lowering<'_>,
    node: &Node,
) -> Result<Vec<Operation>, NotCovered> {
    let loop_node = LoopNode::new(ctx, node)?;
    if !matches!(node.domain.as_str(), "" | "ai.onnx") {
        return Err(loop_node.refuse(format!("operators of domain `{}`", node.domain)));
    }
    if is_view(&node.op) {
        let (x, y) = (ctx.activation(node, 0)?, ctx.output(node)?);
        return Ok(vec![ctx.operation(node.op.clone(), Kind::Alias, x, y)]);
    }
    let families = [copy::lower, elementwise::lower];
    families
        .iter()
        .find_map(|family| family(&loop_node))
        .unwrap_or_else(|| Err(loop_node.refuse("no kernel exists for it")))
}
