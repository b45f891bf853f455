//! Pools of any rank and type: `MaxPool`, `AveragePool`, `LpPool`, their global forms, and
//! `MaxUnpool`.

use serde_json::{Value, json};

use super::element;
use super::nest;
use super::node::{Known, LoopNode};
use super::sliding::Window;
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;
use crate::graph::DType;

type Lowered = Result<Vec<Operation>, NotCovered>;

/// Lowers a pool; `None` if the node is none.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Lowered> {
    let op = node.node.op.as_str();
    match op {
        "MaxPool" | "AveragePool" | "LpPool" => Some(windows(node, op)),
        "GlobalMaxPool" | "GlobalAveragePool" | "GlobalLpPool" => {
            Some(whole(node, op.trim_start_matches("Global")))
        }
        "MaxUnpool" => Some(unpool(node)),
        _ => None,
    }
}

fn windows(node: &LoopNode<'_>, kind: &str) -> Lowered {
    let (x, y) = (node.required(0)?, node.main_output()?);
    let kernel: Vec<usize> = match node.node.ints("kernel_shape") {
        Some(kernel) if kernel.iter().all(|&size| size > 0) => {
            kernel.iter().map(|&size| size as usize).collect()
        }
        _ => return Err(node.refuse("it has no usable `kernel_shape`")),
    };
    let rank = x.dims().len();
    if rank < 3 || y.dims().len() != rank || kernel.len() != rank - 2 {
        return Err(node.refuse(format!("input {} with kernel {kernel:?}", x.shape)));
    }
    let (input, output) = (&x.dims()[2..], &y.dims()[2..]);
    let window = Window::read(node, &kernel, input, output)?;
    let counts_pads = kind == "AveragePool" && node.node.int("count_include_pad", 0) != 0;
    let index_strides: Vec<usize> = if node.node.int("storage_order", 0) == 0 {
        nest::dense(input)
    } else {
        // Columns first: as if the spatial axes were in reverse.
        let reversed: Vec<usize> = input.iter().rev().copied().collect();
        nest::dense(&reversed).into_iter().rev().collect()
    };
    let (x_strides, y_strides) = (nest::dense(input), nest::dense(output));
    let axes: Vec<Value> = (0..kernel.len())
        .map(|axis| {
            // How far a window reaches that counts padding as elements.
            let counted = input[axis] as i64 + window.end[axis];
            json!({
                "input": input[axis], "output": output[axis], "counted": counted,
                "kernel": kernel[axis], "stride": window.stride[axis],
                "dilation": window.dilation[axis], "pad": window.begin[axis],
                "x": x_strides[axis], "y": y_strides[axis], "index": index_strides[axis],
            })
        })
        .collect();
    operation(node, kind, x, y, &axes, counts_pads)
}

/// A global pool is one window over all spatial axes.
fn whole(node: &LoopNode<'_>, kind: &str) -> Lowered {
    let (x, y) = (node.required(0)?, node.main_output()?);
    if x.dims().len() < 2 {
        return Err(node.refuse(format!("input {} has no channels", x.shape)));
    }
    let size: usize = x.dims()[2..].iter().product();
    let axis = json!({
        "input": size, "output": 1, "counted": size, "kernel": size, "stride": 1, "dilation": 1,
        "pad": 0, "x": 1, "y": 1, "index": 1,
    });
    operation(node, kind, x, y, &[axis], false)
}

