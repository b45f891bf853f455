//! Linear operators in a row, taken as one.

use super::rule::{Replacement, Rewrite, Source, View};
use super::scale::is_plain;
use crate::graph::{Node, Shape, Tensor, TensorData};

/// Most multiplications that composing weights may take.
const MAX_WORK: usize = 1 << 28;

/// A product `m[rows, inner] · m[inner, columns]` of row-major matrices.
struct Product<'a> {
    lhs: &'a [f32],
    rhs: &'a [f32],
    rows: usize,
    inner: usize,
    columns: usize,
}

/// Composes a pointwise `Conv` with the `Conv` before it, or a `Gemm` with the one before, if that
/// saves multiplications: exporters leave such pairs where training had two layers.
pub(super) fn linear(view: &View<'_>, node: &Node) -> Option<Rewrite> {
    let middle = node.input(0)?;
    let first = view.producer(middle).filter(|first| first.op == node.op)?;
    if !view.is_read_once(middle) {
        return None;
    }
    let weights = |node: &Node| view.graph.constant(node.input(1)?);
    let (w1, w2) = (weights(first)?, weights(node)?);
    let is_conv = match node.op.as_str() {
        "Conv" if is_pointwise(node, w2) && first.int("group", 1) == 1 => true,
        "Gemm" if is_plain(first) && is_plain(node) => false,
        _ => return None,
    };
    let (d1, d2) = (w1.shape().dims(), w2.shape().dims());
    // Convolutions have their output channels first, products have them last.
    let (product, dims) = if is_conv {
        let columns = d1[1..].iter().product();
        let dims = [&d2[..1], &d1[1..]].concat();
        (product(w2, w1, d2[0], d1[0], columns)?, dims)
    } else {
        let (&[k, m], &[_, n]) = (d1, d2) else {
            return None;
        };
        (product(w1, w2, k, m, n)?, vec![k, n])
    };
    if !product.saves_work() {
        return None;
    }
    let channels = if is_conv { d2[0] } else { *d2.last()? };
    let bias = bias(view, first, node, w2, channels, is_conv)?;
    let composed = Tensor::new(Shape(dims), TensorData::F32(product.compute())).ok()?;
    Some(Rewrite::Replace(Replacement {
        op: if is_conv { "Conv" } else { "Gemm" },
        attributes: first.attributes.clone(),
        inputs: vec![
            Some(Source::Value(first.input(0)?)),
            Some(Source::Constant(composed)),
            Some(Source::Constant(bias)),
        ],
        before: None,
    }))
}

fn is_pointwise(node: &Node, weights: &Tensor) -> bool {
    let all = |name: &str, value: i64| {
        node.ints(name)
            .is_none_or(|values| values.iter().all(|&v| v == value))
    };
    weights.shape().rank() > 2
        && weights.shape().dims()[2..].iter().all(|&size| size == 1)
        && node.int("group", 1) == 1
        && all("strides", 1)
        && all("pads", 0)
        && node.string("auto_pad", "NOTSET") == "NOTSET"
}

fn product<'a>(
    lhs: &'a Tensor,
    rhs: &'a Tensor,
    rows: usize,
    inner: usize,
    columns: usize,
) -> Option<Product<'a>> {
    let (lhs, rhs) = (lhs.as_f32()?, rhs.as_f32()?);
    let fits = lhs.len() == rows * inner && rhs.len() == inner * columns;
    fits.then_some(Product {
        lhs,
        rhs,
        rows,
        inner,
        columns,
    })
}

impl Product<'_> {
    /// Returns whether one operator with the product multiplies less than the two do.
    fn saves_work(&self) -> bool {
        let composed = self.rows * self.columns;
        let work = composed.checked_mul(self.inner);
        composed < self.lhs.len() + self.rhs.len() && work.is_some_and(|work| work <= MAX_WORK)
    }

    fn compute(&self) -> Vec<f32> {
        let mut result = Vec::with_capacity(self.rows * self.columns);
        let mut row = vec![0f64; self.columns];
        for i in 0..self.rows {
            row.fill(0.0);
            for j in 0..self.inner {
                let factor = f64::from(self.lhs[i * self.inner + j]);
                let other = &self.rhs[j * self.columns..(j + 1) * self.columns];
                for (sum, &value) in row.iter_mut().zip(other) {
                    *sum += factor * f64::from(value);
                }
            }
            result.extend(row.iter().map(|&sum| sum as f32));
        }
        result
    }
}

/// Returns the bias of the first operator, sent through the second, plus the bias of that.
fn bias(
    view: &View<'_>,
    first: &Node,
    second: &Node,
    weights: &Tensor,
    channels: usize,
    is_conv: bool,
) -> Option<Tensor> {
    let constant = |node: &Node| match node.input(2) {
        Some(id) => Some(Some(view.graph.constant(id)?.as_f32()?)),
        None => Some(None),
    };
    let (b1, b2) = (constant(first)?, constant(second)?);
    let weights = weights.as_f32()?;
    let inner = weights.len() / channels.max(1);
    if b1.is_some_and(|b| b.len() != inner) || b2.is_some_and(|b| b.len() != channels) {
        return None;
    }
    let entry = |c: usize| {
        let at = |j: usize| {
            if is_conv {
                c * inner + j
            } else {
                j * channels + c
            }
        };
        let through = b1.map_or(0.0, |b| {
            (0..inner)
                .map(|j| f64::from(weights[at(j)]) * f64::from(b[j]))
                .sum()
        });
        (through + b2.map_or(0.0, |b| f64::from(b[c]))) as f32
    };
    Some(Tensor::from_f32((0..channels).map(entry).collect()))
}
