//! Operators that make a value larger or smaller.

use super::fact::{Case, Facts, InferError, axes, axis, broadcast, dim, mismatch, one};
use crate::graph::{Attribute, DType, Tensor};

/// `Pad`: amounts as an attribute (operator sets before 11) or an input.
pub(super) fn pad(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let mut dims = data.shape.dims().to_vec();
    let pads = case.ints("pads", 1)?.unwrap_or_default();
    let over = match case.ints_input(3)? {
        Some(list) => list
            .iter()
            .map(|&a| axis(a, dims.len()))
            .collect::<Result<Vec<_>, _>>()?,
        None => (0..dims.len()).collect(),
    };
    if pads.len() != 2 * over.len() {
        return mismatch(format!("{} pads for {} axes", pads.len(), over.len()));
    }
    for (i, &axis) in over.iter().enumerate() {
        let size = (dims[axis] as i64)
            .saturating_add(pads[i])
            .saturating_add(pads[over.len() + i]);
        dims[axis] = dim(size)?;
    }
    one(data.dtype, dims)
}

/// `Expand`.
pub(super) fn expand(case: &Case<'_>) -> Facts {
    let target = case.ints_input(1)?.ok_or(InferError::MissingInput(1))?;
    let target = target
        .iter()
        .map(|&d| dim(d))
        .collect::<Result<Vec<_>, _>>()?;
    one(case.operand(0)?.dtype, broadcast(case.dims(0)?, &target)?)
}

/// `Tile`.
pub(super) fn tile(case: &Case<'_>) -> Facts {
    let dims = case.dims(0)?;
    let repeats = case.ints_input(1)?.ok_or(InferError::MissingInput(1))?;
    if repeats.len() != dims.len() {
        return mismatch(format!("repeats {repeats:?} for {dims:?}"));
    }
    let mut shape = Vec::new();
    for (&size, &n) in dims.iter().zip(&repeats) {
        shape.push(size.saturating_mul(dim(n)?));
    }
    one(case.operand(0)?.dtype, shape)
}

/// `Resize` and its forerunner `Upsample`: by stated sizes, or by scales rounded down.
pub(super) fn resize(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let mut dims = data.shape.dims().to_vec();
    let is_upsample = case.node.op == "Upsample" || case.opset < 11;
    let (scales_idx, sizes_idx) = if is_upsample { (1, usize::MAX) } else { (2, 3) };
    let over = match case.node.ints("axes") {
        Some(list) => {
            axes(list, dims.len())?;
            list.iter()
                .map(|&a| axis(a, dims.len()))
                .collect::<Result<Vec<_>, _>>()?
        }
        None => (0..dims.len()).collect(),
    };
    let sizes = case
        .ints_input(sizes_idx)?
        .filter(|sizes| !sizes.is_empty());
    if let Some(sizes) = sizes {
        if sizes.len() != over.len() {
            return mismatch(format!("sizes {sizes:?} for {} axes", over.len()));
        }
        let policy = case.node.string("keep_aspect_ratio_policy", "stretch");
        let ratios = over
            .iter()
            .zip(&sizes)
            .map(|(&a, &s)| s as f64 / dims[a] as f64);
        let scale = match policy {
            "not_larger" => Some(ratios.fold(f64::INFINITY, f64::min)),
            "not_smaller" => Some(ratios.fold(0.0, f64::max)),
            _ => None,
        };
        for (&axis, &size) in over.iter().zip(&sizes) {
            dims[axis] = match scale {
                Some(scale) => (dims[axis] as f64 * scale).round() as usize,
                None => dim(size)?,
            };
        }
        return one(data.dtype, dims);
    }
    let scales = scales(case, scales_idx)?;
    if scales.len() != over.len() || scales.iter().any(|s| !s.is_finite() || *s <= 0.0) {
        return mismatch(format!("scales {scales:?} for {} axes", over.len()));
    }
    for (&axis, &scale) in over.iter().zip(&scales) {
        dims[axis] = (dims[axis] as f64 * f64::from(scale)).floor() as usize;
    }
    one(data.dtype, dims)
}

fn scales(case: &Case<'_>, idx: usize) -> Result<Vec<f32>, InferError> {
    if let Some(Attribute::Floats(scales)) = case.node.attributes.get("scales") {
        return Ok(scales.clone());
    }
    let operand = case.optional(idx).ok_or(InferError::MissingInput(idx))?;
    let tensor = operand.data.ok_or(InferError::DataDependent(idx))?;
    match tensor.as_f32() {
        Some(scales) => Ok(scales.to_vec()),
        None => mismatch("the scales are not f32".to_owned()),
    }
}

/// `GridSample`: `[n, c, …]` sampled at `[n, …, coordinates]`.
pub(super) fn grid_sample(case: &Case<'_>) -> Facts {
    let (x, grid) = (case.operand(0)?, case.dims(1)?);
    let dims = x.shape.dims();
    if dims.len() < 3 || grid.len() != dims.len() || grid[0] != dims[0] {
        return mismatch(format!("a grid {grid:?} for input {dims:?}"));
    }
    let mut shape = dims[..2].to_vec();
    shape.extend(&grid[1..grid.len() - 1]);
    one(x.dtype, shape)
}

/// `ConstantOfShape`.
pub(super) fn constant_of_shape(case: &Case<'_>) -> Facts {
    let dtype = match case.node.attributes.get("value") {
        Some(Attribute::Tensor(value)) => value.dtype(),
        _ => DType::F32,
    };
    let dims = case.ints_input(0)?.ok_or(InferError::MissingInput(0))?;
    one(
        dtype,
        dims.iter().map(|&d| dim(d)).collect::<Result<_, _>>()?,
    )
}

/// `Range`.
pub(super) fn range(case: &Case<'_>) -> Facts {
    let mut bounds = [0.0; 3];
    for (idx, bound) in bounds.iter_mut().enumerate() {
        let tensor = case
            .operand(idx)?
            .data
            .ok_or(InferError::DataDependent(idx))?;
        let Some(value) = number(tensor) else {
            return mismatch(format!("input {idx} is not a number"));
        };
        *bound = value;
    }
    let [start, limit, delta] = bounds;
    let len = ((limit - start) / delta).ceil();
    if !len.is_finite() {
        return mismatch(format!("a range from {start} to {limit} by {delta}"));
    }
    one(case.operand(0)?.dtype, vec![len.max(0.0) as usize])
}

fn number(tensor: &Tensor) -> Option<f64> {
    if let Some(ints) = tensor.to_i64() {
        return ints.first().map(|&v| v as f64);
    }
    tensor.as_f32()?.first().map(|&v| v.into())
}
