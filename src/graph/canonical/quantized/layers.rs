//! `QLinearConv` and `QLinearMatMul` with weights, as float layers between conversions.

use super::builder::Builder;
use crate::graph::{Attribute, DType, Graph, Node, NodeId, Shape, Tensor, TensorData, compact};

/// Writes quantised layers whose weights and scales are constant as what they mean.
///
/// A layer whose weights are not around zero stays as it is: there is an exact kernel for it.
pub(super) fn spell_out(graph: &mut Graph) {
    let mut changed = false;
    let mut builder = Builder::new(graph);
    for idx in 0..builder.graph.nodes.len() {
        let layer = match builder.graph.nodes[idx].op.as_str() {
            "QLinearConv" => "Conv",
            "QLinearMatMul" => "MatMul",
            _ => continue,
        };
        changed |= rewrite(&mut builder, NodeId(idx), layer).is_some();
    }
    if changed {
        compact(graph);
    }
}

fn rewrite(builder: &mut Builder<'_>, id: NodeId, layer: &str) -> Option<()> {
    let graph = &*builder.graph;
    let node = graph.node(id).clone();
    let (x, w, y) = (node.input(0)?, node.input(3)?, node.output(0)?);
    let title = graph.value(y).name.clone();
    let axis = i64::from(layer == "MatMul");
    let bias = match node.input(8) {
        Some(_) => Some(real_bias(graph, &node)?),
        None => None,
    };
    if !is_eligible(graph, &node) {
        return None;
    }
    let shape = |id| graph.value(id).shape.clone();
    let (x_shape, w_shape, y_shape) = (shape(x), shape(w), shape(y));
    let mut value =
        |part: &str, shape: Shape| builder.value(&format!("{title}/{part}"), DType::F32, shape);
    let (real_x, real_w, real_y) = (
        value("x", x_shape),
        value("w", w_shape),
        value("real", y_shape),
    );
    let mut inputs = vec![real_x, real_w];
    if let Some(bias) = bias {
        inputs.push(builder.constant(&format!("{title}/b"), bias));
    }
    builder.node(
        "DequantizeLinear",
        &[x, node.input(1)?, node.input(2)?],
        real_x,
    );
    // i8 weights are around 0, which is what no zero point means; one may differ in shape from many
    // scales.
    let of_weights = match builder.graph.value(w).dtype {
        DType::I8 => vec![w, node.input(4)?],
        _ => vec![w, node.input(4)?, node.input(5)?],
    };
    builder.node("DequantizeLinear", &of_weights, real_w);
    let weights = builder.graph.nodes.last_mut()?;
    weights
        .attributes
        .insert("axis".to_owned(), Attribute::Int(axis));
    builder.node(layer, &inputs, real_y);
    let real = builder.graph.nodes.last_mut()?;
    real.attributes.clone_from(&node.attributes);
    real.name.clone_from(&node.name);
    let output = Node {
        op: "QuantizeLinear".to_owned(),
        attributes: [].into(),
        inputs: vec![Some(real_y), node.input(6), node.input(7)],
        ..node
    };
    builder.graph.nodes[id.0] = output;
    Some(())
}

/// Returns whether the operands are one scale and zero point of an activation each, and constant
/// weights around zero with one scale or one a channel.
fn is_eligible(graph: &Graph, node: &Node) -> bool {
    let single = |idx: usize| {
        let known = node.input(idx).and_then(|id| graph.constant(id));
        known.is_some_and(|tensor| tensor.shape().len() == 1)
    };
    let weights = Node {
        op: "DequantizeLinear".to_owned(),
        inputs: node.inputs[3..6].to_vec(),
        attributes: [].into(),
        ..node.clone()
    };
    let scale_rank = node.input(4).map_or(0, |id| graph.value(id).shape.rank());
    let is_layer = node
        .input(3)
        .is_some_and(|id| graph.value(id).shape.rank() >= 2);
    let is_byte = |idx: usize| {
        let id = node.input(idx);
        id.is_some_and(|id| matches!(graph.value(id).dtype, DType::U8 | DType::I8))
    };
    [1, 2, 6, 7].into_iter().all(single)
        && is_byte(2)
        && is_byte(7)
        && is_layer
        && scale_rank <= 1
        && (node.op == "QLinearConv"
            || node
                .input(3)
                .is_some_and(|id| graph.value(id).shape.rank() == 2))
        && crate::graph::is_symmetric(graph, &weights)
}

/// Returns the bias in real units: an i32 counts steps of both scales.
fn real_bias(graph: &Graph, node: &Node) -> Option<Tensor> {
    let constant = |idx| graph.constant(node.input(idx)?);
    let TensorData::I32(bias) = constant(8)?.data() else {
        return None;
    };
    let x = *constant(1)?.as_f32()?.first()?;
    let scales = constant(4)?.as_f32()?;
    let real = bias.iter().enumerate().map(|(channel, &steps)| {
        let scale = scales
            .get(channel)
            .or(scales.first())
            .copied()
            .unwrap_or(0.0);
        (f64::from(steps) * f64::from(x) * f64::from(scale)) as f32
    });
    Some(Tensor::from_f32(real.collect()))
}
