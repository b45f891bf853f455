//! `Conv` and `ConvTranspose` of any rank and type, weights constant or computed.
//!
//! Along the last axis each tap of the kernel is one run: it adds `x[x0 + i·xs] · w` to
//! `y[y0 + i·ys]`. A transposed convolution differs only in which of the two steps is the stride.
//! Where the input's step is 1 and elements are f32, rows are computed in registers instead:
//! outputs at distance `ys` form a phase, within which every tap reads consecutive elements.

use serde_json::{Value, json};

use super::element;
use super::nest;
use super::node::{Known, LoopNode};
use super::sliding::Window;
use crate::backend::native::lower::subgraph::{Lowering, NotCovered};
use crate::backend::native::spec::{Epilogue, Operation};
use crate::graph::{DType, Node};

/// Elements that no vector is longer than.
const WIDEST: usize = 16;

/// A convolution with all that its templates need.
struct Convolution<'a> {
    is_transposed: bool,
    x: Known<'a>,
    w: Known<'a>,
    bias: Option<Known<'a>>,
    y: Known<'a>,
    groups: usize,
    /// Input and output channels of a group.
    channels: [usize; 2],
    window: Window,
}

/// Lowers a convolution; `None` if the node is none.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Result<Vec<Operation>, NotCovered>> {
    matches!(node.node.op.as_str(), "Conv" | "ConvTranspose").then(|| {
        let convolution = read(node)?;
        let y = convolution.y;
        Ok(vec![convolution.operation(node, y, &[])])
    })
}

/// Lowers a convolution of f32 with its epilogue, as rows in registers.
///
/// # Errors
/// [`NotCovered`] if it has to be computed node by node.
pub(in crate::backend::native::lower) fn fused(
    ctx: &Lowering<'_>,
    anchor: &Node,
) -> Result<Vec<Operation>, NotCovered> {
    let node = LoopNode::new(ctx, anchor)?;
    let convolution = read(&node)?;
    let fused = ctx.fuse(convolution.y.id, &ctx.subgraph.epilogue)?;
    let is_simple =
        fused.residual.is_none() && fused.pooled.is_none() && ctx.subgraph.prologue.is_empty();
    let y = node.known(fused.last.unwrap_or(convolution.y.id));
    let inner = ctx.subgraph.outputs.iter().filter(|&&id| id != y.id);
    let is_seen = inner
        .filter(|&&id| !fused.views.iter().any(|view| view.1 == id))
        .count();
    if !convolution.has_rows() || !is_simple || is_seen > 0 {
        return Err(node.refuse("it is not rows of f32 with an epilogue of one operand"));
    }
    let main = convolution.operation(&node, y, &fused.steps);
    Ok(std::iter::once(main)
        .chain(ctx.views(&fused.views))
        .collect())
}

fn read<'a>(node: &LoopNode<'a>) -> Result<Convolution<'a>, NotCovered> {
    let is_transposed = node.node.op == "ConvTranspose";
    let (x, w, y) = (node.required(0)?, node.required(1)?, node.main_output()?);
    let groups = usize::try_from(node.node.int("group", 1)).unwrap_or(0);
    let rank = x.dims().len();
    let fits = groups > 0
        && rank > 2
        && w.dims().len() == rank
        && y.dims().len() == rank
        && x.dims()[1].is_multiple_of(groups)
        && y.dims()[1].is_multiple_of(groups);
    if !fits {
        return Err(node.refuse(format!(
            "input {} with weights {} in {groups} groups",
            x.shape, w.shape
        )));
    }
    if !x.dtype.is_float() || w.dtype != x.dtype || y.dtype != x.dtype {
        return Err(node.refuse(format!("elements of {} and {}", x.dtype, w.dtype)));
    }
    let spatial = [&w.dims()[2..], &x.dims()[2..], &y.dims()[2..]];
    let window = if is_transposed {
        Window::read_transposed(node, spatial[0], spatial[1], spatial[2])?
    } else {
        Window::read(node, spatial[0], spatial[1], spatial[2])?
    };
    Ok(Convolution {
        is_transposed,
        x,
        w,
        bias: node.input(2),
        y,
        groups,
        channels: [x.dims()[1] / groups, y.dims()[1] / groups],
        window,
    })
}

