//! `Det`: determinants of square matrices, by elimination in f64.

use serde_json::json;

use super::element;
use super::node::LoopNode;
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;

/// Lowers `Det`; `None` if the node is another operator.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Result<Vec<Operation>, NotCovered>> {
    (node.node.op == "Det").then(|| determinant(node))
}

fn determinant(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = (node.required(0)?, node.main_output()?);
    let size = match x.dims() {
        [.., rows, columns] if rows == columns => *rows,
        _ => return Err(node.refuse(format!("input {} is not square", x.shape))),
    };
    if !x.dtype.is_float() || y.dtype != x.dtype {
        return Err(node.refuse(format!("elements of {}", x.dtype)));
    }
    let facts = json!({
        "n": size, "matrices": y.shape.len(),
        "type": element::rust_type(x.dtype), "storage": element::storage(x.dtype),
        "load": element::load(x.dtype, "x.add(i)"), "store": element::store(x.dtype, "v"),
    });
    let room = (size * size * 8).max(8);
    Ok(vec![node.operation(
        "loops/determinant.rs.j2",
        facts,
        &[x],
        &[y],
        room,
    )])
}
