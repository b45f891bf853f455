//! Quantisation as ONNX defines it: f32 arithmetic, rounded half to even, saturated.

use super::evaluate::Case;
use super::number::Numbers;
use super::pick::{positions, strides};
use crate::graph::{DType, Shape, Tensor, TensorData};

/// Evaluates a quantising operator.
pub(super) fn evaluate(case: &Case<'_>) -> Option<Vec<Tensor>> {
    match case.node.op.as_str() {
        "QuantizeLinear" => quantize(case),
        "DequantizeLinear" => dequantize(case),
        "DynamicQuantizeLinear" => dynamic(case),
        _ => None,
    }
}

/// Returns for each element of input 0 the position of its scale.
fn scale_positions(case: &Case<'_>) -> Option<Vec<usize>> {
    let (dims, scale) = (case.dims(0)?, case.dims(1)?);
    let block = usize::try_from(case.node.int("block_size", 0)).ok()?;
    if block == 0 && matches!(scale, [] | [1]) {
        return Some(vec![0; case.input(0)?.shape().len()]);
    }
    let axis = case.axis(1, dims.len())?;
    let steps = strides(scale);
    positions(dims, |index| {
        if block == 0 {
            return Some(index[axis]);
        }
        let at = |i: usize| {
            if i == axis {
                index[i] / block
            } else {
                index[i]
            }
        };
        Some((0..index.len()).map(|i| at(i) * steps[i]).sum())
    })
}

/// Returns the zero point at each position of a scale.
fn zeros(case: &Case<'_>) -> Option<Vec<i128>> {
    match case.input(2) {
        Some(zero) => Some(Numbers::read(zero).ints()?.to_vec()),
        None => Some(vec![0; case.input(1)?.shape().len()]),
    }
}

fn floats(tensor: &Tensor) -> Vec<f32> {
    match Numbers::read(tensor) {
        Numbers::Int(data) => data.into_iter().map(|v| v as f32).collect(),
        Numbers::Float(data) => data.into_iter().map(|v| v as f32).collect(),
    }
}

fn quantize(case: &Case<'_>) -> Option<Vec<Tensor>> {
    // Half precision arithmetic has its own rounding.
    if case.node.int("precision", 1) != 1 || case.input(0)?.dtype() == DType::F16 {
        return None;
    }
    let (x, scales, zeros) = (floats(case.input(0)?), floats(case.input(1)?), zeros(case)?);
    let (low, high) = super::reduce::range(case.dtype())?;
    let quantized = x.iter().zip(scale_positions(case)?).map(|(x, at)| {
        let value = (x / scales.get(at)?).round_ties_even();
        // What is not a number has no nearest integer.
        let value = if value.is_nan() {
            return None;
        } else {
            value as i128
        };
        Some(value.saturating_add(*zeros.get(at)?).clamp(low, high))
    });
    let data = quantized.collect::<Option<Vec<_>>>()?;
    Some(vec![Numbers::Int(data).write(case.dtype(), case.shape()?)?])
}

fn dequantize(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let (scales, zeros) = (floats(case.input(1)?), zeros(case)?);
    let x = Numbers::read(case.input(0)?);
    let values = x.ints()?.iter().zip(scale_positions(case)?).map(|(x, at)| {
        let value = (x - zeros.get(at)?) as f32 * scales.get(at)?;
        Some(f64::from(value))
    });
    let data = values.collect::<Option<Vec<_>>>()?;
    Some(vec![
        Numbers::Float(data).write(case.dtype(), case.shape()?)?,
    ])
}

/// The range is widened to hold zero, which must be exact.
fn dynamic(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let x = floats(case.input(0)?);
    if x.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let low = x.iter().copied().fold(0.0, f32::min);
    let high = x.iter().copied().fold(0.0, f32::max);
    let scale = (high - low) / 255.0;
    if scale == 0.0 {
        return None;
    }
    let zero = (-low / scale).round_ties_even().clamp(0.0, 255.0);
    let quantized = x.iter().map(|v| {
        let value = (v / scale).round_ties_even() + zero;
        value.clamp(0.0, 255.0) as u8
    });
    let scalar = |data| Tensor::new(Shape::default(), data).ok();
    Some(vec![
        Tensor::new(case.shape()?.clone(), TensorData::U8(quantized.collect())).ok()?,
        scalar(TensorData::F32(vec![scale]))?,
        scalar(TensorData::U8(vec![zero as u8]))?,
    ])
}
