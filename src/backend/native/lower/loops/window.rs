//! A convolution over any number of axes, as loops over the last axis see it.

use serde_json::{Value, json};

use super::nest;
use super::node::{Known, LoopNode};
use super::sliding;
use crate::backend::native::lower::subgraph::NotCovered;

/// Extents and steps of a convolution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Window {
    n: usize,
    groups: usize,
    /// Channels of the input and of the output.
    channels: [usize; 2],
    input: Vec<usize>,
    output: Vec<usize>,
    kernel: Vec<usize>,
    strides: Vec<usize>,
    dilations: Vec<usize>,
    /// Padding before the first element of each axis.
    before: Vec<usize>,
}

impl Window {
    /// Reads the attributes of a convolution.
    pub(super) fn of_conv(
        node: &LoopNode<'_>,
        x: &Known<'_>,
        w: &Known<'_>,
        y: &Known<'_>,
    ) -> Result<Self, NotCovered> {
        let misfit = || node.refuse(format!("operands of shapes {} and {}", x.shape, w.shape));
        let (&[n, ic, ref input @ ..], &[oc, each, ref kernel @ ..], &[_, _, ref output @ ..]) =
            (x.dims(), w.dims(), y.dims())
        else {
            return Err(misfit());
        };
        let rank = input.len();
        let groups = usize::try_from(node.node.int("group", 1)).unwrap_or(0);
        let fits = groups > 0 && groups * each == ic && oc.is_multiple_of(groups);
        if kernel.len() != rank || output.len() != rank || !fits {
            return Err(misfit());
        }
        let window = sliding::Window::read(node, kernel, input, output)?;
        let before: Result<Vec<usize>, _> = window
            .begin
            .iter()
            .map(|&pad| usize::try_from(pad))
            .collect();
        let before = before.map_err(|_| node.refuse("`pads` cuts elements off"))?;
        Ok(Self {
            n,
            groups,
            channels: [ic, oc],
            input: input.to_vec(),
            output: output.to_vec(),
            kernel: kernel.to_vec(),
            before,
            strides: window.stride,
            dilations: window.dilation,
        })
    }

    /// Returns how many results lie along the last axis.
    pub(super) fn row(&self) -> usize {
        self.output.last().copied().unwrap_or(1)
    }

    /// Returns what a template reads: loops over all axes but the last, and the last one.
    pub(super) fn facts(&self) -> Value {
        let last = self.input.len() - 1;
        let (x, w) = (nest::dense(&self.input), nest::dense(&self.kernel));
        let axis = |axis: usize| {
            json!({
                "input": self.input[axis], "output": self.output[axis], "kernel": self.kernel[axis],
                "stride": self.strides[axis], "dilation": self.dilations[axis],
                "before": self.before[axis], "x": x[axis], "w": w[axis],
            })
        };
        json!({
            "n": self.n, "groups": self.groups, "ic": self.channels[0], "oc": self.channels[1],
            "each": self.channels[0] / self.groups, "per_group": self.channels[1] / self.groups,
            "outer": (0..last).map(axis).collect::<Vec<_>>(), "last": axis(last),
            "x_len": self.input.iter().product::<usize>(),
            "w_len": self.kernel.iter().product::<usize>(),
        })
    }
}
