//! Which family lowers which operator.

use super::node::LoopNode;
use super::{
    affine_grid, arrange, columns, convolution, copy, crop, determinant, dropout, einsum,
    elementwise, gather, generate, grid_sample, integer, matmul, normalize, pooling, quantize,
    recurrent, reduce, region, resize, scan, scatter, softmax, statistics, top_k,
};
use crate::backend::native::lower::epilogue::is_view;
use crate::backend::native::lower::subgraph::{Lowering, NotCovered};
use crate::backend::native::spec::{Kind, Operation};
use crate::graph::Node;

/// Lowers the first of `nodes`, and those after it that join its kernel; returns how many.
///
/// # Errors
/// [`NotCovered`] says what about it has no loops.
pub(in crate::backend::native::lower) fn lower(
    ctx: &Lowering<'_>,
    nodes: &[&Node],
) -> Result<(usize, Vec<Operation>), NotCovered> {
    let loop_nodes = nodes.iter().map(|node| LoopNode::new(ctx, node));
    let loop_nodes: Vec<LoopNode<'_>> = loop_nodes.collect::<Result<_, _>>()?;
    let Some(loop_node) = loop_nodes.first() else {
        return Ok((0, Vec::new()));
    };
    let node = loop_node.node;
    if !matches!(node.domain.as_str(), "" | "ai.onnx") {
        return Err(loop_node.refuse(format!("operators of domain `{}`", node.domain)));
    }
    if is_view(&node.op) {
        let (x, y) = (ctx.activation(node, 0)?, ctx.output(node)?);
        let operation = ctx.operation(node.op.clone(), Kind::Alias, x, y);
        return Ok((1, vec![operation]));
    }
    let families = [
        affine_grid::lower,
        arrange::lower,
        columns::lower,
        convolution::lower,
        copy::lower,
        crop::lower,
        determinant::lower,
        dropout::lower,
        einsum::lower,
        gather::lower,
        generate::lower,
        grid_sample::lower,
        integer::lower,
        matmul::lower,
        normalize::lower,
        pooling::lower,
        quantize::lower,
        recurrent::lower,
        reduce::lower,
        region::lower,
        resize::lower,
        scan::lower,
        scatter::lower,
        softmax::lower,
        statistics::lower,
        top_k::lower,
    ];
    if let Some(lowered) = families.iter().find_map(|family| family(loop_node)) {
        return lowered.map(|operations| (1, operations));
    }
    elementwise::lower(&loop_nodes)
        .unwrap_or_else(|| Err(loop_node.refuse("no kernel exists for it")))
}
