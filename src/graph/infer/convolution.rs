//! Convolutions and pools over `[n, c, spatial …]`.

use super::fact::{Case, Fact, Facts, InferError, dim, mismatch, one};
use crate::graph::{DType, Shape};

/// Sizes that a window may have, so that products of two of them fit.
const SIZES: std::ops::RangeInclusive<i64> = 1..=i32::MAX as i64;

/// The window of a convolution or pool, one entry per spatial axis.
struct Window {
    kernel: Vec<usize>,
    strides: Vec<usize>,
    dilations: Vec<usize>,
    pads: Vec<(i64, i64)>,
}

impl Window {
    /// Reads the attributes; `auto_pad` is resolved against the input's spatial dimensions.
    fn read(case: &Case<'_>, kernel: &[usize], spatial: &[usize]) -> Result<Self, InferError> {
        let node = case.node;
        let n = spatial.len();
        let list = |name: &str| -> Result<Vec<usize>, InferError> {
            let values = node.ints(name).map_or_else(|| vec![1; n], <[i64]>::to_vec);
            if values.len() != n || values.iter().any(|&v| !SIZES.contains(&v)) {
                return mismatch(format!("`{name}` is {values:?} for {n} spatial dimensions"));
            }
            Ok(values.iter().map(|&v| v as usize).collect())
        };
        let (strides, dilations) = (list("strides")?, list("dilations")?);
        if let Some(stated) = node.ints("kernel_shape")
            && !stated
                .iter()
                .map(|&v| v as usize)
                .eq(kernel.iter().copied())
        {
            return mismatch(format!(
                "`kernel_shape` is {stated:?}, the kernel is {kernel:?}"
            ));
        }
        let mut window = Self {
            kernel: kernel.to_vec(),
            strides,
            dilations,
            pads: vec![(0, 0); n],
        };
        match node.string("auto_pad", "NOTSET") {
            "NOTSET" => {
                if let Some(pads) = node.ints("pads") {
                    if pads.len() != 2 * n || pads.iter().any(|&p| p.abs() > i64::from(i32::MAX)) {
                        return mismatch(format!("`pads` is {pads:?} for {n} spatial dimensions"));
                    }
                    window.pads = (0..n).map(|i| (pads[i], pads[n + i])).collect();
                }
            }
            "VALID" => {}
            mode @ ("SAME_UPPER" | "SAME_LOWER") => {
                for (i, &size) in spatial.iter().enumerate() {
                    let out = size.div_ceil(window.strides[i]);
                    let covered = (out as i64 - 1) * window.strides[i] as i64 + window.extent(i);
                    let total = (covered - size as i64).max(0);
                    let (small, large) = (total / 2, total - total / 2);
                    window.pads[i] = if mode == "SAME_UPPER" {
                        (small, large)
                    } else {
                        (large, small)
                    };
                }
            }
            other => return mismatch(format!("`auto_pad` is `{other}`")),
        }
        Ok(window)
    }

    /// Returns how many input elements the dilated kernel spans.
    fn extent(&self, i: usize) -> i64 {
        (self.kernel[i] as i64 - 1) * self.dilations[i] as i64 + 1
    }

    fn output(&self, spatial: &[usize], ceil: bool) -> Result<Vec<usize>, InferError> {
        let mut dims = Vec::new();
        for (i, &size) in spatial.iter().enumerate() {
            let (begin, end) = self.pads[i];
            let room = size as i64 + begin + end - self.extent(i);
            if room < 0 {
                return mismatch(format!(
                    "kernel {:?} is larger than the padded input {spatial:?}",
                    self.kernel
                ));
            }
            let stride = self.strides[i] as i64;
            let mut steps = room / stride;
            // A window that would start beyond input and leading padding is dropped.
            if ceil && room % stride != 0 && (steps + 1) * stride < size as i64 + begin {
                steps += 1;
            }
            dims.push(dim(steps + 1)?);
        }
        Ok(dims)
    }
}

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
    bias(case, w[0])?;
    let window = Window::read(case, &w[2..], &x[2..])?;
    let mut shape = vec![x[0], w[0]];
    shape.extend(window.output(&x[2..], false)?);
    one(case.operand(0)?.dtype, shape)
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
    let window = Window::read(case, &w[2..], &x[2..])?;
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
    let window = Window::read(case, &kernel, &x[2..])?;
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
