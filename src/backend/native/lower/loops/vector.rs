//! Operators of one element at a time on vectors of f32, with the primitives of the instruction set.
//! Numbers of half precision are such vectors as soon as they are loaded.

use super::element::float;
use super::node::LoopNode;
use crate::graph::{Attribute, DType};

/// An operand of a vector expression.
#[derive(Debug, Clone)]
pub(super) enum VectorTerm {
    /// A variable that holds a vector.
    Variable(String),
    /// A number that all lanes share.
    Number(f32),
}

impl VectorTerm {
    fn text(&self) -> String {
        match self {
            Self::Variable(name) => name.clone(),
            Self::Number(value) => splat(*value),
        }
    }
}

fn splat(value: f32) -> String {
    format!("splat!({})", float(value.into(), DType::F32))
}

/// Returns what the operator gives for a vector; `None` if there are no primitives for it.
pub(super) fn expression(node: &LoopNode<'_>, args: &[Option<VectorTerm>]) -> Option<String> {
    let text = |idx: usize| args.get(idx)?.as_ref().map(VectorTerm::text);
    let v = text(0)?;
    if let Some(unary) = unary(node, &v) {
        return Some(unary);
    }
    if node.node.op == "Clip" {
        return Some(clip(node, &v, args));
    }
    if args.len() != 2 {
        return None;
    }
    let w = text(1)?;
    Some(match (node.node.op.as_str(), args.get(1)?.as_ref()?) {
        ("Add" | "Sum", _) => format!("add!({v}, {w})"),
        ("Sub", _) => format!("sub!({v}, {w})"),
        ("Mul", _) => format!("mul!({v}, {w})"),
        ("Div", _) => format!("div!({v}, {w})"),
        ("Max", _) => format!("max!({v}, {w})"),
        ("Min", _) => format!("min!({v}, {w})"),
        ("PRelu", _) => format!("add!(max!({v}, zero!()), mul!({w}, min!({v}, zero!())))"),
        ("Pow", VectorTerm::Number(2.0)) => format!("mul!({v}, {v})"),
        ("Pow", VectorTerm::Number(3.0)) => format!("mul!({v}, mul!({v}, {v}))"),
        ("Pow", VectorTerm::Number(0.5)) => format!("sqrt!({v})"),
        _ => return None,
    })
}

fn unary(node: &LoopNode<'_>, v: &str) -> Option<String> {
    let attribute = |name: &str, default: f32| splat(node.node.float(name, default));
    let alpha = |default: f32| attribute("alpha", default);
    let one = splat(1.0);
    let half = splat(0.5);
    Some(match node.node.op.as_str() {
        "Identity" | "Cast" => v.to_owned(),
        "Relu" => format!("max!({v}, zero!())"),
        "LeakyRelu" => format!(
            "add!(max!({v}, zero!()), mul!({}, min!({v}, zero!())))",
            alpha(0.01)
        ),
        "HardSigmoid" => format!(
            "min!(max!(fma!({v}, {}, {}), zero!()), {one})",
            alpha(0.2),
            attribute("beta", 0.5)
        ),
        "HardSwish" => format!("hardswish!({v})"),
        "Sigmoid" => format!("sigmoid!({v})"),
        "Silu" => format!("mul!({v}, sigmoid!({v}))"),
        "Swish" => format!("mul!({v}, sigmoid!(mul!({v}, {})))", alpha(1.0)),
        "Tanh" => format!("tanh!({v})"),
        "Exp" => format!("exp!({v})"),
        "Erf" => format!("erf!({v})"),
        "Sqrt" => format!("sqrt!({v})"),
        "Neg" => format!("sub!(zero!(), {v})"),
        "Abs" => format!("max!({v}, sub!(zero!(), {v}))"),
        "Reciprocal" => format!("div!({one}, {v})"),
        "Elu" => format!(
            "add!(max!({v}, zero!()), mul!({}, sub!(exp!(min!({v}, zero!())), {one})))",
            alpha(1.0)
        ),
        "Gelu" if node.node.string("approximate", "none") == "tanh" => format!(
            "mul!(mul!({v}, {half}), add!({one}, tanh!(mul!(fma!(mul!(mul!({v}, {v}), {v}), {}, {v}), {}))))",
            splat(0.044_715),
            splat(0.797_884_6)
        ),
        "Gelu" => format!(
            "mul!(mul!({v}, {half}), add!({one}, erf!(mul!({v}, {}))))",
            splat(std::f32::consts::FRAC_1_SQRT_2)
        ),
        _ => return None,
    })
}

fn clip(node: &LoopNode<'_>, v: &str, args: &[Option<VectorTerm>]) -> String {
    let bound = |idx: usize, name: &str| match args.get(idx) {
        Some(Some(term)) => Some(term.text()),
        _ => match node.node.attributes.get(name) {
            Some(Attribute::Float(value)) => Some(splat(*value)),
            _ => None,
        },
    };
    let mut text = v.to_owned();
    if let Some(low) = bound(1, "min") {
        text = format!("max!({text}, {low})");
    }
    if let Some(high) = bound(2, "max") {
        text = format!("min!({text}, {high})");
    }
    text
}
