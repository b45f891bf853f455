//! Running sums and products: `CumSum`, `CumProd`.

use serde_json::json;

use super::element;
use super::node::LoopNode;
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;
use crate::graph::{DType, from_front};

/// Lowers a running operator; `None` if it is not one.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Result<Vec<Operation>, NotCovered>> {
    Some(match node.node.op.as_str() {
        "CumSum" => scan(node, "+", "wrapping_add", 0),
        "CumProd" => scan(node, "*", "wrapping_mul", 1),
        _ => return None,
    })
}

/// Combines along an axis, floating-point numbers in f64.
fn scan(
    node: &LoopNode<'_>,
    sign: &str,
    method: &str,
    neutral: u8,
) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = (node.required(0)?, node.main_output()?);
    let axis = node.constant_ints(1)?;
    let axis = match axis.as_deref() {
        Some(&[axis]) => from_front(axis, x.dims().len()),
        _ => None,
    };
    let axis = axis.ok_or_else(|| node.refuse("its axis is not one of its input's"))?;
    if x.dtype == DType::Bool {
        return Err(node.refuse("Booleans have no sum"));
    }
    let is_float = x.dtype.is_float();
    let dtype = element::rust_type(x.dtype);
    let facts = json!({
        "dtype": dtype,
        "storage": element::storage(x.dtype),
        "accumulator": if is_float { "f64" } else { dtype },
        "neutral": if is_float { format!("{neutral}.0") } else { neutral.to_string() },
        "combined": if is_float { format!("acc {sign} b") } else { format!("acc.{method}(b)") },
        "outer": x.dims()[..axis].iter().product::<usize>(),
        "inner": x.dims()[axis + 1..].iter().product::<usize>(),
        "n": x.dims()[axis],
        "reverse": node.node.int("reverse", 0) != 0,
        "exclusive": node.node.int("exclusive", 0) != 0,
        "load": element::load(x.dtype, "x"),
        "store": element::store(x.dtype, "v"),
    });
    Ok(vec![node.operation(
        "loops/scan.rs.j2",
        facts,
        &[x],
        &[y],
        0,
    )])
}
