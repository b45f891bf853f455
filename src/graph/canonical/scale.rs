//! Constant factors and offsets by output channel, folded into the operator before.

use super::rule::{Replacement, Rewrite, Source, View};
use crate::graph::{Node, Shape, Tensor, TensorData, ValueId};

/// An operator with weights: where its channels are, and what they are now.
pub(super) struct Weighted<'a> {
    node: &'a Node,
    op: &'static str,
    weights: &'a Tensor,
    bias: Option<&'a Tensor>,
    /// Output channels.
    channels: usize,
    /// Axis of the channels in the output.
    axis: usize,
}

impl<'a> Weighted<'a> {
    /// Finds the weighted operator that produces a value which nothing else reads.
    pub(super) fn find(view: &'a View<'_>, id: ValueId) -> Option<Self> {
        let node = view.producer(id).filter(|node| node.domain.is_empty())?;
        if !view.is_read_once(id) {
            return None;
        }
        let weights = view.graph.constant(node.input(1)?)?;
        weights.as_f32()?;
        let bias = match node.input(2) {
            Some(id) => Some(view.graph.constant(id)?),
            None => None,
        };
        let w = weights.shape().dims();
        let rank = view.graph.value(id).shape.rank();
        let (op, channels, axis) = match node.op.as_str() {
            "Conv" => ("Conv", *w.first()?, 1),
            "ConvTranspose" => {
                let group = usize::try_from(node.int("group", 1)).ok()?;
                ("ConvTranspose", w.get(1)?.checked_mul(group)?, 1)
            }
            "Gemm" if is_plain(node) => ("Gemm", *w.get(1)?, 1),
            "MatMul" if w.len() == 2 && rank > 1 => ("MatMul", w[1], rank - 1),
            "LayerNormalization" if w.len() == 1 => ("LayerNormalization", w[0], rank - 1),
            _ => return None,
        };
        if bias.is_some_and(|bias| bias.shape().dims() != [channels]) {
            return None;
        }
        Some(Self {
            node,
            op,
            weights,
            bias,
            channels,
            axis,
        })
    }

    /// Returns a constant that broadcasts along all axes but the channels', one entry a channel.
    pub(super) fn per_channel(
        &self,
        view: &View<'_>,
        reader: &Node,
        constant: ValueId,
    ) -> Option<Vec<f32>> {
        let tensor = view.graph.constant(constant)?;
        let data = tensor.as_f32()?;
        let rank = view.graph.value(reader.output(0)?).shape.rank();
        if let [value] = data {
            return Some(vec![*value; self.channels]);
        }
        let dims = tensor.shape().dims();
        let channel_axis = (self.axis + dims.len()).checked_sub(rank)?;
        let fits = dims
            .iter()
            .enumerate()
            .all(|(i, &size)| size == if i == channel_axis { self.channels } else { 1 });
        fits.then(|| data.to_vec())
    }

    /// Returns the operator with each output channel `y` replaced by `scale · y + offset`.
    pub(super) fn scaled(&self, scale: &[f64], offset: &[f64]) -> Option<Rewrite> {
        let old = self.weights.as_f32()?;
        let weights: Vec<f32> = old
            .iter()
            .enumerate()
            .map(|(idx, &w)| (f64::from(w) * scale[self.channel(idx)]) as f32)
            .collect();
        let bias: Vec<f32> = (0..self.channels)
            .map(|c| {
                let old = self
                    .bias
                    .and_then(Tensor::as_f32)
                    .map_or(0.0, |bias| bias[c]);
                (f64::from(old) * scale[c] + offset[c]) as f32
            })
            .collect();
        let is_scaled = scale.iter().any(|&s| s != 1.0);
        let weights = if is_scaled {
            let shape = self.weights.shape().clone();
            Source::Constant(Tensor::new(shape, TensorData::F32(weights)).ok()?)
        } else {
            Source::Value(self.node.input(1)?)
        };
        let mut inputs = vec![Some(Source::Value(self.node.input(0)?)), Some(weights)];
        if self.op != "MatMul" {
            let shape = Shape(vec![self.channels]);
            let bias = Tensor::new(shape, TensorData::F32(bias)).ok()?;
            inputs.push(Some(Source::Constant(bias)));
        } else if offset.iter().any(|&o| o != 0.0) {
            return None;
        }
        Some(Rewrite::Replace(Replacement {
            op: self.op,
            attributes: self.node.attributes.clone(),
            inputs,
            before: None,
        }))
    }

    /// Returns the output channel that a weight belongs to.
    fn channel(&self, idx: usize) -> usize {
        let w = self.weights.shape().dims();
        match self.op {
            "Conv" => idx / w[1..].iter().product::<usize>().max(1),
            "ConvTranspose" => {
                let inner = w[2..].iter().product::<usize>().max(1);
                let (source, within) = (idx / inner / w[1].max(1), idx / inner % w[1].max(1));
                let group = self.channels / w[1].max(1);
                source * group / w[0].max(1) * w[1] + within
            }
            _ => idx % self.channels.max(1),
        }
    }
}

/// Returns whether a `Gemm` is `x · w + b` with `w` as `[k, n]`.
pub(super) fn is_plain(node: &Node) -> bool {
    node.int("transA", 0) == 0
        && node.int("transB", 0) == 0
        && node.float("alpha", 1.0) == 1.0
        && node.float("beta", 1.0) == 1.0
}

/// Folds `y · constant` and `y / constant` into the operator that produces `y`.
pub(super) fn fold_multiplication(view: &View<'_>, node: &Node) -> Option<Rewrite> {
    let is_division = match node.op.as_str() {
        "Mul" => false,
        "Div" => true,
        _ => return None,
    };
    let (weighted, constant) = operands(view, node, !is_division)?;
    let factors = weighted.per_channel(view, node, constant)?;
    let scale: Vec<f64> = factors
        .iter()
        .map(|&f| {
            if is_division {
                1.0 / f64::from(f)
            } else {
                f.into()
            }
        })
        .collect();
    if scale.iter().any(|s| !s.is_finite()) {
        return None;
    }
    weighted.scaled(&scale, &vec![0.0; scale.len()])
}

/// Folds `y + constant` and `y - constant` into the operator that produces `y`.
pub(super) fn fold_addition(view: &View<'_>, node: &Node) -> Option<Rewrite> {
    let sign = match node.op.as_str() {
        "Add" => 1.0,
        "Sub" => -1.0,
        _ => return None,
    };
    let (weighted, constant) = operands(view, node, sign > 0.0)?;
    let terms = weighted.per_channel(view, node, constant)?;
    let offset: Vec<f64> = terms.iter().map(|&t| sign * f64::from(t)).collect();
    weighted.scaled(&vec![1.0; offset.len()], &offset)
}

fn operands<'a>(
    view: &'a View<'_>,
    node: &Node,
    is_commutative: bool,
) -> Option<(Weighted<'a>, ValueId)> {
    let (lhs, rhs) = (node.input(0)?, node.input(1)?);
    let (value, constant) = if view.graph.constant(rhs).is_some() {
        (lhs, rhs)
    } else if is_commutative && view.graph.constant(lhs).is_some() {
        (rhs, lhs)
    } else {
        return None;
    };
    if !view.keeps_shape(node, value) {
        return None;
    }
    Some((Weighted::find(view, value)?, constant))
}
