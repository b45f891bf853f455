//! Operators that overwrite some elements of their input.

use super::fact::{Case, Facts, InferError, axis, mismatch, one};
use crate::graph::DType;

/// `Scatter` (9, 10) and `ScatterElements` (11, 13, 16, 18).
pub(super) fn elements(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let (dims, indices) = (data.shape.dims(), case.dims(1)?);
    let along = case.axis(0, dims.len())?;
    let fits =
        indices.len() == dims.len() && (0..dims.len()).all(|i| i == along || indices[i] <= dims[i]);
    if !fits {
        return mismatch(format!("indices {indices:?} do not fit data {dims:?}"));
    }
    index_type(case)?;
    case.expect(2, "the update", indices)?;
    case.expect_type_of_update()?;
    reduction(case)?;
    one(data.dtype, dims.to_vec())
}

/// `ScatterND` (11, 13, 16, 18): indices `[…, k]`, updates `[…, rest of the data]`.
pub(super) fn nd(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let (dims, indices) = (data.shape.dims(), case.dims(1)?);
    let Some((&depth, outer)) = indices
        .split_last()
        .filter(|(depth, _)| **depth <= dims.len())
    else {
        return mismatch(format!("indices {indices:?} do not fit data {dims:?}"));
    };
    index_type(case)?;
    let mut expected = outer.to_vec();
    expected.extend(&dims[depth..]);
    case.operand(2)?;
    case.expect(2, "the update", &expected)?;
    case.expect_type_of_update()?;
    reduction(case)?;
    one(data.dtype, dims.to_vec())
}

/// `TensorScatter` (24): writes `[batch, …, length, …]` into a cache that is longer along `axis`.
pub(super) fn cache(case: &Case<'_>) -> Facts {
    let cache = case.operand(0)?;
    let (dims, update) = (cache.shape.dims(), case.dims(1)?);
    let along = axis(case.node.int("axis", -2), dims.len())?;
    let fits = along > 0
        && update.len() == dims.len()
        && (0..dims.len()).all(|i| update[i] == dims[i] || (i == along && update[i] < dims[i]));
    if !fits {
        return mismatch(format!(
            "update {update:?} does not fit cache {dims:?} along axis {along}"
        ));
    }
    case.expect_type(1)?;
    case.expect(2, "the list of write indices", &dims[..1])?;
    one(cache.dtype, dims.to_vec())
}

/// Indices are i32 or i64 everywhere in ONNX.
pub(super) fn index_type(case: &Case<'_>) -> Result<(), InferError> {
    match case.operand(1)?.dtype {
        DType::I32 | DType::I64 => Ok(()),
        other => mismatch(format!("indices are {other}")),
    }
}

fn reduction(case: &Case<'_>) -> Result<(), InferError> {
    match case.node.string("reduction", "none") {
        "none" | "add" | "mul" | "max" | "min" => Ok(()),
        other => mismatch(format!("`reduction` is `{other}`")),
    }
}

impl Case<'_> {
    fn expect_type_of_update(&self) -> Result<(), InferError> {
        self.operand(2)?;
        self.expect_type(2)
    }
}
