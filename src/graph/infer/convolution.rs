//! Convolutions and pools over `[n, c, spatial …]`.

use super::fact::{Case, Fact, Facts, InferError, dim, mismatch, one};
use super::window::{SIZES, Window};
use crate::graph::{DType, Shape};

/// `Conv` (1, 11, 22), `ConvInteger` (10): input `[n, c, …]`, weights `[m, c/group, kernel …]`.
pub(super) fn conv(case: &Case<'_>) -> Facts {
    let (x, w) = (case.dims(0)?, case.dims(1)?);
    let shape = conv_shape(case, x, w, group_of(case)?)?;
    if case.node.op == "ConvInteger" {
        let zero = case.optional(3).map_or(&[][..], |zero| zero.shape.dims());
        if !matches!(zero, [] | [1]) && zero != &w[..1] {
            return mismatch(format!("zero point {zero:?} does not fit weights {w:?}"));
        }
        return one(DType::I32, shape);
    }
    case.expect_type(1)?;
    case.expect_type(2)?;
    bias(case, w[0])?;
    one(case.operand(0)?.dtype, shape)
}

/// Returns the `group` attribute.
pub(super) fn group_of(case: &Case<'_>) -> Result<usize, InferError> {
    match case.node.int("group", 1) {
        group if group > 0 => dim(group),
        group => mismatch(format!("`group` is {group}")),
    }
}

/// Returns the output shape of a convolution.
pub(super) fn conv_shape(
    case: &Case<'_>,
    x: &[usize],
    w: &[usize],
    group: usize,
) -> Result<Vec<usize>, InferError> {
    if x.len() < 3 || w.len() != x.len() {
        return mismatch(format!("input {x:?} and weights {w:?} differ in rank"));
    }
    if x[1] != w[1].saturating_mul(group) || !w[0].is_multiple_of(group) {
        return mismatch(format!(
            "input {x:?} has {} channels, weights {w:?} in {group} groups need {}",
            x[1],
            w[1].saturating_mul(group)
        ));
    }
    let window = Window::read(case.node, &w[2..], &x[2..])?;
    let mut shape = vec![x[0], w[0]];
    shape.extend(window.output(&x[2..], false)?);
    Ok(shape)
}

/// `DeformConv` (19, 22): offsets `[n, offset groups · kernel · axes, output …]`.
pub(super) fn deform_conv(case: &Case<'_>) -> Facts {
    let (x, w, offset) = (case.dims(0)?, case.dims(1)?, case.dims(2)?);
    let shape = conv_shape(case, x, w, group_of(case)?)?;
    let groups = dim(case.node.int("offset_group", 1))?;
    let taps = w[2..].iter().fold(groups, |n, &d| n.saturating_mul(d));
    let expected = |per_tap: usize| {
        let mut dims = vec![x[0], taps.saturating_mul(per_tap)];
        dims.extend(&shape[2..]);
        dims
    };
    if groups == 0 || !x[1].is_multiple_of(groups) || offset != expected(w.len() - 2) {
        return mismatch(format!(
            "offsets are {offset:?} in {groups} groups, {:?} are needed",
            expected(w.len() - 2)
        ));
    }
    case.expect(3, "the bias", &w[..1])?;
    case.expect(4, "the mask", &expected(1))?;
    one(case.operand(0)?.dtype, shape)
}

/// `CausalConvWithState` (27): input `[n, c, length]`, weights `[c, 1, kernel]`; the result and the
/// last `kernel - 1` positions.
pub(super) fn causal_conv(case: &Case<'_>) -> Facts {
    let (x, w) = (case.operand(0)?, case.dims(1)?);
    let (&[n, c, _], &[channels, 1, kernel]) = (x.shape.dims(), w) else {
        return mismatch(format!("input {} with weights {w:?}", x.shape));
    };
    if c != channels || kernel == 0 {
        return mismatch(format!("input {} with weights {w:?}", x.shape));
    }
    let state = vec![n, c, kernel - 1];
    case.expect(2, "the bias", &[c])?;
    case.expect(3, "the past state", &state)?;
    let fact = |shape| Fact {
        dtype: x.dtype,
        shape,
    };
    Ok(Some(vec![fact(x.shape.clone()), fact(Shape(state))]))
}

fn bias(case: &Case<'_>, channels: usize) -> Result<(), InferError> {
    match case.optional(2) {
        Some(bias) if bias.shape.dims() != [channels] => mismatch(format!(
            "bias {} does not fit {channels} output channels",
            bias.shape
        )),
        _ => Ok(()),
    }
}

