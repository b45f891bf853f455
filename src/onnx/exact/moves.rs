//! Operators that move elements and keep their bits.

use super::evaluate::{Case, filled};
use super::pick::{broadcast, each_index, join, positions, strides, take};
use crate::graph::{Shape, Tensor, TensorData, from_front};

/// Evaluates an operator that moves elements.
pub(super) fn evaluate(case: &Case<'_>) -> Option<Vec<Tensor>> {
    match case.node.op.as_str() {
        "Identity" | "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" => {
            case.only(case.input(0)?.data().clone())
        }
        "BitCast" => bit_cast(case),
        "Transpose" => transpose(case),
        "Concat" => concat(case),
        "Split" => split(case),
        "Slice" => slice(case),
        "Gather" => gather(case),
        "GatherElements" => gather_elements(case),
        "GatherND" => gather_nd(case),
        "ScatterND" => scatter_nd(case),
        "Scatter" | "ScatterElements" => scatter_elements(case),
        "Expand" => {
            let from = case.dims(0)?;
            picked(case, &broadcast(from, case.shape()?.dims()))
        }
        "Tile" => tile(case),
        "Pad" => pad(case),
        "Trilu" => triangle(case),
        "Compress" => compress(case),
        _ => None,
    }
}

/// Makes output 0 of elements of input 0.
fn picked(case: &Case<'_>, positions: &[usize]) -> Option<Vec<Tensor>> {
    case.only(take(case.input(0)?.data(), positions)?)
}

/// Types of one size share their bytes.
fn bit_cast(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let bytes = case.input(0)?.data().to_le_bytes();
    case.only(crate::onnx::tensor::from_le_bytes(case.dtype(), &bytes))
}

fn transpose(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let dims = case.dims(0)?;
    let steps = strides(dims);
    let order: Vec<usize> = match case.node.ints("perm") {
        Some(perm) => perm
            .iter()
            .map(|&axis| from_front(axis, dims.len()))
            .collect::<Option<_>>()?,
        None => (0..dims.len()).rev().collect(),
    };
    let of = |index: &[usize]| Some(index.iter().zip(&order).map(|(i, &a)| i * steps[a]).sum());
    picked(case, &positions(case.shape()?.dims(), of)?)
}

fn concat(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let tensors: Vec<&Tensor> = case.inputs.iter().copied().collect::<Option<_>>()?;
    let axis = case.axis(0, case.shape()?.rank())?;
    let pool = join(&tensors)?;
    // Where each tensor begins, along the axis and in the pool.
    let (mut at, mut offset) = (0, 0);
    let mut starts = Vec::new();
    for tensor in &tensors {
        starts.push((at, offset, strides(tensor.shape().dims())));
        at += tensor.shape().dims()[axis];
        offset += tensor.shape().len();
    }
    let of = |index: &[usize]| {
        let (at, offset, steps) = starts
            .iter()
            .zip(&tensors)
            .find(|((at, ..), tensor)| index[axis] < at + tensor.shape().dims()[axis])?
            .0;
        let inner: usize = index.iter().zip(steps).map(|(i, s)| i * s).sum();
        Some(offset + inner - at * steps[axis])
    };
    let positions = positions(case.shape()?.dims(), of)?;
    case.only(take(&pool, &positions)?)
}

fn split(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let data = case.input(0)?;
    let dims = data.shape().dims();
    let axis = case.axis(0, dims.len())?;
    let steps = strides(dims);
    let mut at = 0;
    let mut parts = Vec::new();
    for fact in case.facts {
        let of = |index: &[usize]| {
            let inner: usize = index.iter().zip(&steps).map(|(i, s)| i * s).sum();
            Some(inner + at * steps[axis])
        };
        let part = take(data.data(), &positions(fact.shape.dims(), of)?)?;
        parts.push(Tensor::new(fact.shape.clone(), part).ok()?);
        at += fact.shape.dims().get(axis)?;
    }
    Some(parts)
}

