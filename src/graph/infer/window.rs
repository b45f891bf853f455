//! Windows that convolutions and pools move over their input.

use super::fact::{InferError, dim, mismatch};
use crate::graph::Node;

/// Sizes that a window may have, so that products of two of them fit.
pub(super) const SIZES: std::ops::RangeInclusive<i64> = 1..=i32::MAX as i64;
/// Pads likewise.
const PADS: std::ops::RangeInclusive<i64> = -(i32::MAX as i64)..=i32::MAX as i64;

/// The window of a convolution or pool, one entry per spatial axis.
pub(in crate::graph) struct Window {
    pub kernel: Vec<usize>,
    pub strides: Vec<usize>,
    pub dilations: Vec<usize>,
    /// Before and after, by axis.
    pub pads: Vec<(i64, i64)>,
}

impl Window {
    /// Reads the attributes; `auto_pad` is resolved against the input's spatial dimensions.
    pub(in crate::graph) fn read(
        node: &Node,
        kernel: &[usize],
        spatial: &[usize],
    ) -> Result<Self, InferError> {
        let n = spatial.len();
        if kernel.len() != n || kernel.contains(&0) {
            return mismatch(format!("kernel {kernel:?} over {spatial:?}"));
        }
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
                    if pads.len() != 2 * n || pads.iter().any(|p| !PADS.contains(p)) {
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
    pub(in crate::graph) fn extent(&self, i: usize) -> i64 {
        (self.kernel[i] as i64 - 1) * self.dilations[i] as i64 + 1
    }

    pub(super) fn output(&self, spatial: &[usize], ceil: bool) -> Result<Vec<usize>, InferError> {
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
