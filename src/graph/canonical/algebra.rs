//! Arithmetic with neutral elements, and reshapes of reshapes.

use super::rule::{Before, Replacement, Rewrite, Source, View};
use crate::graph::{Node, Shape, Tensor, TensorData, ValueId};

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

/// `x · s + x` is `x · (s + 1)` if `s` is smaller than `x`: the addition moves to the gate.
pub(super) fn gate_with_shortcut(view: &View<'_>, node: &Node) -> Option<Rewrite> {
    if node.op != "Add" {
        return None;
    }
    let (lhs, rhs) = (node.input(0)?, node.input(1)?);
    let gated = |product: ValueId, x: ValueId| {
        let mul = view.producer(product).filter(|node| node.op == "Mul")?;
        let (a, b) = (mul.input(0)?, mul.input(1)?);
        let gate = match (a == x, b == x) {
            (true, false) => b,
            (false, true) => a,
            _ => return None,
        };
        let shape = |id: ValueId| &view.graph.value(id).shape;
        let fits = view.is_read_once(product)
            && view.graph.constant(gate).is_none()
            && shape(gate).rank() == shape(x).rank()
            && shape(gate).len() < shape(x).len()
            && view.keeps_shape(node, x);
        fits.then_some((x, gate))
    };
    let (x, gate) = gated(lhs, rhs).or_else(|| gated(rhs, lhs))?;
    let one = Tensor::new(Shape::default(), TensorData::F32(vec![1.0])).ok()?;
    Some(Rewrite::Replace(Replacement {
        op: "Mul",
        attributes: [].into(),
        inputs: vec![Some(Source::Value(x))],
        before: Some(Before {
            op: "Add",
            attributes: [].into(),
            inputs: vec![Some(Source::Value(gate)), Some(Source::Constant(one))],
            shape: view.graph.value(gate).shape.clone(),
        }),
    }))
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
