//! `GridSample`: a value read between its elements, at places that another value holds.

use serde_json::json;

use super::copy;
use super::element;
use super::nest;
use super::node::LoopNode;
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;
use crate::graph::DType;

/// Lowers `GridSample`; `None` if it is another operator.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Result<Vec<Operation>, NotCovered>> {
    (node.node.op == "GridSample").then(|| grid_sample(node))
}

/// `GridSample`: `[n, c, …]` at `[n, …, coordinates]`, the last axis first.
fn grid_sample(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, grid, y) = (node.required(0)?, node.required(1)?, node.main_output()?);
    let &[n, c, ref sizes @ ..] = x.dims() else {
        return Err(node.refuse("its input is not `[n, c, …]`"));
    };
    let fits = !sizes.is_empty()
        && y.dims().get(..2) == Some(&[n, c])
        && grid.dims().last() == Some(&sizes.len())
        && grid.shape.len() * c == y.shape.len() * sizes.len()
        && grid.dtype.is_float();
    if !fits {
        return Err(node.refuse("its grid does not fit its input"));
    }
    if x.shape.is_empty() && !y.shape.is_empty() {
        return Err(node.refuse("there is nothing to read"));
    }
    // The names before and since operator set 20.
    let taps = match node.node.string("mode", "linear") {
        "nearest" => 1,
        "linear" | "bilinear" => 2,
        "cubic" | "bicubic" => 4,
        other => return Err(node.refuse(format!("its mode is `{other}`"))),
    };
    let padding = node.node.string("padding_mode", "zeros");
    if !matches!(padding, "zeros" | "border" | "reflection") {
        return Err(node.refuse(format!("its padding is `{padding}`")));
    }
    if taps > 1 && x.dtype == DType::Bool {
        return Err(node.refuse("Booleans are not interpolated"));
    }
    let float = match x.dtype {
        DType::F32 | DType::F16 if grid.dtype != DType::F64 => DType::F32,
        _ => DType::F64,
    };
    // What is nearest is moved as it is.
    let (storage, load, store) = if taps == 1 {
        let storage = copy::storage(x.dtype);
        (storage, "*s".to_owned(), "v".to_owned())
    } else {
        (
            element::storage(x.dtype),
            format!("({}) as {}", element::load(x.dtype, "s"), float.name()),
            element::store(y.dtype, &format!("(v as {})", element::rust_type(y.dtype))),
        )
    };
    let facts = json!({
        "n": n,
        "channels": c,
        "points": y.dims()[2..].iter().product::<usize>(),
        "sizes": sizes,
        "strides": nest::dense(sizes),
        "plane": sizes.iter().product::<usize>(),
        "storage": storage,
        "load": load,
        "store": store,
        "float": float.name(),
        "suffix": if float == DType::F32 { "f" } else { "" },
        "grid": element::storage(grid.dtype),
        "load_grid": element::load(grid.dtype, "g"),
        "taps": taps,
        "padding": padding,
        "align_corners": node.node.int("align_corners", 0) != 0,
    });
    Ok(vec![node.operation(
        "loops/grid_sample.rs.j2",
        facts,
        &[x, grid],
        &[y],
        0,
    )])
}
