//! Operators that write elements or rows by index into a copy of their input: `ScatterElements`
//! (once `Scatter`), `ScatterND`.
//!
//! Whatever an index holds when the kernel runs, it writes inside of the output. Updates are
//! applied in their order.

use serde_json::json;

use super::element;
use super::gather::{index, offset, replaced};
use super::nest;
use super::node::{Known, LoopNode};
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;
use crate::graph::{DType, from_front};

/// Lowers an operator that scatters; `None` if it is not one.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Result<Vec<Operation>, NotCovered>> {
    Some(match node.node.op.as_str() {
        "Scatter" | "ScatterElements" => scatter_elements(node),
        "ScatterND" => scatter_nd(node),
        "TensorScatter" => tensor_scatter(node),
        _ => return None,
    })
}

/// Loops that write `run` elements each.
struct Writes {
    extents: Vec<usize>,
    /// The expressions of `j0`, `j1`, … in terms of `i0`, `i1`, ….
    indices: Vec<String>,
    /// Where the run is written, in terms of all of these.
    y_at: String,
    /// Distances of the runs of updates.
    u_strides: Vec<usize>,
    run: usize,
}

fn operation(
    node: &LoopNode<'_>,
    indices: Option<Known<'_>>,
    updates: Known<'_>,
    writes: &Writes,
) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = (node.required(0)?, node.main_output()?);
    let n_updates = writes.extents.iter().product::<usize>() * writes.run;
    if x.shape != y.shape || n_updates != updates.shape.len() {
        return Err(node.refuse("its shapes do not fit"));
    }
    if x.shape.is_empty() && n_updates > 0 {
        return Err(node.refuse("there is nothing to write into"));
    }
    let combined = combination(node, y.dtype)?;
    let facts = json!({
        "element": element::storage(y.dtype),
        "index": indices.map_or("i64", |indices| element::storage(indices.dtype)),
        "has_indices": indices.is_some(),
        "len": y.shape.len(),
        "extents": writes.extents,
        "indices": writes.indices,
        "y_at": writes.y_at,
        "u_at": nest::place(&writes.u_strides),
        "run": writes.run,
        "combined": combined.map(|combined| json!({
            "expression": combined,
            "dtype": element::rust_type(y.dtype),
            "old": element::load(y.dtype, "y.add(r)"),
            "update": element::load(y.dtype, "u.add(r)"),
            "store": element::store(y.dtype, "v"),
        })),
    });
    let inputs: Vec<Known<'_>> = [x, updates].into_iter().chain(indices).collect();
    Ok(vec![node.operation(
        "loops/scatter.rs.j2",
        facts,
        &inputs,
        &[y],
        0,
    )])
}

/// Returns what becomes of an old element `a` and its update `b`; `None` if the update replaces it.
fn combination(node: &LoopNode<'_>, dtype: DType) -> Result<Option<&'static str>, NotCovered> {
    let is_float = dtype.is_float();
    let reduction = node.node.string("reduction", "none");
    Ok(Some(match (reduction, dtype) {
        ("none", _) => return Ok(None),
        (_, DType::Bool) => {
            return Err(node.refuse(format!("its reduction is `{reduction}`, of Booleans")));
        }
        ("add", _) if is_float => "a + b",
        ("add", _) => "a.wrapping_add(b)",
        ("mul", _) if is_float => "a * b",
        ("mul", _) => "a.wrapping_mul(b)",
        // What is not a number stays.
        ("max", _) => "if a > b || a != a { a } else { b }",
        ("min", _) => "if a < b || a != a { a } else { b }",
        _ => return Err(node.refuse(format!("its reduction is `{reduction}`"))),
    }))
}

/// `ScatterElements`: an index replaces its own place along `axis`.
fn scatter_elements(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, indices, updates) = (node.required(0)?, node.required(1)?, node.required(2)?);
    let (index, y_at) = replaced(node, x, indices)?;
    let writes = Writes {
        extents: indices.dims().to_vec(),
        indices: vec![index],
        y_at,
        u_strides: nest::dense(indices.dims()),
        run: 1,
    };
    operation(node, Some(indices), updates, &writes)
}

/// `ScatterND`: the last axis of the indices names a place in the first axes.
fn scatter_nd(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, indices, updates) = (node.required(0)?, node.required(1)?, node.required(2)?);
    let dims = x.dims();
    let Some((&depth, outer)) = indices.dims().split_last() else {
        return Err(node.refuse("its indices are a scalar"));
    };
    if depth > dims.len() {
        return Err(node.refuse("its indices do not fit its data"));
    }
    let run: usize = dims[depth..].iter().product();
    let writes = Writes {
        extents: vec![outer.iter().product()],
        indices: (0..depth)
            .map(|idx| index(&format!("i0 * {depth} + {idx}"), dims[idx]))
            .collect(),
        y_at: offset(&[0], &nest::dense(dims)[..depth]),
        u_strides: vec![run],
        run,
    };
    operation(node, Some(indices), updates, &writes)
}

/// `TensorScatter`: rows written into a cache along `axis` from an index of each batch on, around
/// its end if `mode` is `circular`.
fn tensor_scatter(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, updates, starts) = (node.required(0)?, node.required(1)?, node.input(2));
    let dims = x.dims();
    let axis = from_front(node.node.int("axis", -2), dims.len())
        .filter(|&axis| axis > 0 && updates.dims().len() == dims.len())
        .ok_or_else(|| node.refuse("`axis` is out of range"))?;
    let (n_batches, size, n_rows) = (dims[0], dims[axis], updates.dims()[axis]);
    if n_rows > size || starts.is_some_and(|starts| starts.shape.len() != n_batches) {
        return Err(node.refuse("its update does not fit its data"));
    }
    let middle: usize = dims[1..axis].iter().product();
    let run: usize = dims[axis + 1..].iter().product();
    let start = if starts.is_some() {
        "*k.add(i0) as i64"
    } else {
        "0i64"
    };
    let row = match node.node.string("mode", "linear") {
        "linear" => format!("index(({start}).wrapping_add(i2 as i64), {size})"),
        "circular" => format!("({start}).wrapping_add(i2 as i64).rem_euclid({size}) as usize"),
        other => return Err(node.refuse(format!("its mode is `{other}`"))),
    };
    let writes = Writes {
        extents: vec![n_batches, middle, n_rows],
        indices: vec![row],
        y_at: offset(&[middle * size * run, size * run, 0], &[run]),
        u_strides: vec![middle * n_rows * run, n_rows * run, run],
        run,
    };
    operation(node, starts, updates, &writes)
}
