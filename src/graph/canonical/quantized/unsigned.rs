//! 8-bit activations as u8 and weights as i8, as integer kernels multiply them.

use super::builder::Builder;
use crate::graph::{
    DType, Graph, NodeId, Shape, Tensor, TensorData, ValueId, affine, compact, is_symmetric,
};

/// Distance between an i8 and the u8 of the same value.
const OFFSET: i32 = 128;

/// Turns u8 weights around 128 into i8 around 0.
pub(super) fn weights(graph: &mut Graph) {
    let mut builder = Builder::new(graph);
    for idx in 0..builder.graph.nodes.len() {
        let graph = &*builder.graph;
        let node = graph.nodes[idx].clone();
        if node.op != "DequantizeLinear" || !is_symmetric(graph, &node) {
            continue;
        }
        let Some(id) = node.input(0) else { continue };
        let Some(TensorData::U8(data)) = graph.constant(id).map(Tensor::data) else {
            continue;
        };
        let signed: Vec<i8> = data
            .iter()
            .map(|&v| (i32::from(v) - OFFSET) as i8)
            .collect();
        let Ok(signed) = Tensor::new(graph.value(id).shape.clone(), TensorData::I8(signed)) else {
            continue;
        };
        let name = graph.value(id).name.clone();
        let id = builder.constant(&format!("{name}/i8"), signed);
        let inputs = &mut builder.graph.nodes[idx].inputs;
        inputs[0] = Some(id);
        // Without a zero point it is 0.
        inputs.truncate(2);
    }
}

/// Turns i8 activations into u8 of the same meaning: all that is quantised by one scale and only
/// dequantised again. What is an input or output of the model is converted next to it.
pub(super) fn activations(graph: &mut Graph) {
    ports(graph);
    let producers = graph.producers();
    let consumers = graph.consumers();
    let mut builder = Builder::new(graph);
    for idx in 0..builder.graph.values.len() {
        let graph = &*builder.graph;
        let id = ValueId(idx);
        let value = graph.value(id);
        if value.dtype != DType::I8 || value.data.is_some() || graph.outputs.contains(&id) {
            continue;
        }
        let Some(producer) = producers[idx].filter(|&id| graph.node(id).op == "QuantizeLinear")
        else {
            continue;
        };
        let all: Vec<NodeId> = std::iter::once(producer)
            .chain(consumers[idx].clone())
            .collect();
        let zeros: Option<Vec<i32>> = all
            .iter()
            .map(|&node| Some(affine(graph, graph.node(node))?.1))
            .collect();
        let reads = |id: &NodeId| graph.node(*id).op == "DequantizeLinear";
        let Some(zeros) = zeros.filter(|_| all[1..].iter().all(reads)) else {
            continue;
        };
        for (node, zero) in all.into_iter().zip(zeros) {
            set_zero(&mut builder, node, zero + OFFSET);
        }
        builder.graph.values[idx].dtype = DType::U8;
    }
}

fn set_zero(builder: &mut Builder<'_>, node: NodeId, zero: i32) {
    let graph = &*builder.graph;
    let name = graph.node(node).input(1);
    let name = name.map_or(String::new(), |id| format!("{}/u8", graph.value(id).name));
    let Ok(zero) = Tensor::new(Shape::default(), TensorData::U8(vec![zero as u8])) else {
        return;
    };
    // The zero point has the shape of the scale.
    let shape = graph
        .node(node)
        .input(1)
        .map(|id| graph.value(id).shape.clone());
    let Ok(zero) = zero.reshaped(shape.unwrap_or_default()) else {
        return;
    };
    let id = builder.constant(&name, zero);
    let node = &mut builder.graph.nodes[node.0];
    node.attributes.remove("output_dtype");
    node.inputs.truncate(2);
    node.inputs.push(Some(id));
}

/// Puts a conversion to u8 behind i8 inputs that are dequantised, and one back in front of i8
/// outputs that are quantised.
fn ports(graph: &mut Graph) {
    let n_nodes = graph.nodes.len();
    let mut builder = Builder::new(graph);
    for idx in 0..n_nodes {
        let graph = &*builder.graph;
        let node = graph.nodes[idx].clone();
        let Some((scale, zero)) = affine(graph, &node) else {
            continue;
        };
        let (Some(from), Some(to)) = (node.input(0), node.output(0)) else {
            continue;
        };
        let is_signed = |id: ValueId| graph.value(id).dtype == DType::I8;
        let reads_port =
            node.op == "DequantizeLinear" && is_signed(from) && graph.inputs.contains(&from);
        let makes_port =
            node.op == "QuantizeLinear" && is_signed(to) && graph.outputs.contains(&to);
        if !reads_port && !makes_port {
            continue;
        }
        let title = graph.value(to).name.clone();
        let shape = graph.value(to).shape.clone();
        let scalar = |data| Tensor::new(Shape::default(), data);
        let (Ok(scale), Ok(zero)) = (
            scalar(TensorData::F32(vec![scale])),
            scalar(TensorData::U8(vec![(zero + OFFSET) as u8])),
        ) else {
            continue;
        };
        let scale = builder.constant(&format!("{title}/scale"), scale);
        let zero = builder.constant(&format!("{title}/zero"), zero);
        let real = builder.value(&format!("{title}/real"), DType::F32, shape.clone());
        let byte = builder.value(&format!("{title}/u8"), DType::U8, shape);
        if reads_port {
            // i8 → real → u8 → what was read.
            builder.node("QuantizeLinear", &[real, scale, zero], byte);
            builder.node("DequantizeLinear", &[byte, scale, zero], to);
            builder.graph.nodes[idx].outputs[0] = Some(real);
        } else {
            // What was quantised → u8 → real → i8.
            builder.node("QuantizeLinear", &[from, scale, zero], byte);
            builder.node("DequantizeLinear", &[byte, scale, zero], real);
            builder.graph.nodes[idx].inputs[0] = Some(real);
        }
    }
    if graph.nodes.len() > n_nodes {
        compact(graph);
    }
}
