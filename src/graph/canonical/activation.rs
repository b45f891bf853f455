//! Activations that exporters spell out.

use std::f32::consts::FRAC_1_SQRT_2;

use super::pattern::is_close;
use super::rule::{Replacement, Rewrite, Source, View};
use crate::graph::{Attribute, Node, Shape, Tensor, TensorData};

/// `Clip` from 0 is `Relu`; `Min(Relu(x), 6)` and `Min(Max(x, 0), 6)` are `Clip`.
pub(super) fn relu6(view: &View<'_>, node: &Node) -> Option<Rewrite> {
    match node.op.as_str() {
        "Clip" => {
            let (min, max) = view.clip_bounds(node)?;
            let is_relu = min == 0.0 && (max == f32::INFINITY || max == f32::MAX);
            let x = node.input(0)?;
            is_relu.then(|| Replacement::plain("Relu", vec![x]))
        }
        "Min" if node.inputs.len() == 2 => {
            let (value, high) = with_bound(view, node)?;
            let inner = view.producer(value)?;
            let (x, low) = match inner.op.as_str() {
                "Relu" => (inner.input(0)?, 0.0),
                "Max" if inner.inputs.len() == 2 => with_bound(view, inner)?,
                _ => return None,
            };
            let bound = |value| {
                let data = TensorData::F32(vec![value]);
                Tensor::new(Shape::default(), data).ok()
            };
            if view.graph.opset < 11 {
                let attributes = [
                    ("min", Attribute::Float(low)),
                    ("max", Attribute::Float(high)),
                ];
                return Some(Replacement::with("Clip", attributes, vec![x]));
            }
            Some(Rewrite::Replace(Replacement {
                op: "Clip",
                attributes: [].into(),
                inputs: vec![
                    Some(Source::Value(x)),
                    Some(Source::Constant(bound(low)?)),
                    Some(Source::Constant(bound(high)?)),
                ],
                before: None,
            }))
        }
        _ => None,
    }
}

fn with_bound(view: &View<'_>, node: &Node) -> Option<(crate::graph::ValueId, f32)> {
    let (lhs, rhs) = (node.input(0)?, node.input(1)?);
    let (value, bound) = match (view.scalar(lhs), view.scalar(rhs)) {
        (None, Some(bound)) => (lhs, bound),
        (Some(bound), None) => (rhs, bound),
        _ => return None,
    };
    view.keeps_shape(node, value).then_some((value, bound))
}

/// `Clip(x + 3, 0, 6) / 6` and `Clip(a·x + b, 0, 1)` are `HardSigmoid`.
pub(super) fn hard_sigmoid(view: &View<'_>, node: &Node) -> Option<Rewrite> {
    let output = node.output(0)?;
    let build = |x, alpha, beta| {
        let attributes = [
            ("alpha", Attribute::Float(alpha)),
            ("beta", Attribute::Float(beta)),
        ];
        Replacement::with("HardSigmoid", attributes, vec![x])
    };
    if node.op == "Clip" {
        let shifted = view.clipped(output, 0.0, 1.0)?;
        let (scaled, beta) = view.offset(shifted)?;
        let (alpha, x) = view.factors(scaled).pop()?;
        return Some(build(x, alpha, beta));
    }
    if !matches!(node.op.as_str(), "Mul" | "Div") {
        return None;
    }
    view.factors(output)
        .into_iter()
        .find_map(|(factor, inner)| {
            let shifted = view.clipped(inner, 0.0, 6.0)?;
            let (x, shift) = view.offset(shifted)?;
            let matches = is_close(factor, 1.0 / 6.0) && is_close(shift, 3.0);
            matches.then(|| build(x, 1.0 / 6.0, 0.5))
        })
}

