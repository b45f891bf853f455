//! Linear and cubic resampling: one pass an axis, the innermost first, so that all others run over
//! contiguous elements.

use serde_json::{Value, json};

use super::axis::Axis;
use super::taps::Taps;
use crate::backend::native::lower::loops::copy::{self, Move};
use crate::backend::native::lower::loops::node::LoopNode;
use crate::backend::native::lower::loops::{element, nest, remap};
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;
use crate::graph::{DType, Shape, Tensor, TensorData};

/// Most taps of an output that are written out.
const MAX_UNROLLED: usize = 8;

/// Makes the operation. Outputs out of the ranges `inside` are `outside`.
pub(super) fn operation(
    node: &LoopNode<'_>,
    axes: &[Axis],
    taps: &[Taps],
    inside: &[[usize; 2]],
    outside: f32,
) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = (node.required(0)?, node.main_output()?);
    if x.dtype == DType::Bool {
        return Err(node.refuse("Booleans are not interpolated"));
    }
    if u32::try_from(x.shape.len().max(y.shape.len())).is_err() {
        return Err(node.refuse("it has more than 2³² elements"));
    }
    let is_whole = |idx: usize| inside[idx] == [0, axes[idx].new];
    let is_kept = |idx: usize| taps[idx].is_identity(&axes[idx]) && is_whole(idx);
    let Some(first) = (0..axes.len()).find(|&idx| !is_kept(idx)) else {
        return as_it_is(node);
    };
    // Axes before the first that changes are outer loops.
    let outer: usize = x.dims()[..first].iter().product();
    let old = &x.dims()[first..];
    let new = &y.dims()[first..];
    let accumulator = match x.dtype {
        DType::F32 | DType::F16 => DType::F32,
        _ => DType::F64,
    };
    let mut passes = Vec::new();
    let mut tables = Vec::new();
    let mut dims = old.to_vec();
    let mut largest = 0;
    for axis in (0..dims.len()).rev() {
        let taps = &taps[first + axis];
        if taps.is_identity(&axes[first + axis]) && !(axis == 0 && passes.is_empty()) {
            continue;
        }
        let after: usize = dims[axis + 1..].iter().product();
        passes.push(json!({
            "before": dims[..axis].iter().product::<usize>(),
            "old": old[axis], "new": new[axis], "after": after, "taps": taps.n,
            "unrolled": taps.n <= MAX_UNROLLED,
        }));
        tables.extend(tables_of(taps, after, accumulator));
        dims[axis] = new[axis];
        largest = largest.max(dims.iter().product::<usize>());
    }
    let is_extrapolated = (0..axes.len()).any(|idx| !is_whole(idx));
    let facts = json!({
        "outer": outer,
        "x_block": old.iter().product::<usize>(),
        "y_block": new.iter().product::<usize>(),
        "storage": element::storage(x.dtype),
        "accumulator": accumulator.name(),
        "load": format!("({}) as {}", element::load(x.dtype, "s"), accumulator.name()),
        "store": element::store(y.dtype, &format!("(v as {})", element::rust_type(y.dtype))),
        "passes": passes,
        "room": largest,
        "extrapolated": is_extrapolated.then(|| extrapolated(new, &inside[first..], outside)),
    });
    // Two halves take turns; the last pass writes the output.
    let room = if passes.len() > 1 {
        2 * largest * accumulator.bytes()
    } else {
        0
    };
    Ok(vec![node.operation_with(
        "loops/resize.rs.j2",
        facts,
        &[x],
        tables,
        &[y],
        room,
    )])
}

fn as_it_is(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = (node.required(0)?, node.main_output()?);
    let one = Move {
        input: 0,
        output: 0,
        extents: x.dims().to_vec(),
        x: (0, copy::signed(&nest::dense(x.dims()))),
        y: (0, nest::dense(y.dims())),
    };
    copy::operation(node, &[x], &[y], &[], &[one])
}

/// Returns the places and weights of a pass over blocks of `after` elements.
fn tables_of(taps: &Taps, after: usize, accumulator: DType) -> [Tensor; 2] {
    let places = taps.indices.iter().map(|&idx| (idx * after) as u32);
    let weights = match accumulator {
        DType::F32 => TensorData::F32(taps.weights.iter().map(|&weight| weight as f32).collect()),
        _ => TensorData::F64(taps.weights.clone()),
    };
    let shape = Shape(vec![taps.weights.len()]);
    [
        remap::table(places.collect()),
        Tensor::new(shape, weights).expect("one dimension of its length"),
    ]
}

/// Returns what is needed to overwrite the outputs that lie outside of the input.
fn extrapolated(dims: &[usize], inside: &[[usize; 2]], outside: f32) -> Value {
    let conditions: Vec<String> = inside
        .iter()
        .enumerate()
        .filter(|(axis, range)| **range != [0, dims[*axis]])
        .map(|(axis, [start, end])| format!("i{axis} < {start} || i{axis} >= {end}"))
        .collect();
    json!({
        "extents": dims,
        "condition": conditions.join(" || "),
        "at": nest::place(&nest::dense(dims)),
        "value": element::float(f64::from(outside), DType::F32),
    })
}