fn operation(
    node: &LoopNode<'_>,
    kind: &str,
    x: Known<'_>,
    y: Known<'_>,
    axes: &[Value],
    counts_pads: bool,
) -> Lowered {
    let dtype = x.dtype;
    let is_max = kind == "MaxPool";
    if dtype == DType::Bool || !(is_max || dtype.is_float()) {
        return Err(node.refuse(format!("elements of {dtype}")));
    }
    let indices = node.output(1);
    if indices.is_some_and(|indices| indices.dtype != DType::I64) {
        return Err(node.refuse("its indices are not i64"));
    }
    let power = node.node.int("p", 2);
    if kind == "LpPool" && power < 1 {
        return Err(node.refuse(format!("`p` is {power}")));
    }
    let (term, result) = match (kind, power) {
        ("AveragePool", _) => ("v".to_owned(), "sum / count as f64".to_owned()),
        (_, 1) => ("v.abs()".to_owned(), "sum".to_owned()),
        (_, 2) => ("v * v".to_owned(), "sqrt(sum)".to_owned()),
        _ => (
            format!("pow(v.abs(), {power}f64)"),
            format!("pow(sum, 1.0 / {power}f64)"),
        ),
    };
    let least = if dtype.is_float() {
        element::float(f64::NEG_INFINITY, dtype)
    } else {
        format!("{}::MIN", dtype.name())
    };
    let spatial = |dims: &[usize]| dims[2..].iter().product::<usize>();
    let facts = json!({
        "is_max": is_max, "axes": axes, "counts_pads": counts_pads,
        "planes": x.dims()[..2].iter().product::<usize>(),
        "x_plane": spatial(x.dims()), "y_plane": spatial(y.dims()),
        "type": element::rust_type(dtype), "storage": element::storage(dtype),
        "load": element::load(dtype, "x.add(at)"),
        "store": element::store(dtype, "v"),
        "least": least, "term": term, "result": result,
        "indices": indices.is_some(),
    });
    let mut outputs = vec![y];
    outputs.extend(indices);
    Ok(vec![node.operation(
        "loops/pooling.rs.j2",
        facts,
        &[x],
        &outputs,
        0,
    )])
}

/// `MaxUnpool`: indices count within the output that the window gives; `output_shape` puts that
/// into the corner of a larger one.
fn unpool(node: &LoopNode<'_>) -> Lowered {
    let (x, indices, y) = (node.required(0)?, node.required(1)?, node.main_output()?);
    let kernel: Vec<usize> = match node.node.ints("kernel_shape") {
        Some(kernel) if kernel.iter().all(|&size| size > 0) => {
            kernel.iter().map(|&size| size as usize).collect()
        }
        _ => return Err(node.refuse("it has no usable `kernel_shape`")),
    };
    let rank = x.dims().len();
    let fits = rank > 2 && y.dims().len() == rank && kernel.len() == rank - 2;
    if !fits || indices.shape != x.shape || indices.dtype != DType::I64 || x.dtype != y.dtype {
        return Err(node.refuse(format!("input {} with kernel {kernel:?}", x.shape)));
    }
    let (input, output) = (&x.dims()[2..], &y.dims()[2..]);
    let window = Window::read(node, &kernel, input, input)?;
    let mut inner = x.dims()[..2].to_vec();
    for axis in 0..kernel.len() {
        let full = input[axis].saturating_sub(1) * window.stride[axis] + kernel[axis];
        let cut = full as i64 - window.begin[axis] - window.end[axis];
        inner.push(usize::try_from(cut).unwrap_or(0));
    }
    if inner[2..]
        .iter()
        .zip(output)
        .any(|(inner, all)| inner > all)
    {
        return Err(node.refuse(format!("an output {} that cuts elements off", y.shape)));
    }
    let (from, to) = (nest::dense(&inner), nest::dense(y.dims()));
    let axes: Vec<Value> = (0..rank)
        .map(|axis| json!({ "from": from[axis].max(1), "to": to[axis], "extent": inner[axis].max(1) }))
        .collect();
    let facts = json!({
        "element": super::copy::storage(x.dtype),
        "n": x.shape.len(), "len": y.shape.len(), "axes": axes,
        "limit": inner.iter().product::<usize>(),
    });
    Ok(vec![node.operation(
        "loops/unpool.rs.j2",
        facts,
        &[x, indices],
        &[y],
        0,
    )])
}