fn slice(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let dims = case.dims(0)?;
    let starts = case.ints_of("starts", 1)?;
    let axes = case
        .ints_of("axes", 3)
        .unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = case.ints(4).unwrap_or_else(|| vec![1; starts.len()]);
    let mut windows = vec![(0, 1); dims.len()];
    for ((&axis, &start), &step) in axes.iter().zip(&starts).zip(&steps) {
        let axis = from_front(axis, dims.len())?;
        let size = dims[axis] as i64;
        let from_front = if start < 0 {
            start.saturating_add(size)
        } else {
            start
        };
        let last = if step < 0 { size - 1 } else { size };
        windows[axis] = (from_front.clamp(0, last.max(0)), step);
    }
    let distances = strides(dims);
    let of = |index: &[usize]| {
        let mut position = 0;
        for (i, &(start, step)) in windows.iter().enumerate() {
            let at = start.checked_add(step.checked_mul(index[i] as i64)?)?;
            position += usize::try_from(at).ok()? * distances[i];
        }
        Some(position)
    };
    picked(case, &positions(case.shape()?.dims(), of)?)
}

fn gather(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let (dims, indices) = (case.dims(0)?, case.ints(1)?);
    let axis = case.axis(0, dims.len())?;
    let inner: usize = dims[axis + 1..].iter().product();
    let outer: usize = dims[..axis].iter().product();
    let mut list = Vec::new();
    for block in 0..outer {
        for &index in &indices {
            let start = (block * dims[axis] + from_front(index, dims[axis])?) * inner;
            list.extend(start..start + inner);
        }
    }
    picked(case, &list)
}

fn gather_elements(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let dims = case.dims(0)?;
    picked(case, &along_axis(case, dims)?)
}

/// Returns the positions in data of `dims` that indices along an axis name.
fn along_axis(case: &Case<'_>, dims: &[usize]) -> Option<Vec<usize>> {
    let (indices, axis) = (case.ints(1)?, case.axis(0, dims.len())?);
    let steps = strides(dims);
    let mut named = indices.iter();
    positions(case.dims(1)?, |index| {
        let at = from_front(*named.next()?, dims[axis])?;
        let all: usize = index.iter().zip(&steps).map(|(i, s)| i * s).sum();
        Some(all - index[axis] * steps[axis] + at * steps[axis])
    })
}

/// Returns where the blocks begin that the last dimension of the indices names, and their length.
fn blocks(case: &Case<'_>, n_batch_dims: usize) -> Option<(Vec<usize>, usize)> {
    let dims = case.dims(0)?;
    let (&depth, outer) = case.dims(1)?.split_last()?;
    let steps = strides(dims);
    let inner: usize = dims.get(n_batch_dims + depth..)?.iter().product();
    let indices = case.ints(1)?;
    let mut starts = Vec::new();
    let mut at = 0;
    let mut is_complete = true;
    each_index(outer, |index| {
        let mut start: usize = (0..n_batch_dims).map(|i| index[i] * steps[i]).sum();
        for i in 0..depth {
            let axis = n_batch_dims + i;
            match indices.get(at + i).and_then(|&v| from_front(v, dims[axis])) {
                Some(position) => start += position * steps[axis],
                None => is_complete = false,
            }
        }
        at += depth;
        starts.push(start);
    });
    is_complete.then_some((starts, inner))
}

fn gather_nd(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let n_batch_dims = usize::try_from(case.node.int("batch_dims", 0)).ok()?;
    let (starts, inner) = blocks(case, n_batch_dims)?;
    let list: Vec<usize> = starts.iter().flat_map(|&s| s..s + inner).collect();
    picked(case, &list)
}

fn scatter_nd(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let (starts, inner) = blocks(case, 0)?;
    let list: Vec<usize> = starts.iter().flat_map(|&s| s..s + inner).collect();
    overwrite(case, &list)
}

