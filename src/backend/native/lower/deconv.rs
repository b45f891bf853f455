//! `ConvTranspose` over two spatial axes as one convolution for each phase of its outputs.
//!
//! Output `o` sums `w[k] · x[i]` over `i · s + k · d - p = o`. Outputs at distances of the stride `s`
//! see the same taps: those with `k ≡ o + p (mod s)`, read backwards from consecutive inputs.

use super::subgraph::{Lowering, NotCovered};
use crate::backend::native::layout::{dims4, is_flat};
use crate::backend::native::spec::{Conv, Deconv, Kind, Operation};
use crate::graph::{Node, Shape};

/// Output channels of a group below which vectors along the rows do better.
const MIN_CHANNELS: usize = 4;

/// One phase along one axis.
struct Phase {
    /// First output.
    first: usize,
    /// Number of outputs.
    n_outputs: usize,
    /// Taps in the order in which inputs come.
    taps: Vec<usize>,
    /// Inputs before the first that the first output reads.
    pad: usize,
}

/// Lowers `ConvTranspose` with constant f32 weights.
pub(super) fn deconvolution(ctx: &Lowering<'_>, node: &Node) -> Result<Vec<Operation>, NotCovered> {
    let x = ctx.activation(node, 0)?;
    let result = ctx.output(node)?;
    super::layers::require_f32(ctx, node, &[x, result])?;
    let refuse = |reason: &str| Err(ctx.not_covered(node, reason));
    let weight_shape = node
        .input(1)
        .map(|value| ctx.graph.value(value).shape.clone());
    let Some(&[_, group_oc, kh, kw]) = weight_shape.as_ref().map(Shape::dims) else {
        return refuse("other than two spatial axes");
    };
    let weights = ctx.weights(node, 1)?;
    let [n, ic, ih, iw] = dims4(&ctx.graph.value(x).shape);
    let [_, oc, oh, ow] = dims4(&ctx.graph.value(result).shape);
    let groups = node.int("group", 1) as usize;
    let two = |name: &str| match node.ints(name) {
        Some([a, b]) => [*a as usize, *b as usize],
        _ => [1, 1],
    };
    let (stride, dilation) = (two("strides"), two("dilations"));
    if group_oc < MIN_CHANNELS {
        return refuse("too few output channels to fill vectors");
    }
    if dilation != [1, 1] || node.string("auto_pad", "NOTSET") != "NOTSET" {
        return refuse("dilations or automatic padding");
    }
    // `output_shape` implies the padding, see the loops.
    if node.ints("output_shape").is_some() || is_flat([n, ic, ih, iw]) {
        return refuse("a given output shape, or a single pixel");
    }
    let pad = match node.ints("pads") {
        Some([top, left, _, _]) => [*top as usize, *left as usize],
        _ => [0, 0],
    };
    let axis = |axis: usize, kernel, output| phases(kernel, stride[axis], pad[axis], output);
    let (Some(rows), Some(columns)) = (axis(0, kh, oh), axis(1, kw, ow)) else {
        return refuse("phases without taps, or more padding than taps");
    };
    let bias = match node.input(2) {
        Some(_) => ctx.weights(node, 2)?.to_vec(),
        None => vec![0.0; oc],
    };
    let fused = ctx.fuse_bytes(result, &ctx.subgraph.epilogue, false)?;
    if fused.residual.is_some() || fused.pooled.is_some() {
        return refuse("another value in its epilogue");
    }
    let group_ic = ic / groups;
    let mut made = Vec::new();
    for row in &rows {
        for column in &columns {
            if row.n_outputs * column.n_outputs <= 1 {
                return refuse("a phase of one pixel");
            }
            let mut own = Vec::with_capacity(oc * group_ic * row.taps.len() * column.taps.len());
            for o in 0..oc {
                for i in 0..group_ic {
                    let channel = o / group_oc * group_ic + i;
                    for ky in &row.taps {
                        for kx in &column.taps {
                            let tap = ky * kw + kx;
                            own.push(weights[(channel * group_oc + o % group_oc) * kh * kw + tap]);
                        }
                    }
                }
            }
            let conv = Conv {
                n,
                groups,
                input: [ic, ih, iw],
                output: [oc, row.n_outputs, column.n_outputs],
                kernel: [row.taps.len(), column.taps.len()],
                stride: [1, 1],
                dilation: [1, 1],
                pad: [row.pad, column.pad],
                epilogue: fused.steps.clone(),
                weights: own,
                bias: bias.clone(),
                residual: None,
                scale: None,
                pooled: None,
                stored: true,
                quantized: None,
            };
            made.push(([row.first, column.first], conv));
        }
    }
    let deconv = Deconv {
        phases: made,
        stride,
    };
    let name = format!("deconv {kh}x{kw} {ic}→{oc} g{groups}");
    let y = fused.last.unwrap_or(result);
    let main = ctx.operation(name, Kind::Deconv(deconv), x, y);
    Ok(std::iter::once(main)
        .chain(ctx.after(&fused.rest)?)
        .chain(ctx.views(&fused.views))
        .collect())
}

/// Cuts one axis into phases; `None` if one has no taps, or would begin inside the input.
fn phases(kernel: usize, stride: usize, pad: usize, output: usize) -> Option<Vec<Phase>> {
    (0..stride.min(output))
        .map(|first| {
            let least = (first + pad) % stride;
            // Inputs from the first output's own position to the last that it reads.
            let ahead = (first + pad) / stride;
            let taps: Vec<usize> = (least..kernel).step_by(stride).rev().collect();
            Some(Phase {
                first,
                n_outputs: (output - first).div_ceil(stride),
                pad: taps.len().checked_sub(ahead + 1)?,
                taps,
            })
        })
        .collect()
}
