//! Layer normalisation and softmax that exporters spell out.

use super::rule::{Replacement, Rewrite, Source, View};
use crate::graph::{Attribute, Node, Shape, Tensor, TensorData, ValueId};

/// `(x - mean) / sqrt(mean((x - mean)²) + ε)` over the last axes is `LayerNormalization` with
/// scale 1; scale and bias are folded in by later rules.
pub(super) fn layer_normalization(view: &View<'_>, node: &Node) -> Option<Rewrite> {
    if node.op != "Div" {
        return None;
    }
    let centred = node.input(0)?;
    let (x, axis) = centred_value(view, centred)?;
    let root = view.feeder(node, 1, "Sqrt")?;
    let (variance, epsilon) = view.offset(root.input(0)?)?;
    let mean = view
        .producer(variance)
        .filter(|node| node.op == "ReduceMean")?;
    if last_axes(view, mean)? != axis {
        return None;
    }
    let square = view.producer(mean.input(0)?)?;
    let is_square = match square.op.as_str() {
        "Pow" => square.input(1).and_then(|id| view.scalar(id)) == Some(2.0),
        "Mul" => square.input(1) == square.input(0),
        _ => false,
    };
    // Exporters may compute the difference twice.
    let base = square.input(0)?;
    let is_same = base == centred || centred_value(view, base) == Some((x, axis));
    if !is_square || !is_same {
        return None;
    }
    let dims = view.graph.value(x).shape.dims();
    let shape = Shape(dims[axis..].to_vec());
    let ones = Tensor::new(shape.clone(), TensorData::F32(vec![1.0; shape.len()])).ok()?;
    let back = axis as i64 - dims.len() as i64;
    Some(Rewrite::Replace(Replacement {
        op: "LayerNormalization",
        attributes: [
            ("axis".to_owned(), Attribute::Int(back)),
            ("epsilon".to_owned(), Attribute::Float(epsilon)),
        ]
        .into(),
        inputs: vec![Some(Source::Value(x)), Some(Source::Constant(ones))],
        before: None,
    }))
}

/// Returns `x` and the first reduced axis if a value is `x - ReduceMean(x)`.
fn centred_value(view: &View<'_>, id: ValueId) -> Option<(ValueId, usize)> {
    let difference = view.producer(id).filter(|node| node.op == "Sub")?;
    let x = difference.input(0)?;
    let mean = view.feeder(difference, 1, "ReduceMean")?;
    (mean.input(0)? == x).then_some(())?;
    Some((x, last_axes(view, mean)?))
}

/// Returns the first axis of a reduction that keeps dimensions and covers all axes from there.
fn last_axes(view: &View<'_>, reduction: &Node) -> Option<usize> {
    let rank = view.graph.value(reduction.input(0)?).shape.rank();
    let axes = reduced_axes(view, reduction, rank)?;
    let first = *axes.first()?;
    let covers = axes.iter().copied().eq(first..rank);
    (covers && reduction.int("keepdims", 1) == 1).then_some(first)
}

/// Returns the axes of a reduction, sorted; all of them if none are given.
pub(super) fn reduced_axes(view: &View<'_>, node: &Node, rank: usize) -> Option<Vec<usize>> {
    let list = view.ints(node, "axes", 1);
    if list.is_none() && node.input(1).is_some() {
        return None;
    }
    let list = list.filter(|list| !list.is_empty());
    let Some(list) = list else {
        return (node.int("noop_with_empty_axes", 0) == 0).then(|| (0..rank).collect());
    };
    let from_front = |axis: i64| usize::try_from(if axis < 0 { axis + rank as i64 } else { axis });
    let mut axes = list
        .into_iter()
        .map(|axis| from_front(axis).ok())
        .collect::<Option<Vec<_>>>()?;
    axes.sort_unstable();
    Some(axes)
}

/// `Exp(x - max) / ReduceSum(Exp(x - max))` along one axis is `Softmax`.
pub(super) fn softmax(view: &View<'_>, node: &Node) -> Option<Rewrite> {
    if node.op != "Div" {
        return None;
    }
    let exp = view.feeder(node, 0, "Exp")?;
    let sum = view.feeder(node, 1, "ReduceSum")?;
    let axis = single_axis(view, sum)?;
    if sum.input(0)? != node.input(0)? {
        return None;
    }
    let argument = exp.input(0)?;
    let rank = view.graph.value(argument).shape.rank();
    // Before operator set 13 `Softmax` flattened all axes from `axis` on.
    if view.graph.opset < 13 && axis + 1 != rank {
        return None;
    }
    let x = shifted_by_max(view, argument, axis).unwrap_or(argument);
    let axis = ("axis", Attribute::Int(axis as i64));
    Some(Replacement::with("Softmax", [axis], vec![x]))
}

fn shifted_by_max(view: &View<'_>, argument: ValueId, axis: usize) -> Option<ValueId> {
    let shift = view.producer(argument).filter(|node| node.op == "Sub")?;
    let max = view.feeder(shift, 1, "ReduceMax")?;
    let x = shift.input(0)?;
    (max.input(0)? == x && single_axis(view, max)? == axis).then_some(x)
}

fn single_axis(view: &View<'_>, reduction: &Node) -> Option<usize> {
    let rank = view.graph.value(reduction.input(0)?).shape.rank();
    match reduced_axes(view, reduction, rank)?.as_slice() {
        [axis] if reduction.int("keepdims", 1) == 1 => Some(*axis),
        _ => None,
    }
}
