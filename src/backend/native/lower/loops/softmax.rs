//! `Softmax`, `LogSoftmax` and `Hardmax`.

use serde_json::json;

use super::element;
use super::node::LoopNode;
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;
use crate::graph::{DType, from_front};

/// Lowers an operator that relates the elements along an axis; `None` if it is not one.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Result<Vec<Operation>, NotCovered>> {
    if !matches!(node.node.op.as_str(), "Softmax" | "LogSoftmax" | "Hardmax") {
        return None;
    }
    Some(lower_node(node))
}

fn lower_node(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = (node.required(0)?, node.main_output()?);
    if !x.dtype.is_float() {
        return Err(node.refuse(format!("elements of {}", x.dtype)));
    }
    let (dims, rank) = (x.dims(), x.dims().len());
    // Before opset 13 the axis splits the extents in two, and may be their number.
    let splits = node.opset() < 13;
    let stated = node.node.int("axis", if splits { 1 } else { -1 });
    let axis = match from_front(stated, rank) {
        Some(axis) => axis,
        None if splits && stated == rank as i64 => rank,
        None if rank == 0 => 0,
        None => return Err(node.refuse("`axis` is out of range")),
    };
    let outer: usize = dims[..axis].iter().product();
    let (extent, inner): (usize, usize) = match dims[axis..] {
        [extent, ref after @ ..] if !splits => (extent, after.iter().product()),
        ref rest => (rest.iter().product(), 1),
    };
    let is_f32 = x.dtype == DType::F32 && node.node.op != "Hardmax";
    let template = match (is_f32, inner) {
        (true, 1) => "loops/softmax_rows.rs.j2",
        (true, _) => "loops/softmax_columns.rs.j2",
        _ => "loops/softmax.rs.j2",
    };
    let suffix = if x.dtype == DType::F64 { "" } else { "f" };
    let facts = json!({
        "units": outer, "extent": extent, "inner": inner, "op": node.node.op,
        "storage": element::storage(x.dtype), "type": element::rust_type(x.dtype),
        "load": element::load(x.dtype, "x.add(at)"),
        "store": element::store(x.dtype, "v"),
        "exp": format!("exp{suffix}"), "log": format!("log{suffix}"),
    });
    Ok(vec![node.operation(template, facts, &[x], &[y], 0)])
}
