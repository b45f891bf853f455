//! `TopK`: the largest or smallest elements along an axis and where they are.

use serde_json::json;

use super::element;
use super::node::LoopNode;
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;
use crate::graph::DType;

/// Bytes of a key and an index in the kernel's memory.
const ENTRY: usize = 12;

/// Lowers `TopK`; `None` if it is another operator.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Result<Vec<Operation>, NotCovered>> {
    (node.node.op == "TopK").then(|| top_k(node))
}

/// `TopK`: always in order, as `sorted = 0` allows any.
fn top_k(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let x = node.required(0)?;
    let axis = node.axis(-1, x.dims().len())?;
    let (values, indices) = (node.output(0), node.output(1));
    let outputs: Vec<_> = [values, indices].into_iter().flatten().collect();
    let k = outputs.first().and_then(|y| y.dims().get(axis).copied());
    let n = x.dims()[axis];
    let k = k
        .filter(|k| (1..=n).contains(k) && u32::try_from(n).is_ok())
        .ok_or_else(|| node.refuse(format!("its k is not in 1 to {n}")))?;
    if x.dtype == DType::Bool {
        return Err(node.refuse("Booleans have no order"));
    }
    let facts = json!({
        "dtype": element::rust_type(x.dtype),
        "storage": element::storage(x.dtype),
        "sign": if node.node.int("largest", 1) == 0 { "<" } else { ">" },
        "outer": x.dims()[..axis].iter().product::<usize>(),
        "inner": x.dims()[axis + 1..].iter().product::<usize>(),
        "n": n,
        "k": k,
        "load": element::load(x.dtype, &format!(
            "x.add(i * {})", x.dims()[axis + 1..].iter().product::<usize>()
        )),
        "store": element::store(x.dtype, "v"),
        "values": values.map(|_| "y0"),
        "indices": indices.map(|_| if values.is_some() { "y1" } else { "y0" }),
    });
    let room = k * ENTRY;
    Ok(vec![node.operation(
        "loops/top_k.rs.j2",
        facts,
        &[x],
        &outputs,
        room,
    )])
}
