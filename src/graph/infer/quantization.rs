//! Quantised operators.

use super::convolution::{conv_shape, group_of};
use super::fact::{Case, Fact, Facts, InferError, dtype, mismatch, one};
use super::linear::matmul_shape;
use crate::graph::{DType, Shape, Tensor};

/// `QuantizeLinear` (10–28): the zero point, `output_dtype` (21) or u8 says the type.
pub(super) fn quantize(case: &Case<'_>) -> Facts {
    let stated = case.node.int("output_dtype", 0);
    let to = match (case.optional(2), stated) {
        (Some(zero), 0) => zero.dtype,
        (Some(zero), stated) if zero.dtype == dtype(stated)? => zero.dtype,
        (Some(zero), _) => {
            return mismatch(format!(
                "`output_dtype` is {}, the zero point is {}",
                dtype(stated)?,
                zero.dtype
            ));
        }
        (None, 0) => DType::U8,
        (None, stated) => dtype(stated)?,
    };
    if !matches!(to, DType::I8 | DType::U8 | DType::I16 | DType::U16) {
        return mismatch(format!("it quantises to {to}"));
    }
    scales(case)?;
    scale(case, 1, true)?;
    one(to, case.dims(0)?.to_vec())
}

/// `DequantizeLinear` (10–28): the scale or `output_dtype` (23) says the type.
pub(super) fn dequantize(case: &Case<'_>) -> Facts {
    case.expect_type(2)?;
    scales(case)?;
    scale(case, 1, false)?;
    let to = match case.node.int("output_dtype", 0) {
        0 => case.operand(1)?.dtype,
        stated => dtype(stated)?,
    };
    if !to.is_float() {
        return mismatch(format!("it dequantises to {to}"));
    }
    one(to, case.dims(0)?.to_vec())
}

/// Refuses a constant scale that is no scale. Zero is one only where it multiplies: quantisers write
/// it for channels without weights.
fn scale(case: &Case<'_>, idx: usize, divides: bool) -> Result<(), InferError> {
    let data = case.operand(idx)?.data;
    let scales = data.and_then(Tensor::as_f32).unwrap_or_default();
    let is_bad = |v: &&f32| !v.is_finite() || **v < 0.0 || (divides && **v == 0.0);
    match scales.iter().find(is_bad) {
        Some(bad) => mismatch(format!("input {idx} holds the scale {bad}")),
        None => Ok(()),
    }
}

/// Refuses quantised operands whose zero points have another type, and scales that are none.
fn quantised(case: &Case<'_>) -> Result<(), InferError> {
    for (value, zero) in [(0, 2), (3, 5)] {
        let (value_type, zero_type) = (case.operand(value)?.dtype, case.operand(zero)?.dtype);
        if value_type != zero_type {
            return mismatch(format!(
                "input {value} is {value_type}, its zero point is {zero_type}"
            ));
        }
    }
    scale(case, 1, false)?;
    scale(case, 4, false)?;
    scale(case, 6, true)
}

/// onnxruntime's quantiser writes a scalar zero point beside a scale of one element.
fn is_single(dims: &[usize]) -> bool {
    matches!(dims, [] | [1])
}

/// Scales and zero points are one, one for each index along `axis`, or one for each block of
/// `block_size` along it.
fn scales(case: &Case<'_>) -> Result<(), InferError> {
    let (dims, scale) = (case.dims(0)?, case.dims(1)?);
    if let Some(zero) = case.optional(2)
        && zero.shape.dims() != scale
        && !(is_single(zero.shape.dims()) && is_single(scale))
    {
        return mismatch(format!(
            "scale {scale:?} and zero point {} differ in shape",
            zero.shape
        ));
    }
    let block = case.node.int("block_size", 0);
    if block < 0 {
        return mismatch(format!("`block_size` is {block}"));
    }
    if block == 0 && is_single(scale) {
        return Ok(());
    }
    let along = case.axis(1, dims.len())?;
    let fits = if block == 0 {
        scale == [dims[along]]
    } else {
        let blocked = dims[along].div_ceil(block as usize);
        scale.len() == dims.len()
            && (0..dims.len()).all(|i| scale[i] == if i == along { blocked } else { dims[i] })
    };
    if fits {
        return Ok(());
    }
    mismatch(format!(
        "scale {scale:?} does not fit axis {along} of {dims:?} in blocks of {block}"
    ))
}

/// `DynamicQuantizeLinear` (11): values, scale, zero point.
pub(super) fn dynamic_quantize(case: &Case<'_>) -> Facts {
    let fact = |dtype, shape: &Shape| Fact {
        dtype,
        shape: shape.clone(),
    };
    let scalar = Shape::default();
    Ok(Some(vec![
        fact(DType::U8, case.operand(0)?.shape),
        fact(DType::F32, &scalar),
        fact(DType::U8, &scalar),
    ]))
}

/// `QLinearConv` (10): weights are input 3, the output's zero point is input 7.
pub(super) fn conv(case: &Case<'_>) -> Facts {
    quantised(case)?;
    let (x, w) = (case.dims(0)?, case.dims(3)?);
    let group = group_of(case)?;
    let shape = conv_shape(case, x, w, group)?;
    for idx in [4, 5] {
        let each = case.dims(idx)?;
        if !is_single(each) && each != [w[0]] {
            return mismatch(format!("input {idx} is {each:?} for weights {w:?}"));
        }
    }
    case.expect(8, "the bias", &w[..1])?;
    one(case.operand(7)?.dtype, shape)
}

/// `QLinearMatMul` (10, 21): operands are inputs 0 and 3, the output's zero point is input 7.
pub(super) fn matmul(case: &Case<'_>) -> Facts {
    quantised(case)?;
    let shape = matmul_shape(case.dims(0)?, case.dims(3)?)?;
    one(case.operand(7)?.dtype, shape)
}