fn scatter_elements(case: &Case<'_>) -> Option<Vec<Tensor>> {
    overwrite(case, &along_axis(case, case.dims(0)?)?)
}

/// Replaces elements of input 0 by those of input 2.
fn overwrite(case: &Case<'_>, targets: &[usize]) -> Option<Vec<Tensor>> {
    if case.node.string("reduction", "none") != "none" {
        return None;
    }
    let (data, updates) = (case.input(0)?, case.input(2)?);
    let mut list: Vec<usize> = (0..data.shape().len()).collect();
    for (source, &target) in targets.iter().enumerate() {
        *list.get_mut(target)? = data.shape().len() + source;
    }
    case.only(take(&join(&[data, updates])?, &list)?)
}

fn tile(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let dims = case.dims(0)?;
    let steps = strides(dims);
    let of = |index: &[usize]| {
        let terms = index.iter().zip(dims).zip(&steps);
        Some(terms.map(|((i, d), s)| i % d * s).sum())
    };
    picked(case, &positions(case.shape()?.dims(), of)?)
}

fn pad(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let data = case.input(0)?;
    let dims = data.shape().dims();
    if case.node.string("mode", "constant") != "constant" || case.node.float("value", 0.0) != 0.0 {
        return None;
    }
    let pads = case.ints_of("pads", 1)?;
    let axes = case
        .ints(3)
        .unwrap_or_else(|| (0..dims.len() as i64).collect());
    let mut begins = vec![0; dims.len()];
    for (&axis, &begin) in axes.iter().zip(&pads) {
        begins[from_front(axis, dims.len())?] = begin;
    }
    let fill = match case.input(2) {
        Some(fill) => fill.clone(),
        None => filled(data.dtype(), &Shape::default())?,
    };
    let steps = strides(dims);
    let outside = data.shape().len();
    let of = |index: &[usize]| {
        let mut position = 0;
        for (i, &begin) in begins.iter().enumerate() {
            match usize::try_from(index[i] as i64 - begin) {
                Ok(at) if at < dims[i] => position += at * steps[i],
                _ => return Some(outside),
            }
        }
        Some(position)
    };
    let list = positions(case.shape()?.dims(), of)?;
    case.only(take(&join(&[data, &fill])?, &list)?)
}

fn triangle(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let data = case.input(0)?;
    let k = match case.input(1) {
        Some(_) => *case.ints(1)?.first()?,
        None => 0,
    };
    let is_upper = case.node.int("upper", 1) != 0;
    let rank = data.shape().rank();
    let mut at = 0;
    let of = |index: &[usize]| {
        let distance = (index[rank - 1] as i64).saturating_sub(index[rank - 2] as i64);
        let is_kept = if is_upper {
            distance >= k
        } else {
            distance <= k
        };
        at += 1;
        Some(if is_kept { at - 1 } else { data.shape().len() })
    };
    let list = positions(data.shape().dims(), of)?;
    let zero = filled(data.dtype(), &Shape::default())?;
    case.only(take(&join(&[data, &zero])?, &list)?)
}

fn compress(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let (dims, condition) = (case.dims(0)?, case.ints(1)?);
    let kept: Vec<usize> = (0..condition.len())
        .filter(|&i| condition[i] != 0)
        .collect();
    if !case.node.attributes.contains_key("axis") {
        return picked(case, &kept);
    }
    let (axis, steps) = (case.axis(0, dims.len())?, strides(dims));
    let of = |index: &[usize]| {
        let all: usize = index.iter().zip(&steps).map(|(i, s)| i * s).sum();
        Some(all - index[axis] * steps[axis] + kept.get(index[axis])? * steps[axis])
    };
    picked(case, &positions(case.shape()?.dims(), of)?)
}

/// Returns elements as a tensor of one dimension.
pub(super) fn flat(data: TensorData) -> Option<Tensor> {
    Tensor::new(Shape(vec![data.len()]), data).ok()
}
