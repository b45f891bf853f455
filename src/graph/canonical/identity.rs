//! Operators that change nothing.

use super::rule::{Rewrite, View};
use crate::graph::Node;

/// Forwards the input of a node that returns it unchanged.
pub(super) fn forward(view: &View<'_>, node: &Node) -> Option<Rewrite> {
    let input = node.input(0)?;
    let output = node.output(0)?;
    let (from, to) = (view.graph.value(input), view.graph.value(output));
    if from.dtype != to.dtype || from.shape != to.shape {
        return None;
    }
    let ints = |name, idx| view.ints(node, name, idx);
    let is_one = |values: Option<Vec<i64>>| values.is_none_or(|v| v.iter().all(|&v| v == 1));
    let is_unchanged = match node.op.as_str() {
        "Identity" | "Cast" | "CastLike" | "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze"
        | "Expand" | "Tile" => true,
        // A mask that is read, or a training mode that is a value, is left to the executor.
        "Dropout" => node.outputs.iter().skip(1).all(Option::is_none) && node.input(2).is_none(),
        "Transpose" => node
            .ints("perm")
            .is_some_and(|perm| perm.iter().enumerate().all(|(i, &p)| i as i64 == p)),
        "Concat" | "Sum" | "Max" | "Min" | "Mean" => node.inputs.len() == 1,
        "Split" => node.outputs.len() == 1,
        "Slice" => {
            is_one(ints("steps", 4))
                && node
                    .input(4)
                    .is_none_or(|id| view.graph.constant(id).is_some())
        }
        "Pad" => ints("pads", 1).is_some_and(|pads| pads.iter().all(|&p| p == 0)),
        "MaxPool" | "AveragePool" => {
            node.outputs.len() == 1 && is_one(node.ints("kernel_shape").map(<[i64]>::to_vec))
        }
        "Pow" => node.input(1).and_then(|id| view.scalar(id)) == Some(1.0),
        _ => false,
    };
    is_unchanged.then_some(Rewrite::Forward(input))
}