/// `x · Clip(x + 3, 0, 6) / 6` and `x · HardSigmoid(x)` are `HardSwish`.
pub(super) fn hard_swish(view: &View<'_>, node: &Node) -> Option<Rewrite> {
    view.products(node)
        .into_iter()
        .find_map(|(factor, x, gate)| {
            let is_spelled_out = || {
                let (inner, shift) = view.offset(view.clipped(gate, 0.0, 6.0)?)?;
                Some(inner == x && is_close(shift, 3.0) && is_close(factor, 1.0 / 6.0))
            };
            let is_gated = || {
                let gate = view
                    .producer(gate)
                    .filter(|node| node.op == "HardSigmoid")?;
                let is_standard = is_close(gate.float("alpha", 0.2), 1.0 / 6.0)
                    && is_close(gate.float("beta", 0.5), 0.5);
                Some(gate.input(0)? == x && is_standard && is_close(factor, 1.0))
            };
            let matches = is_spelled_out() == Some(true) || is_gated() == Some(true);
            matches.then(|| Replacement::plain("HardSwish", vec![x]))
        })
}

/// `x · Sigmoid(x)` is the sigmoid linear unit, which ONNX calls `Swish` (operator set 24).
pub(super) fn silu(view: &View<'_>, node: &Node) -> Option<Rewrite> {
    view.products(node)
        .into_iter()
        .find_map(|(factor, x, gate)| {
            let gate = view.producer(gate).filter(|node| node.op == "Sigmoid")?;
            let matches = gate.input(0)? == x && factor == 1.0;
            matches.then(|| Replacement::plain("Swish", vec![x]))
        })
}

/// `x / 2 · (1 + Erf(x / √2))` is `Gelu` (operator set 20).
pub(super) fn gelu_erf(view: &View<'_>, node: &Node) -> Option<Rewrite> {
    view.products(node)
        .into_iter()
        .find_map(|(factor, x, gate)| {
            let (inner, one) = view.offset(gate)?;
            let erf = view.producer(inner).filter(|node| node.op == "Erf")?;
            let matches = is_close(factor, 0.5)
                && is_close(one, 1.0)
                && view.is_scaled(erf.input(0)?, FRAC_1_SQRT_2, x);
            matches.then(|| Replacement::plain("Gelu", vec![x]))
        })
}

/// `x / 2 · (1 + Tanh(√(2/π) · (x + 0.044715 · x³)))` is `Gelu` by its approximation.
pub(super) fn gelu_tanh(view: &View<'_>, node: &Node) -> Option<Rewrite> {
    view.products(node)
        .into_iter()
        .find_map(|(factor, x, gate)| {
            let (inner, one) = view.offset(gate)?;
            let tanh = view.producer(inner).filter(|node| node.op == "Tanh")?;
            let is_argument = view.factors(tanh.input(0)?).iter().any(|&(scale, sum)| {
                is_close(scale, (2.0 / std::f32::consts::PI).sqrt())
                    && is_cubic(view, sum, x) == Some(true)
            });
            let matches = is_close(factor, 0.5) && is_close(one, 1.0) && is_argument;
            let approximate = ("approximate", Attribute::String("tanh".to_owned()));
            matches.then(|| Replacement::with("Gelu", [approximate], vec![x]))
        })
}

/// Returns whether a value is `x + 0.044715 · x³`.
fn is_cubic(view: &View<'_>, sum: crate::graph::ValueId, x: crate::graph::ValueId) -> Option<bool> {
    let sum = view.producer(sum).filter(|node| node.op == "Add")?;
    let (lhs, rhs) = (sum.input(0)?, sum.input(1)?);
    let cubic = if lhs == x { rhs } else { lhs };
    let is_power = view.factors(cubic).iter().any(|&(factor, power)| {
        let is_cube = view.producer(power).is_some_and(|node| {
            node.op == "Pow"
                && node.input(0) == Some(x)
                && node.input(1).and_then(|id| view.scalar(id)) == Some(3.0)
        });
        is_cube && is_close(factor, 0.044_715)
    });
    Some((lhs == x || rhs == x) && is_power)
}
