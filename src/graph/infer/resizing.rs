//! Operators that make a value larger or smaller.

use super::fact::{Case, Facts, InferError, axes, axis, broadcast, dim, mismatch, one};
use super::window::Window;
use crate::graph::Attribute;

/// `Pad` (2–25): amounts as an attribute (operator sets before 11) or an input.
pub(super) fn pad(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let mut dims = data.shape.dims().to_vec();
    let pads = case.ints("pads", 1)?.ok_or(InferError::MissingInput(1))?;
    let over = match case.ints_input(3)? {
        Some(list) => list
            .iter()
            .map(|&a| axis(a, dims.len()))
            .collect::<Result<Vec<_>, _>>()?,
        None => (0..dims.len()).collect(),
    };
    let mode = case.node.string("mode", "constant");
    if !matches!(mode, "constant" | "reflect" | "edge" | "wrap") {
        return mismatch(format!("`mode` is `{mode}`"));
    }
    if mode == "constant" && case.opset >= 11 {
        case.expect_type(2)?;
    }
    if pads.len() != 2 * over.len() {
        return mismatch(format!("{} pads for {} axes", pads.len(), over.len()));
    }
    for (i, &axis) in over.iter().enumerate() {
        let size = (dims[axis] as i64)
            .saturating_add(pads[i])
            .saturating_add(pads[over.len() + i]);
        if mode == "reflect" && pads[i].max(pads[over.len() + i]) >= dims[axis].max(1) as i64 {
            return mismatch(format!(
                "axis {axis} of {} is too short to be reflected by {pads:?}",
                data.shape
            ));
        }
        dims[axis] = dim(size)?;
    }
    one(data.dtype, dims)
}

/// `Expand` (8, 13).
pub(super) fn expand(case: &Case<'_>) -> Facts {
    let target = case.dims_input(1)?;
    one(case.operand(0)?.dtype, broadcast(case.dims(0)?, &target)?)
}

/// `Tile` (6, 13).
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

/// `Resize` (10–19) and its forerunner `Upsample` (7, 9, 10): by stated sizes, or by scales rounded down.
pub(super) fn resize(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let mut dims = data.shape.dims().to_vec();
    let mode = case.node.string("mode", "nearest");
    // `bilinear` is the name of version 7 of `Upsample`.
    if !matches!(mode, "nearest" | "linear" | "bilinear" | "cubic") {
        return mismatch(format!("`mode` is `{mode}`"));
    }
    let is_upsample = case.node.op == "Upsample" || case.opset < 11;
    let (scales_idx, sizes_idx) = if is_upsample { (1, usize::MAX) } else { (2, 3) };
    let over = named_axes(case, dims.len())?;
    let sizes = case
        .ints_input(sizes_idx)?
        .filter(|sizes| !sizes.is_empty());
    if let Some(sizes) = sizes {
        if sizes.len() != over.len() {
            return mismatch(format!("sizes {sizes:?} for {} axes", over.len()));
        }
        let policy = case.node.string("keep_aspect_ratio_policy", "stretch");
        if over.iter().any(|&a| dims[a] == 0) {
            return mismatch(format!("{dims:?} has nothing to resize"));
        }
        let ratios = over
            .iter()
            .zip(&sizes)
            .map(|(&a, &s)| s as f64 / dims[a] as f64);
        let scale = match policy {
            "not_larger" => Some(ratios.fold(f64::INFINITY, f64::min)),
            "not_smaller" => Some(ratios.fold(0.0, f64::max)),
            "stretch" => None,
            other => {
                return mismatch(format!("`keep_aspect_ratio_policy` is `{other}`"));
            }
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

/// `Trilu` (14): of the last two dimensions.
pub(super) fn triangle(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    if data.shape.rank() < 2 {
        return mismatch(format!("{} has no matrices", data.shape));
    }
    one(data.dtype, data.shape.dims().to_vec())
}

/// `CenterCropPad` (18): to stated sizes, of all axes or of some.
pub(super) fn center_crop_pad(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let mut dims = data.shape.dims().to_vec();
    let sizes = case.dims_input(1)?;
    let over = named_axes(case, dims.len())?;
    if over.len() != sizes.len() {
        return mismatch(format!("sizes {sizes:?} for {} axes", over.len()));
    }
    for (axis, size) in over.into_iter().zip(sizes) {
        dims[axis] = size;
    }
    one(data.dtype, dims)
}

/// `Col2Im` (18): columns `[n, c · block, l]` to images `[n, c, …]`.
pub(super) fn columns_to_image(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let (image, block) = (case.dims_input(1)?, case.dims_input(2)?);
    let window = Window::read(case.node, &block, &image)?;
    let n_blocks = window.output(&image, false)?;
    let product = |dims: &[usize]| dims.iter().fold(1usize, |n, &d| n.saturating_mul(d));
    let per_block = product(&block);
    match *data.shape.dims() {
        [n, columns, l]
            if per_block > 0
                && columns.is_multiple_of(per_block)
                && l == product(&n_blocks)
                && image.len() == block.len() =>
        {
            let mut shape = vec![n, columns / per_block];
            shape.extend(image);
            one(data.dtype, shape)
        }
        ref dims => mismatch(format!(
            "columns {dims:?} do not make an image {image:?} of blocks {block:?}"
        )),
    }
}

/// Returns the `axes` attribute in its order, all axes by default.
fn named_axes(case: &Case<'_>, rank: usize) -> Result<Vec<usize>, InferError> {
    match case.node.ints("axes") {
        Some(list) => {
            axes(list, rank)?;
            list.iter().map(|&a| axis(a, rank)).collect()
        }
        None => Ok((0..rank).collect()),
    }
}
