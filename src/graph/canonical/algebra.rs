//! Arithmetic with neutral elements, and reshapes of reshapes.

use super::rewrite::{Replacement, Rewrite, Source, View};
use crate::graph::{Node, Tensor, ValueId};

/// Drops additions of zero and multiplications by one.
pub(super) fn neutral(view: &View<'_>, node: &Node) -> Option<Rewrite> {
    let all = |id: ValueId, element: f32| {
        view.graph
            .constant(id)
            .and_then(Tensor::as_f32)
            .is_some_and(|data| data.iter().all(|&v| v == element))
    };
    let (element, is_commutative) = match node.op.as_str() {
        "Add" => (0.0, true),
        "Sub" => (0.0, false),
        "Mul" => (1.0, true),
        "Div" => (1.0, false),
        _ => return None,
    };
    let (lhs, rhs) = (node.input(0)?, node.input(1)?);
    let kept = if all(rhs, element) {
        lhs
    } else if is_commutative && all(lhs, element) {
        rhs
    } else {
        return None;
    };
    view.keeps_shape(node, kept)
        .then_some(Rewrite::Forward(kept))
}

/// Takes a chain of reshapes, flattenings and unit-axis changes as one `Reshape`.
pub(super) fn reshape_chain(view: &View<'_>, node: &Node) -> Option<Rewrite> {
    let is_reshape = |node: &Node| {
        matches!(
            node.op.as_str(),
            "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze"
        )
    };
    let first = view.producer(node.input(0)?)?;
    if !is_reshape(node) || !is_reshape(first) {
        return None;
    }
    let shape = &view.graph.value(node.output(0)?).shape;
    let target = shape.dims().iter().map(|&dim| dim as i64).collect();
    let inputs = vec![
        Some(Source::Value(first.input(0)?)),
        Some(Source::Constant(Tensor::from_i64(target))),
    ];
    Some(Rewrite::Replace(Replacement {
        op: "Reshape",
        attributes: [].into(),
        inputs,
        before: None,
    }))
}
