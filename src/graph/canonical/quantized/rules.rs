//! Rules about `QuantizeLinear` and what surrounds it.

use crate::graph::canonical::rule::{Replacement, Rewrite, Source, View};
use crate::graph::{DType, Node, Tensor, TensorData, ValueId, affine, clip_bounds, is_symmetric};

/// Operators that take elements as they are: they work on integers as on what those stand for.
const MOVES: &[&str] = &[
    "MaxPool",
    "GlobalMaxPool",
    "Concat",
    "Reshape",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
    "Transpose",
    "Slice",
    "Gather",
    "Expand",
    "Tile",
    "DepthToSpace",
    "SpaceToDepth",
    "Resize",
];

/// `QuantizeLinear` of what was just dequantised in the same way is what it was.
pub(in crate::graph::canonical) fn requantized(view: &View<'_>, node: &Node) -> Option<Rewrite> {
    if node.op != "QuantizeLinear" {
        return None;
    }
    let dequantized = view.feeder(node, 0, "DequantizeLinear")?;
    let (from, to) = (dequantized.input(0)?, node.output(0)?);
    let same = affine(view.graph, node)? == affine(view.graph, dequantized)?
        && view.graph.value(from).dtype == view.graph.value(to).dtype;
    same.then_some(Rewrite::Forward(from))
}

/// Moves of elements between conversions of one scale move the integers.
pub(in crate::graph::canonical) fn moved(view: &View<'_>, node: &Node) -> Option<Rewrite> {
    let wanted = affine(view.graph, node).filter(|_| node.op == "QuantizeLinear")?;
    let result = node.input(0)?;
    let producer = view.producer(result).filter(|p| p.domain.is_empty())?;
    let op = MOVES.iter().copied().find(|op| *op == producer.op)?;
    let is_nearest = op != "Resize"
        || (producer.string("mode", "nearest") == "nearest"
            && producer.string("coordinate_transformation_mode", "half_pixel")
                != "tf_crop_and_resize");
    if producer.outputs.len() != 1 || !is_nearest || !view.is_read_once(result) {
        return None;
    }
    let n_data = if op == "Concat" {
        producer.inputs.len()
    } else {
        1
    };
    let mut inputs = Vec::new();
    for (idx, id) in producer.inputs.iter().enumerate() {
        inputs.push(match *id {
            Some(_) if idx < n_data => {
                let dequantized = view.feeder(producer, idx, "DequantizeLinear")?;
                let integer = dequantized.input(0)?;
                let dtype = |id: ValueId| view.graph.value(id).dtype;
                if affine(view.graph, dequantized)? != wanted
                    || dtype(integer) != dtype(node.output(0)?)
                {
                    return None;
                }
                Some(Source::Value(integer))
            }
            // Shapes, axes and sizes.
            other => other.map(Source::Value),
        });
    }
    Some(Rewrite::Replace(Replacement {
        op,
        attributes: producer.attributes.clone(),
        inputs,
        before: None,
    }))
}

/// A `Relu` or `Clip` that keeps all that the following `QuantizeLinear` can tell apart is dropped.
pub(in crate::graph::canonical) fn clamped(view: &View<'_>, node: &Node) -> Option<Rewrite> {
    let (scale, zero) = affine(view.graph, node).filter(|_| node.op == "QuantizeLinear")?;
    let producer = view
        .producer(node.input(0)?)
        .filter(|p| p.domain.is_empty())?;
    let (low, high) = match producer.op.as_str() {
        "Relu" => (0.0, f32::INFINITY),
        _ => clip_bounds(view.graph, producer)?,
    };
    let range = match view.graph.value(node.output(0)?).dtype {
        DType::U8 => (0.0, 255.0),
        _ => (-128.0, 127.0),
    };
    let step = |bound: f32| (bound / scale).round_ties_even() + zero as f32;
    let keeps_all = step(low) <= range.0 && step(high) >= range.1;
    let mut inputs: Vec<Option<Source>> =
        node.inputs.iter().map(|id| id.map(Source::Value)).collect();
    inputs[0] = Some(Source::Value(producer.input(0)?));
    keeps_all.then_some(Rewrite::Replace(Replacement {
        op: "QuantizeLinear",
        attributes: node.attributes.clone(),
        inputs,
        before: None,
    }))
}

/// Weights of a layer are dequantised for good if what they multiply is no 8-bit activation, or if
/// no kernel multiplies integers.
pub(in crate::graph::canonical) fn unquantized_layer(
    view: &View<'_>,
    node: &Node,
) -> Option<Rewrite> {
    let op = ["Conv", "Gemm", "MatMul", "ConvTranspose"]
        .into_iter()
        .find(|op| *op == node.op)?;
    let weights = view.feeder(node, 1, "DequantizeLinear")?;
    if !is_symmetric(view.graph, weights) {
        return None;
    }
    let activation = view.feeder(node, 0, "DequantizeLinear");
    let is_integer = activation.is_some_and(|node| affine(view.graph, node).is_some());
    if is_integer && op != "ConvTranspose" {
        return None;
    }
    let mut inputs: Vec<Option<Source>> =
        node.inputs.iter().map(|id| id.map(Source::Value)).collect();
    inputs[1] = Some(Source::Constant(dequantized(view, weights)?));
    Some(Rewrite::Replace(Replacement {
        op,
        attributes: node.attributes.clone(),
        inputs,
        before: None,
    }))
}

/// Returns the real weights of integers around zero.
fn dequantized(view: &View<'_>, node: &Node) -> Option<Tensor> {
    let weights = view.graph.constant(node.input(0)?)?;
    let scales = view.graph.constant(node.input(1)?)?.as_f32()?;
    let TensorData::I8(data) = weights.data() else {
        return None;
    };
    let dims = weights.shape().dims();
    let axis = node.int("axis", 1);
    let axis = usize::try_from(if axis < 0 {
        axis + dims.len() as i64
    } else {
        axis
    })
    .ok()?;
    let (along, inner) = match scales.len() {
        1 => (1, 1),
        n if dims.get(axis) == Some(&n) => (n, dims[axis + 1..].iter().product::<usize>()),
        _ => return None,
    };
    let real = data.iter().enumerate();
    let real = real.map(|(idx, &weight)| f32::from(weight) * scales[idx / inner.max(1) % along]);
    Tensor::new(weights.shape().clone(), TensorData::F32(real.collect())).ok()
}
