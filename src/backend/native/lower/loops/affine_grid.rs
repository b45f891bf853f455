//! `AffineGrid`: the places at which `GridSample` reads for an affine transformation.

use serde_json::json;

use super::element;
use super::nest;
use super::node::LoopNode;
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;
use crate::graph::DType;

/// Lowers `AffineGrid`; `None` if it is another operator.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Result<Vec<Operation>, NotCovered>> {
    (node.node.op == "AffineGrid").then(|| affine_grid(node))
}

/// `AffineGrid`: `[n, d, d + 1]` matrices to `[n, …, d]` places, the last axis first.
fn affine_grid(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (theta, y) = (node.required(0)?, node.main_output()?);
    let &[n, ref sizes @ .., d] = y.dims() else {
        return Err(node.refuse("its output is not `[n, …, d]`"));
    };
    if sizes.len() != d || theta.dims() != [n, d, d + 1] || !y.dtype.is_float() {
        return Err(node.refuse("its matrices do not fit its output"));
    }
    let is_aligned = node.node.int("align_corners", 0) != 0;
    if is_aligned && sizes.contains(&1) {
        return Err(node.refuse("an axis of one element has no corners to align"));
    }
    let float = match y.dtype {
        DType::F64 => "f64",
        _ => "f32",
    };
    let axes: Vec<_> = sizes
        .iter()
        .rev()
        .enumerate()
        .map(|(column, size)| {
            let axis = d - column;
            let place = if is_aligned {
                format!("-1.0 + (2 * i{axis}) as {float} / {}.0", size - 1)
            } else {
                format!("((2 * i{axis} + 1) as {float} / {size}.0) - 1.0")
            };
            let factor = element::load(theta.dtype, &format!("row.add({column})"));
            format!("({factor}) * ({place})")
        })
        .collect();
    let shift = element::load(theta.dtype, &format!("row.add({d})"));
    let sum = format!("{} + {shift}", axes.join(" + "));
    let expression = format!(
        "{{ let row = x0.add((i0 * {d} + i{}) * {}); let v: {float} = {sum}; {} }}",
        d + 1,
        d + 1,
        element::store(y.dtype, "v")
    );
    let facts = json!({
        "element": element::storage(y.dtype),
        "inputs": [element::storage(theta.dtype)],
        "extents": y.dims(),
        "lets": Vec::<String>::new(),
        "at": nest::place(&nest::dense(y.dims())),
        "expression": expression,
    });
    Ok(vec![node.operation(
        "loops/generate.rs.j2",
        facts,
        &[theta],
        &[y],
        0,
    )])
}
