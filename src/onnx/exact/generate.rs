//! Operators that make values from sizes, bounds and conditions.

use std::cmp::Ordering;

use super::evaluate::{Case, filled};
use super::moves::flat;
use super::number::Numbers;
use super::pick::{broadcast, each_index, strides, take};
use crate::graph::{Attribute, Shape, Tensor, TensorData};

/// Evaluates an operator that makes values.
pub(super) fn evaluate(case: &Case<'_>) -> Option<Vec<Tensor>> {
    match case.node.op.as_str() {
        "ConstantOfShape" => constant_of_shape(case),
        "Range" => range(case),
        "EyeLike" => eye_like(case),
        "OneHot" => one_hot(case),
        "NonZero" => non_zero(case),
        "Unique" => unique(case),
        _ => None,
    }
}

fn constant_of_shape(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let shape = case.shape()?;
    match case.node.attributes.get("value") {
        Some(Attribute::Tensor(value)) => {
            case.only(take(value.data(), &broadcast(&[1], shape.dims()))?)
        }
        _ => Some(vec![filled(case.dtype(), shape)?]),
    }
}

fn range(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let read = |idx| Some(Numbers::read(case.input(idx)?));
    let shape = case.shape()?;
    let n = shape.len();
    let numbers = match (read(0)?, read(2)?) {
        (Numbers::Int(start), Numbers::Int(delta)) => {
            let (start, delta) = (start.first()?, delta.first()?);
            Numbers::Int((0..n as i128).map(|i| start + i * delta).collect())
        }
        (Numbers::Float(start), Numbers::Float(delta)) => {
            let (&start, &delta) = (start.first()?, delta.first()?);
            Numbers::Float((0..n).map(|i| start + i as f64 * delta).collect())
        }
        _ => return None,
    };
    Some(vec![numbers.write(case.dtype(), shape)?])
}

fn eye_like(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let k = case.node.int("k", 0);
    let shape = case.shape()?;
    let mut data = Vec::new();
    each_index(shape.dims(), |index| {
        let distance = index[1] as i64 - index[0] as i64;
        data.push(i128::from(distance == k));
    });
    Some(vec![Numbers::Int(data).write(case.dtype(), shape)?])
}

fn one_hot(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let indices = match Numbers::read(case.input(0)?) {
        Numbers::Int(data) => data,
        Numbers::Float(data) => data.into_iter().map(|v| v as i128).collect(),
    };
    let shape = case.shape()?;
    let axis = case.axis(-1, shape.rank())?;
    let depth = *shape.dims().get(axis)? as i128;
    let steps = strides(case.dims(0)?);
    let mut positions = Vec::new();
    each_index(shape.dims(), |index| {
        let outer = index.iter().enumerate().filter(|(i, _)| *i != axis);
        let source: usize = outer.zip(&steps).map(|((_, i), s)| i * s).sum();
        let named = indices[source];
        let named = if named < 0 { named + depth } else { named };
        positions.push(usize::from(named == index[axis] as i128));
    });
    case.only(take(case.input(2)?.data(), &positions)?)
}

fn non_zero(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let data = case.input(0)?;
    let is_set: Vec<bool> = match Numbers::read(data) {
        Numbers::Int(data) => data.into_iter().map(|v| v != 0).collect(),
        Numbers::Float(data) => data.into_iter().map(|v| v != 0.0).collect(),
    };
    let rank = data.shape().rank();
    let mut found: Vec<Vec<i64>> = vec![Vec::new(); rank];
    let mut position = 0;
    each_index(data.shape().dims(), |index| {
        if is_set[position] {
            for (list, &i) in found.iter_mut().zip(index) {
                list.push(i as i64);
            }
        }
        position += 1;
    });
    case.only(TensorData::I64(found.concat()))
}

/// Values, first positions, which value each element is, and how often each occurs.
///
/// Its shapes are those of the results: there is no rule for them.
fn unique(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let data = case.input(0)?;
    let dims = data.shape().dims();
    // Slices along the axis, or single elements of the flattened input.
    let axis = match case.node.attributes.get("axis") {
        Some(_) => Some(case.axis(0, dims.len())?),
        None => None,
    };
    let n = axis.map_or(data.shape().len(), |axis| dims[axis]);
    let mut slices: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut position = 0;
    each_index(dims, |index| {
        slices[axis.map_or(position, |axis| index[axis])].push(position);
        position += 1;
    });
    let numbers = Numbers::read(data);
    let compare = |lhs: &[usize], rhs: &[usize]| {
        let pairs = lhs.iter().zip(rhs);
        let orders = pairs.map(|(&a, &b)| match &numbers {
            Numbers::Int(data) => data[a].cmp(&data[b]),
            Numbers::Float(data) => data[a].total_cmp(&data[b]),
        });
        orders.fold(Ordering::Equal, Ordering::then)
    };
    // Stable: of equal slices the first one leads its group.
    let mut ranked: Vec<usize> = (0..n).collect();
    ranked.sort_by(|&a, &b| compare(&slices[a], &slices[b]));
    let mut firsts: Vec<usize> = Vec::new();
    let mut group = vec![0; n];
    for &slice in &ranked {
        let is_new = firsts
            .last()
            .is_none_or(|&last| compare(&slices[last], &slices[slice]).is_ne());
        if is_new {
            firsts.push(slice);
        }
        group[slice] = firsts.len() - 1;
    }
    if case.node.int("sorted", 1) == 0 {
        // Groups in the order in which they are first seen.
        let mut order: Vec<usize> = (0..firsts.len()).collect();
        order.sort_unstable_by_key(|&i| firsts[i]);
        let mut renamed = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            renamed[old] = new;
        }
        for group in &mut group {
            *group = renamed[*group];
        }
        firsts.sort_unstable();
    }
    let mut counts = vec![0i64; firsts.len()];
    for &group in &group {
        counts[group] += 1;
    }
    let inverse = group.into_iter().map(|group| group as i64).collect();
    let mut shape = vec![firsts.len()];
    let mut picks: Vec<usize> = firsts.iter().flat_map(|&i| slices[i].clone()).collect();
    if let Some(axis) = axis {
        shape = dims.to_vec();
        shape[axis] = firsts.len();
        // In the order of the input's axes, not slice by slice.
        let steps = strides(dims);
        picks.clear();
        each_index(&shape, |index| {
            let all: usize = index.iter().zip(&steps).map(|(i, s)| i * s).sum();
            picks.push(all - index[axis] * steps[axis] + firsts[index[axis]] * steps[axis]);
        });
    }
    let values = take(data.data(), &picks)?;
    Some(vec![
        Tensor::new(Shape(shape), values).ok()?,
        flat(TensorData::I64(firsts.iter().map(|&i| i as i64).collect()))?,
        flat(TensorData::I64(inverse))?,
        flat(TensorData::I64(counts))?,
    ])
}