impl Convolution<'_> {
    /// Returns whether the input's step along the last axis is 1 and elements are f32.
    fn has_rows(&self) -> bool {
        let is_dense = self.is_transposed || self.window.stride.last() == Some(&1);
        self.x.dtype == DType::F32 && is_dense && self.x.shape.len() * self.y.shape.len() > 0
    }

    fn operation(&self, node: &LoopNode<'_>, y: Known<'_>, steps: &[Epilogue]) -> Operation {
        let mut inputs = vec![self.x, self.w];
        inputs.extend(self.bias);
        let mut facts = self.facts();
        let (template, more, room) = if self.has_rows() {
            let (mut more, room) = self.rows();
            more["epilogue"] = json!(steps);
            ("loops/convolution_rows.rs.j2", more, room)
        } else {
            let row = self.y.dims().last().map_or(0, |row| row * 4);
            let room = if self.x.dtype == DType::F16 { row } else { 0 };
            ("loops/convolution.rs.j2", self.runs(), room)
        };
        if let (Value::Object(facts), Value::Object(more)) = (&mut facts, more) {
            facts.extend(more);
        }
        node.operation(template, facts, &inputs, &[y], room)
    }

    /// What both templates read.
    fn facts(&self) -> Value {
        let (x, w, y) = (self.x.dims(), self.w.dims(), self.y.dims());
        let [c, m] = self.channels;
        let taps: usize = self.window.kernel.iter().product();
        let (x_strides, w_strides, y_strides) = (nest::dense(x), nest::dense(w), nest::dense(y));
        let outer: Vec<Value> = (0..x.len() - 3)
            .map(|axis| {
                json!({
                    "input": x[axis + 2], "output": y[axis + 2],
                    "kernel": self.window.kernel[axis],
                    "stride": self.window.stride[axis],
                    "dilation": self.window.dilation[axis],
                    "pad": self.window.begin[axis],
                    "x": x_strides[axis + 2], "w": w_strides[axis + 2], "y": y_strides[axis + 2],
                })
            })
            .collect();
        let (w_m, w_c) = if self.is_transposed {
            (taps, m * taps)
        } else {
            (c * taps, taps)
        };
        let w_group = m * c * taps;
        json!({
            "transposed": self.is_transposed,
            "bias": self.bias.is_some(),
            "n": x[0], "groups": self.groups, "c": c, "m": m,
            "outer": outer,
            "x_batch": x_strides[0], "x_channel": x_strides[1],
            "y_batch": y_strides[0], "y_channel": y_strides[1],
            "w_group": w_group, "w_m": w_m, "w_c": w_c,
            "width": y[y.len() - 1],
        })
    }

    /// Input and output extent, kernel, stride, dilation and padding of the last axis.
    fn last(&self) -> [i64; 6] {
        let axis = self.window.kernel.len() - 1;
        [
            self.x.dims()[axis + 2] as i64,
            self.y.dims()[axis + 2] as i64,
            self.window.kernel[axis] as i64,
            self.window.stride[axis] as i64,
            self.window.dilation[axis] as i64,
            self.window.begin[axis],
        ]
    }

    /// The runs of the taps along the last axis: first elements and count of each.
    fn runs(&self) -> Value {
        let [input, output, kernel, stride, dilation, pad] = self.last();
        // The side that steps by the stride starts where it is first inside, `n` counts its steps.
        let (stepping, other) = if self.is_transposed {
            (output, input)
        } else {
            (input, output)
        };
        let runs: Vec<[i64; 3]> = (0..kernel)
            .map(|k| {
                let shift = k * dilation - pad;
                let first = (-shift).max(0).div_euclid(stride)
                    + i64::from((-shift).max(0).rem_euclid(stride) > 0);
                let end = (stepping - shift + stride - 1).div_euclid(stride);
                let count = (end.min(other) - first).max(0);
                let at = first * stride + shift;
                match (count, self.is_transposed) {
                    (0, _) => [0, 0, 0],
                    (_, true) => [first, at, count],
                    (_, false) => [at, first, count],
                }
            })
            .collect();
        let dtype = self.x.dtype;
        let (x_step, y_step) = if self.is_transposed {
            (1, stride)
        } else {
            (stride, 1)
        };
        json!({
            "runs": runs, "x_step": x_step, "y_step": y_step,
            "type": element::rust_type(dtype), "storage": element::storage(dtype),
            "half": dtype == DType::F16,
            "load_x": element::load(dtype, &format!("x.add(x0 + i * {x_step})")),
            "load_w": element::load(dtype, "w.add(k)"),
            "load_b": element::load(dtype, "b.add(g * M + m)"),
        })
    }

    /// The phases of the last axis and their taps; and the bytes of rows with margins.
    fn rows(&self) -> (Value, usize) {
        let [input, output, kernel, stride, dilation, pad] = self.last();
        let n_phases = if self.is_transposed { stride } else { 1 };
        let taps: Vec<Vec<(i64, i64)>> = (0..n_phases)
            .map(|phase| {
                (0..kernel)
                    .map(|k| (k, k * dilation - pad))
                    .filter_map(|(k, shift)| {
                        if self.is_transposed {
                            let from = phase - shift;
                            (from.rem_euclid(stride) == 0).then(|| (k, from.div_euclid(stride)))
                        } else {
                            Some((k, shift))
                        }
                    })
                    .collect()
            })
            .collect();
        let offsets = || taps.iter().flatten().map(|tap| tap.1);
        let steps = (output + n_phases - 1) / n_phases;
        let left = (-offsets().min().unwrap_or(0)).max(0);
        let reach = offsets().max().unwrap_or(0) + (steps as usize).next_multiple_of(WIDEST) as i64;
        let right = (reach - input).max(0);
        let has_margins = left + right > 0;
        let row = left + input + right;
        let rows: usize = self.x.dims()[2..self.x.dims().len() - 1].iter().product();
        let len = self.channels[0] * rows * row as usize;
        let taps: Vec<Vec<(i64, i64)>> = taps
            .into_iter()
            .map(|taps| taps.into_iter().map(|(k, at)| (k, at + left)).collect())
            .collect();
        let counts: Vec<i64> = (0..n_phases)
            .map(|phase| (output - phase + n_phases - 1) / n_phases)
            .collect();
        let facts = json!({
            "phases": taps, "counts": counts, "steps": steps,
            "margins": has_margins, "left": left, "input": input, "row": row, "rows": rows,
            "plane": if has_margins { rows as i64 * row } else { rows as i64 * input },
        });
        (facts, if has_margins { len * 4 } else { 0 })
    }
}
