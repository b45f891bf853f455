//! Slices, gathers and what picks elements.

use super::fact::{Case, Fact, Facts, InferError, axes, axis, dim, mismatch, one};
use super::scatter::index_type;
use crate::graph::{DType, Shape, Tensor, TensorData};

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
    axes(&list, dims.len())?;
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

/// `Gather` (1, 11, 13).
pub(super) fn gather(case: &Case<'_>) -> Facts {
    index_type(case)?;
    let data = case.operand(0)?;
    let dims = data.shape.dims();
    let axis = case.axis(0, dims.len())?;
    let mut shape = dims[..axis].to_vec();
    shape.extend(case.dims(1)?);
    shape.extend(&dims[axis + 1..]);
    one(data.dtype, shape)
}

/// `GatherElements` (11, 13).
pub(super) fn gather_elements(case: &Case<'_>) -> Facts {
    index_type(case)?;
    let (data, indices) = (case.operand(0)?, case.dims(1)?);
    if data.shape.rank() != indices.len() {
        return mismatch(format!(
            "indices {indices:?} and data {} differ in rank",
            data.shape
        ));
    }
    let along = case.axis(0, indices.len())?;
    let dims = data.shape.dims();
    if (0..dims.len()).any(|i| i != along && indices[i] > dims[i]) {
        return mismatch(format!("indices {indices:?} do not fit data {dims:?}"));
    }
    one(data.dtype, indices.to_vec())
}

/// `GatherND` (11, 12, 13).
pub(super) fn gather_nd(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let (dims, indices) = (data.shape.dims(), case.dims(1)?);
    let batch = dim(case.node.int("batch_dims", 0))?;
    let Some((&depth, outer)) = indices.split_last() else {
        return mismatch("indices are a scalar".to_owned());
    };
    index_type(case)?;
    let fits = batch.saturating_add(depth) <= dims.len()
        && batch <= outer.len()
        && outer[..batch] == dims[..batch];
    if !fits {
        return mismatch(format!("indices {indices:?} do not fit data {dims:?}"));
    }
    let mut shape = outer.to_vec();
    shape.extend(&dims[batch + depth..]);
    one(data.dtype, shape)
}

/// `TopK` (1, 10, 11, 24): values and indices.
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
    let k = dim(k)?;
    if k > dims[axis] {
        return mismatch(format!(
            "the {k} largest of {} along axis {axis}",
            dims[axis]
        ));
    }
    dims[axis] = k;
    let fact = |dtype| Fact {
        dtype,
        shape: Shape(dims.clone()),
    };
    Ok(Some(vec![fact(data.dtype), fact(DType::I64)]))
}

/// `NonZero` (9, 13): `[rank, n]`, of a constant.
pub(super) fn non_zero(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let tensor = data.data.ok_or(InferError::DataDependent(0))?;
    let n = n_set(tensor);
    one(DType::I64, vec![data.shape.rank(), n])
}

/// `Unique` (11, 28): has the shape that its constant input says.
pub(super) fn unique(case: &Case<'_>) -> Facts {
    match case.operand(0)?.data {
        Some(_) => Ok(None),
        None => Err(InferError::DataDependent(0)),
    }
}

/// `NonMaxSuppression` (10, 11): how many boxes are left depends on the scores.
pub(super) fn non_max_suppression(case: &Case<'_>) -> Facts {
    case.operand(1)?;
    Err(InferError::DataDependent(1))
}

/// `Compress` (9, 11), by a constant condition; without an axis the input is flattened.
pub(super) fn compress(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let condition = case.operand(1)?;
    let tensor = condition.data.ok_or(InferError::DataDependent(1))?;
    if condition.dtype != DType::Bool || condition.shape.rank() != 1 {
        return mismatch(format!(
            "the condition is {} {}",
            condition.dtype, condition.shape
        ));
    }
    let mut dims = data.shape.dims().to_vec();
    let n = n_set(tensor);
    if case.node.attributes.contains_key("axis") {
        let along = case.axis(0, dims.len())?;
        if condition.shape.len() > dims[along] {
            return mismatch(format!("condition {} for {dims:?}", condition.shape));
        }
        dims[along] = n;
        return one(data.dtype, dims);
    }
    one(data.dtype, vec![n])
}

/// Returns how many elements are not zero.
fn n_set(tensor: &Tensor) -> usize {
    match tensor.data() {
        TensorData::F32(data) => data.iter().filter(|v| **v != 0.0).count(),
        TensorData::F64(data) => data.iter().filter(|v| **v != 0.0).count(),
        // All bits but the sign: minus zero is zero.
        TensorData::F16(data) => data.iter().filter(|v| **v & 0x7fff != 0).count(),
        TensorData::U64(data) => data.iter().filter(|v| **v != 0).count(),
        _ => tensor
            .to_i64()
            .map_or(0, |data| data.iter().filter(|v| **v != 0).count()),
    }
}
