//! Operators that make values from sizes and bounds.

use super::fact::{Case, Facts, dim, dtype, mismatch, one};
use crate::graph::{Attribute, DType};

/// `ConstantOfShape` (9 and later).
pub(super) fn constant_of_shape(case: &Case<'_>) -> Facts {
    let dtype = match case.node.attributes.get("value") {
        Some(Attribute::Tensor(value)) if value.shape().len() == 1 => value.dtype(),
        Some(Attribute::Tensor(value)) => {
            return mismatch(format!("`value` has the shape {}", value.shape()));
        }
        _ => DType::F32,
    };
    one(dtype, case.dims_input(0)?)
}

/// `Range` (11, 27).
pub(super) fn range(case: &Case<'_>) -> Facts {
    case.expect_type(1)?;
    case.expect_type(2)?;
    let [start, limit, delta] = [
        case.number_input(0)?,
        case.number_input(1)?,
        case.number_input(2)?,
    ];
    let len = ((limit - start) / delta).ceil();
    if !len.is_finite() {
        return mismatch(format!("a range from {start} to {limit} by {delta}"));
    }
    one(case.operand(0)?.dtype, vec![len.max(0.0) as usize])
}

/// `EyeLike` (9, 22).
pub(super) fn eye_like(case: &Case<'_>) -> Facts {
    let like = case.operand(0)?;
    if like.shape.rank() != 2 {
        return mismatch(format!("{} is no matrix", like.shape));
    }
    let dtype = match case.node.int("dtype", 0) {
        0 => like.dtype,
        stated => dtype(stated)?,
    };
    one(dtype, like.shape.dims().to_vec())
}

/// `OneHot` (9, 11).
pub(super) fn one_hot(case: &Case<'_>) -> Facts {
    let mut shape = case.dims(0)?.to_vec();
    let depth = case.number_input(1)?;
    let values = case.operand(2)?;
    if values.shape.dims() != [2] {
        return mismatch(format!("the values are {}, not two", values.shape));
    }
    shape.insert(case.axis(-1, shape.len() + 1)?, dim(depth as i64)?);
    one(values.dtype, shape)
}