/// `ConvTranspose` (1, 11, 22): input `[n, c, …]`, weights `[c, m/group, kernel …]`.
pub(super) fn conv_transpose(case: &Case<'_>) -> Facts {
    let (x, w) = (case.dims(0)?, case.dims(1)?);
    if x.len() < 3 || w.len() != x.len() {
        return mismatch(format!("input {x:?} and weights {w:?} differ in rank"));
    }
    let group = group_of(case)?;
    if x[1] != w[0] || !w[0].is_multiple_of(group) {
        return mismatch(format!(
            "input {x:?} and weights {w:?} in {group} groups do not fit"
        ));
    }
    case.expect_type(1)?;
    case.expect_type(2)?;
    bias(case, w[1].saturating_mul(group))?;
    let n = x.len() - 2;
    let mut shape = vec![x[0], w[1].saturating_mul(group)];
    let window = Window::read(case.node, &w[2..], &x[2..])?;
    let extra = match case.node.ints("output_padding") {
        None => vec![0; n],
        Some(list) => list.to_vec(),
    };
    let fits = |(i, &extra): (usize, &i64)| {
        (0..window.strides[i].max(window.dilations[i]) as i64).contains(&extra)
    };
    if extra.len() != n || !extra.iter().enumerate().all(fits) {
        return mismatch(format!(
            "`output_padding` is {extra:?}, each must be smaller than stride or dilation"
        ));
    }
    let stated = case.node.ints("output_shape");
    if let Some(stated) = stated.filter(|stated| stated.len() < n) {
        return mismatch(format!(
            "`output_shape` is {stated:?} for {n} spatial dimensions"
        ));
    }
    let is_same = case.node.string("auto_pad", "NOTSET").starts_with("SAME");
    for i in 0..n {
        let stride = window.strides[i] as i64;
        let full = (x[2 + i] as i64 - 1) * stride + window.extent(i) + extra[i];
        let size = match stated {
            // Some writers include the batch and channel dimensions.
            Some(stated) => stated[stated.len() - n + i],
            None if is_same => x[2 + i] as i64 * stride,
            None => full - window.pads[i].0 - window.pads[i].1,
        };
        shape.push(dim(size)?);
    }
    one(case.operand(0)?.dtype, shape)
}

/// `MaxUnpool` (9, 11, 22): undoes a `MaxPool` whose indices it is given.
pub(super) fn unpool(case: &Case<'_>) -> Facts {
    let x = case.operand(0)?;
    let dims = x.shape.dims();
    case.operand(1)?;
    case.expect(1, "the list of indices", dims)?;
    let window = pool_window(case, dims)?;
    if case.optional(2).is_some() {
        let shape = case.dims_input(2)?;
        if shape.len() != dims.len() || shape[..2] != dims[..2] {
            return mismatch(format!("output shape {shape:?} for input {dims:?}"));
        }
        return one(x.dtype, shape);
    }
    let mut shape = dims[..2].to_vec();
    for (i, &size) in dims[2..].iter().enumerate() {
        let full = (size as i64 - 1) * window.strides[i] as i64 + window.kernel[i] as i64;
        shape.push(dim(full - window.pads[i].0 - window.pads[i].1)?);
    }
    one(x.dtype, shape)
}

/// Reads the window of a pool, whose kernel is an attribute.
fn pool_window(case: &Case<'_>, x: &[usize]) -> Result<Window, InferError> {
    let kernel = case.node.ints("kernel_shape").unwrap_or(&[]);
    if x.len() < 3 || kernel.len() != x.len() - 2 || kernel.iter().any(|k| !SIZES.contains(k)) {
        return mismatch(format!(
            "`kernel_shape` {kernel:?} does not fit input {x:?}"
        ));
    }
    let kernel: Vec<usize> = kernel.iter().map(|&k| k as usize).collect();
    Window::read(case.node, &kernel, &x[2..])
}

/// `MaxPool` (1–22), `AveragePool` (7–22), `LpPool` (2–22).
pub(super) fn pool(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let x = data.shape.dims();
    let window = pool_window(case, x)?;
    let mut dims = x[..2].to_vec();
    dims.extend(window.output(&x[2..], case.node.int("ceil_mode", 0) != 0)?);
    let fact = |dtype| Fact {
        dtype,
        shape: Shape(dims.clone()),
    };
    let mut facts = vec![fact(data.dtype)];
    if case.node.op == "MaxPool" {
        facts.push(fact(DType::I64));
    }
    Ok(Some(facts))
}

/// `GlobalAveragePool`, `GlobalMaxPool`, `GlobalLpPool` (1–22).
pub(super) fn global_pool(case: &Case<'_>) -> Facts {
    let x = case.dims(0)?;
    if x.len() < 3 {
        return mismatch(format!("input {x:?} has no spatial dimensions"));
    }
    let shape = x
        .iter()
        .enumerate()
        .map(|(i, &d)| if i < 2 { d } else { 1 });
    one(case.operand(0)?.dtype, shape.collect())
}
