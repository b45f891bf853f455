//! One form for matrix products with constant weights.

use super::rule::{Replacement, Rewrite, Source, View};
use crate::graph::{Node, Shape, Tensor, TensorData};

/// Turns `MatMul` and `Gemm` of a matrix with constant weights into `Gemm` without attributes:
/// weights `[k, n]`, bias `[n]` (left out if there is none).
pub(super) fn to_gemm(view: &View<'_>, node: &Node) -> Option<Rewrite> {
    let is_gemm = match node.op.as_str() {
        "MatMul" => false,
        "Gemm" => true,
        _ => return None,
    };
    let x = node.input(0)?;
    if view.graph.value(x).shape.rank() != 2 || node.int("transA", 0) != 0 {
        return None;
    }
    let weights = view.graph.constant(node.input(1)?)?;
    let &[rows, columns] = weights.shape().dims() else {
        return None;
    };
    let is_transposed = is_gemm && node.int("transB", 0) != 0;
    let (alpha, beta) = (node.float("alpha", 1.0), node.float("beta", 1.0));
    let n = if is_transposed { rows } else { columns };
    let bias = match node.input(2) {
        Some(id) => Some(view.graph.constant(id)?),
        None => None,
    };
    let is_plain_bias = bias.is_none_or(|bias| bias.shape().dims() == [n]) && beta == 1.0;
    if is_gemm && !is_transposed && alpha == 1.0 && is_plain_bias && node.attributes.is_empty() {
        return None;
    }
    let data = weights.as_f32()?;
    let at = |i: usize| {
        let (k, j) = (i / n.max(1), i % n.max(1));
        alpha
            * if is_transposed {
                data[j * columns + k]
            } else {
                data[k * columns + j]
            }
    };
    let k = if is_transposed { columns } else { rows };
    let packed = TensorData::F32((0..data.len()).map(at).collect());
    let mut inputs = vec![
        Some(Source::Value(x)),
        Some(Source::Constant(
            Tensor::new(Shape(vec![k, n]), packed).ok()?,
        )),
    ];
    if let Some(bias) = bias {
        let data = bias.as_f32()?;
        let entry = |j: usize| beta * if data.len() == 1 { data[0] } else { data[j] };
        if data.len() != 1 && data.len() != n {
            return None;
        }
        inputs.push(Some(Source::Constant(Tensor::from_f32(
            (0..n).map(entry).collect(),
        ))));
    }
    Some(Rewrite::Replace(Replacement {
        op: "Gemm",
        attributes: [].into(),
        inputs,
        before: None,
    }))
}
