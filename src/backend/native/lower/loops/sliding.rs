//! Windows that move over the spatial axes of `[n, c, …]`.

use super::node::LoopNode;
use crate::backend::native::lower::subgraph::NotCovered;

/// A window, one entry a spatial axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) kernel: Vec<usize>,
    pub(super) stride: Vec<usize>,
    pub(super) dilation: Vec<usize>,
    /// Padding before the first element; negative where elements are cut off.
    pub(super) begin: Vec<i64>,
    /// Padding after the last element.
    pub(super) end: Vec<i64>,
}

impl Window {
    /// Reads the attributes of a window that gives `output` from `input`, both spatial extents.
    pub(super) fn read(
        node: &LoopNode<'_>,
        kernel: &[usize],
        input: &[usize],
        output: &[usize],
    ) -> Result<Self, NotCovered> {
        let mut window = Self::without_pads(node, kernel, input.len())?;
        for axis in 0..input.len() {
            let reach = output[axis].saturating_sub(1) * window.stride[axis] + window.extent(axis);
            let missing = reach.saturating_sub(input[axis]) as i64;
            window.pad(node, axis, missing)?;
        }
        Ok(window)
    }

    /// Reads the attributes of `ConvTranspose`, whose window moves over the output.
    pub(super) fn read_transposed(
        node: &LoopNode<'_>,
        kernel: &[usize],
        input: &[usize],
        output: &[usize],
    ) -> Result<Self, NotCovered> {
        let mut window = Self::without_pads(node, kernel, input.len())?;
        let extra = node.node.ints("output_padding").unwrap_or_default();
        let is_stated = node.node.ints("output_shape").is_some();
        for axis in 0..input.len() {
            let full = input[axis].saturating_sub(1) * window.stride[axis] + window.extent(axis);
            let full = full as i64 + extra.get(axis).copied().unwrap_or(0);
            let surplus = (full - output[axis] as i64).max(0);
            if is_stated && !is_same(node) {
                window.begin[axis] = surplus - surplus / 2;
                window.end[axis] = surplus / 2;
            } else {
                window.pad(node, axis, surplus)?;
            }
        }
        Ok(window)
    }

    /// Returns how many elements the dilated kernel spans.
    pub(super) fn extent(&self, axis: usize) -> usize {
        self.kernel[axis].saturating_sub(1) * self.dilation[axis] + 1
    }

    fn without_pads(
        node: &LoopNode<'_>,
        kernel: &[usize],
        rank: usize,
    ) -> Result<Self, NotCovered> {
        let list = |name: &str| -> Result<Vec<usize>, NotCovered> {
            match node.node.ints(name) {
                None => Ok(vec![1; rank]),
                Some(given) if given.len() == rank && given.iter().all(|&v| v > 0) => {
                    Ok(given.iter().map(|&v| v as usize).collect())
                }
                Some(given) => Err(node.refuse(format!("`{name}` is {given:?}"))),
            }
        };
        if rank == 0 || kernel.len() != rank {
            return Err(node.refuse(format!("a kernel {kernel:?} over {rank} spatial axes")));
        }
        Ok(Self {
            kernel: kernel.to_vec(),
            stride: list("strides")?,
            dilation: list("dilations")?,
            begin: vec![0; rank],
            end: vec![0; rank],
        })
    }

    /// Sets the padding of an axis, which is `total` where the node leaves it open.
    fn pad(&mut self, node: &LoopNode<'_>, axis: usize, total: i64) -> Result<(), NotCovered> {
        let rank = self.kernel.len();
        (self.begin[axis], self.end[axis]) = match node.node.string("auto_pad", "NOTSET") {
            "SAME_UPPER" => (total / 2, total - total / 2),
            "SAME_LOWER" => (total - total / 2, total / 2),
            "VALID" => (0, 0),
            _ => match node.node.ints("pads") {
                None => (0, 0),
                Some(pads) if pads.len() == 2 * rank => (pads[axis], pads[rank + axis]),
                Some(pads) => return Err(node.refuse(format!("`pads` is {pads:?}"))),
            },
        };
        Ok(())
    }
}

fn is_same(node: &LoopNode<'_>) -> bool {
    node.node.string("auto_pad", "NOTSET").starts_with("SAME")
}
