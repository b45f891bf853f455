//! Means over all spatial axes.

use super::normalization::reduced_axes;
use super::rule::{Before, Replacement, Rewrite, Source, View};
use crate::graph::{DType, Node, Shape};

/// `ReduceMean` or `AveragePool` over `[h, w]` is `GlobalAveragePool`, flattened if the axes were
/// dropped.
pub(super) fn global_average(view: &View<'_>, node: &Node) -> Option<Rewrite> {
    let x = node.input(0)?;
    let dims = view.graph.value(x).shape.dims();
    if dims.len() != 4 || view.graph.value(x).dtype != DType::F32 {
        return None;
    }
    match node.op.as_str() {
        "ReduceMean" if reduced_axes(view, node, 4)? == [2, 3] => {
            if node.int("keepdims", 1) == 1 {
                return Some(Replacement::plain("GlobalAveragePool", vec![x]));
            }
            Some(Rewrite::Replace(Replacement {
                op: "Flatten",
                attributes: [].into(),
                inputs: Vec::new(),
                before: Some(Before {
                    op: "GlobalAveragePool",
                    attributes: [].into(),
                    inputs: vec![Some(Source::Value(x))],
                    shape: Shape(vec![dims[0], dims[1], 1, 1]),
                }),
            }))
        }
        "AveragePool" => {
            let kernel = node.ints("kernel_shape")?;
            let is_whole = kernel == [dims[2] as i64, dims[3] as i64];
            let is_padded = node
                .ints("pads")
                .is_some_and(|pads| pads.iter().any(|&p| p != 0))
                || node.string("auto_pad", "NOTSET").starts_with("SAME");
            let is_one = view.graph.value(node.output(0)?).shape.dims()[2..] == [1, 1];
            (is_whole && !is_padded && is_one)
                .then(|| Replacement::plain("GlobalAveragePool", vec![x]))
        }
        _ => None,
    }
}
