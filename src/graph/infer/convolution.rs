//! Convolutions and pools over `[n, c, spatial …]`.

use super::fact::{Case, Fact, Facts, InferError, dim, mismatch, one};
use super::window::{SIZES, Window};
use crate::graph::{DType, Shape};

/// `Conv`: input `[n, c, …]`, weights `[m, c/group, kernel …]`.
pub(super) fn conv(case: &Case<'_>) -> Facts {
    let (x, w) = (case.dims(0)?, case.dims(1)?);
    if x.len() < 3 || w.len() != x.len() {
        return mismatch(format!("input {x:?} and weights {w:?} differ in rank"));
    }
    let group = case.node.int("group", 1);
    let group = usize::try_from(group).unwrap_or(0);
    if group == 0 || x[1] != w[1].saturating_mul(group) || !w[0].is_multiple_of(group) {
        return mismatch(format!(
            "input {x:?} has {} channels, weights {w:?} in {group} groups need {}",
            x[1],
            w[1].saturating_mul(group)
        ));
    }
    let dtype = if case.node.op == "ConvInteger" {
        // Its third input is a zero point.
        DType::I32
    } else {
        bias(case, w[0])?;
        case.operand(0)?.dtype
    };
    let window = Window::read(case.node, &w[2..], &x[2..])?;
    let mut shape = vec![x[0], w[0]];
    shape.extend(window.output(&x[2..], false)?);
    one(dtype, shape)
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

/// `ConvTranspose`: input `[n, c, …]`, weights `[c, m/group, kernel …]`.
pub(super) fn conv_transpose(case: &Case<'_>) -> Facts {
    let (x, w) = (case.dims(0)?, case.dims(1)?);
    if x.len() < 3 || w.len() != x.len() {
        return mismatch(format!("input {x:?} and weights {w:?} differ in rank"));
    }
    let group = usize::try_from(case.node.int("group", 1)).unwrap_or(0);
    if group == 0 || x[1] != w[0] || !w[0].is_multiple_of(group) {
        return mismatch(format!(
            "input {x:?} and weights {w:?} in {group} groups do not fit"
        ));
    }
    bias(case, w[1].saturating_mul(group))?;
    let n = x.len() - 2;
    let mut shape = vec![x[0], w[1].saturating_mul(group)];
    let window = Window::read(case.node, &w[2..], &x[2..])?;
    let extra = case.node.ints("output_padding").unwrap_or(&[]);
    let stated = case.node.ints("output_shape");
    let is_same = case.node.string("auto_pad", "NOTSET").starts_with("SAME");
    for i in 0..n {
        let stride = window.strides[i] as i64;
        let full = (x[2 + i] as i64 - 1) * stride
            + window.extent(i)
            + extra
                .get(i)
                .copied()
                .unwrap_or(0)
                .clamp(0, i64::from(i32::MAX));
        let size = match stated {
            // Some writers include the batch and channel dimensions.
            Some(stated) if stated.len() >= n => stated[stated.len() - n + i],
            _ if is_same => x[2 + i] as i64 * stride,
            _ => full - window.pads[i].0 - window.pads[i].1,
        };
        shape.push(dim(size)?);
    }
    one(case.operand(0)?.dtype, shape)
}

/// `MaxPool`, `AveragePool`, `LpPool`.
pub(super) fn pool(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let x = data.shape.dims();
    let kernel = case.node.ints("kernel_shape").unwrap_or(&[]);
    if x.len() < 3 || kernel.len() != x.len() - 2 || kernel.iter().any(|k| !SIZES.contains(k)) {
        return mismatch(format!(
            "`kernel_shape` {kernel:?} does not fit input {x:?}"
        ));
    }
    let kernel: Vec<usize> = kernel.iter().map(|&k| k as usize).collect();
    let window = Window::read(case.node, &kernel, &x[2..])?;
    let mut dims = x[..2].to_vec();
    dims.extend(window.output(&x[2..], case.node.int("ceil_mode", 0) != 0)?);
    let fact = |dtype| Fact {
        dtype,
        shape: Shape(dims.clone()),
    };
    Ok(Some(vec![fact(data.dtype), fact(DType::I64)]))
}

/// `GlobalAveragePool`, `GlobalMaxPool`.
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
