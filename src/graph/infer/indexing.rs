//! Slices, gathers and reductions.

use super::fact::{Case, Fact, Facts, InferError, axes, axis, dim, mismatch, one};
use crate::graph::{DType, Shape};

/// `Slice`: bounds as attributes (operator sets before 10) or inputs.
pub(super) fn slice(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let mut dims = data.shape.dims().to_vec();
    let starts = case.ints("starts", 1)?.unwrap_or_default();
    let ends = case.ints("ends", 2)?.unwrap_or_default();
    let list = match case.ints("axes", 3)? {
        Some(list) => list,
        None => (0..starts.len() as i64).collect(),
    };
    let steps = case.ints_input(4)?.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), list.len(), steps.len()] != [starts.len(); 3] {
        return mismatch("starts, ends, axes and steps differ in length".to_owned());
    }
    for (i, &named) in list.iter().enumerate() {
        let axis = axis(named, dims.len())?;
        dims[axis] = slice_len(dims[axis], starts[i], ends[i], steps[i])?;
    }
    one(data.dtype, dims)
}

fn slice_len(size: usize, start: i64, end: i64, step: i64) -> Result<usize, InferError> {
    if step == 0 {
        return mismatch("a slice has step 0".to_owned());
    }
    let size = size as i64;
    let wrap = |value: i64| {
        if value < 0 {
            value.saturating_add(size)
        } else {
            value
        }
    };
    let (low, high) = if step > 0 { (0, size) } else { (-1, size - 1) };
    let start = wrap(start).clamp(low.max(0), high.max(low.max(0)));
    let end = wrap(end).clamp(low, high);
    let span = if step > 0 { end - start } else { start - end };
    dim(span.max(0).unsigned_abs().div_ceil(step.unsigned_abs()) as i64)
}

/// `Gather`.
pub(super) fn gather(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let dims = data.shape.dims();
    let axis = case.axis(0, dims.len())?;
    let mut shape = dims[..axis].to_vec();
    shape.extend(case.dims(1)?);
    shape.extend(&dims[axis + 1..]);
    one(data.dtype, shape)
}

/// `GatherElements`.
pub(super) fn gather_elements(case: &Case<'_>) -> Facts {
    let (data, indices) = (case.operand(0)?, case.dims(1)?);
    if data.shape.rank() != indices.len() {
        return mismatch(format!(
            "indices {indices:?} and data {} differ in rank",
            data.shape
        ));
    }
    one(data.dtype, indices.to_vec())
}

/// `GatherND`.
pub(super) fn gather_nd(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let (dims, indices) = (data.shape.dims(), case.dims(1)?);
    let batch = dim(case.node.int("batch_dims", 0))?;
    let Some((&depth, outer)) = indices.split_last() else {
        return mismatch("indices are a scalar".to_owned());
    };
    if batch.saturating_add(depth) > dims.len() || batch > outer.len() {
        return mismatch(format!("indices {indices:?} do not fit data {dims:?}"));
    }
    let mut shape = outer.to_vec();
    shape.extend(&dims[batch + depth..]);
    one(data.dtype, shape)
}

/// `OneHot`.
pub(super) fn one_hot(case: &Case<'_>) -> Facts {
    let indices = case.dims(0)?;
    let depth = case.operand(1)?.data.ok_or(InferError::DataDependent(1))?;
    let depth = match (depth.to_i64(), depth.as_f32()) {
        (Some(ints), _) => ints.first().copied(),
        (_, Some(floats)) => floats.first().map(|&v| v as i64),
        _ => None,
    };
    let Some(depth) = depth else {
        return mismatch("the depth is not a number".to_owned());
    };
    let mut shape = indices.to_vec();
    shape.insert(case.axis(-1, indices.len() + 1)?, dim(depth)?);
    one(case.operand(2)?.dtype, shape)
}

/// `TopK`: values and indices.
pub(super) fn top_k(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let mut dims = data.shape.dims().to_vec();
    let axis = case.axis(-1, dims.len())?;
    let k = match case.node.int("k", -1) {
        -1 => case
            .ints_input(1)?
            .and_then(|k| k.first().copied())
            .unwrap_or(-1),
        k => k,
    };
    dims[axis] = dim(k)?;
    let fact = |dtype| Fact {
        dtype,
        shape: Shape(dims.clone()),
    };
    Ok(Some(vec![fact(data.dtype), fact(DType::I64)]))
}

/// `ArgMax`, `ArgMin`.
pub(super) fn arg_reduce(case: &Case<'_>) -> Facts {
    let dims = case.dims(0)?;
    let axis = case.axis(0, dims.len())?;
    one(
        DType::I64,
        reduced(dims, &[axis], case.node.int("keepdims", 1) != 0),
    )
}

/// `ReduceMean` and its relatives: axes as an attribute or, later, an input.
pub(super) fn reduce(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let dims = data.shape.dims();
    let list = case.ints("axes", 1)?.unwrap_or_default();
    let over = if !list.is_empty() {
        axes(&list, dims.len())?
    } else if case.node.int("noop_with_empty_axes", 0) != 0 {
        Vec::new()
    } else {
        (0..dims.len()).collect()
    };
    one(
        data.dtype,
        reduced(dims, &over, case.node.int("keepdims", 1) != 0),
    )
}

fn reduced(dims: &[usize], over: &[usize], keep: bool) -> Vec<usize> {
    let sizes = dims.iter().enumerate().filter_map(|(i, &size)| {
        if !over.contains(&i) {
            Some(size)
        } else if keep {
            Some(1)
        } else {
            None
        }
    });
    sizes.collect()
}
