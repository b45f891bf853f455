//! Models of half precision, computed in single precision.
//!
//! Weights become the f32 of the same value, and what operators give is not rounded on the way, so
//! that a model of f16 has the operators, the kernels and the labels of its twin of f32. Rounded is
//! what a `Cast` says, and what leaves the model as f16; so do onnxruntime's kernels for processors.
//! What is too large for f16 on the way is infinite there, and a number here.

use std::sync::Arc;

use super::builder::Builder;
use crate::graph::{
    Attribute, DType, Graph, Node, Tensor, TensorData, ValueId, compact, f16_to_f32,
};

/// Makes all values f32 that are f16, but for inputs and outputs of the model and what a `Cast`
/// rounds. A graph with a node that cannot be rewritten so, such as one of random numbers of f16,
/// stays as it is.
pub fn widen_halves(graph: &mut Graph) {
    let halves: Vec<bool> = graph.values.iter().map(|v| v.dtype == DType::F16).collect();
    let is_fixed = |node: &Node| {
        let mut values = node.inputs.iter().chain(&node.outputs).flatten();
        values.any(|id| halves[id.0]) && names_halves(node)
    };
    if !halves.contains(&true) || graph.nodes.iter().any(is_fixed) {
        return;
    }
    let n_nodes = graph.nodes.len();
    let mut builder = Builder::new(graph);
    ports(&mut builder);
    for idx in 0..n_nodes {
        round(&mut builder, idx, &halves);
    }
    for idx in 0..halves.len() {
        widen(builder.graph, ValueId(idx));
    }
    compact(graph);
}

/// Returns whether a node is of f16 for a reason of its own: it says so, or it has a body.
fn names_halves(node: &Node) -> bool {
    let is_known = matches!(node.domain.as_str(), "" | "ai.onnx") && node.op != "BitCast";
    let names = |(name, attribute): (&String, &Attribute)| match attribute {
        Attribute::Graph(_) => true,
        Attribute::Tensor(tensor) => tensor.dtype() == DType::F16,
        Attribute::Int(code) => {
            let is_type = name.ends_with("type") || name.ends_with("precision");
            is_type && *code == i64::from(DType::F16.onnx())
        }
        _ => false,
    };
    !is_known || node.attributes.iter().any(names)
}

/// Puts conversions between the inputs and outputs of f16 and the nodes.
fn ports(builder: &mut Builder<'_>) {
    let (inputs, outputs) = (builder.graph.inputs.clone(), builder.graph.outputs.clone());
    let mut seen: Vec<ValueId> = Vec::new();
    for id in inputs.iter().chain(&outputs).copied() {
        let port = builder.graph.value(id).clone();
        if port.dtype != DType::F16 || seen.contains(&id) {
            continue;
        }
        seen.push(id);
        let wide = builder.value(&format!("{}/f32", port.name), DType::F32, port.shape);
        builder.graph.values[wide.0].data = port.data.as_deref().and_then(single).map(Arc::new);
        for node in &mut builder.graph.nodes {
            let values = node.inputs.iter_mut().chain(&mut node.outputs).flatten();
            for value in values.filter(|value| **value == id) {
                *value = wide;
            }
        }
        if inputs.contains(&id) {
            cast(builder, id, wide, DType::F32);
        } else if port.data.is_none() {
            cast(builder, wide, id, DType::F16);
        }
    }
}

/// Makes a conversion to f16 one that rounds, and gives f32.
fn round(builder: &mut Builder<'_>, idx: usize, halves: &[bool]) {
    let graph = &*builder.graph;
    let node = &graph.nodes[idx];
    let (Some(x), Some(y)) = (node.input(0), node.output(0)) else {
        return;
    };
    // Values that were added stand for those of f16.
    let was_half = |id: ValueId| halves.get(id.0).copied().unwrap_or(true);
    let to_half = match node.op.as_str() {
        "Cast" => node.int("to", 0) == i64::from(DType::F16.onnx()),
        "CastLike" => node.input(1).is_some_and(was_half),
        _ => return,
    };
    if !to_half {
        return;
    }
    let given = graph.value(x);
    // Numbers that f16 holds as they are.
    let is_exact = given.dtype == DType::Bool || was_half(x);
    let from = if is_exact {
        x
    } else {
        let name = format!("{}/f16", graph.value(y).name);
        let rounded = builder.value(&name, DType::F16, given.shape.clone());
        cast(builder, x, rounded, DType::F16);
        rounded
    };
    let node = &mut builder.graph.nodes[idx];
    "Cast".clone_into(&mut node.op);
    node.inputs = vec![Some(from)];
    node.attributes = [to(DType::F32)].into();
}

/// Makes a value f32, unless it is an input or output of the model.
fn widen(graph: &mut Graph, id: ValueId) {
    let is_port = graph.inputs.contains(&id) || graph.outputs.contains(&id);
    let value = &mut graph.values[id.0];
    if value.dtype != DType::F16 || is_port {
        return;
    }
    value.dtype = DType::F32;
    value.data = value.data.as_deref().and_then(single).map(Arc::new);
}

/// Returns the f32 of the same values.
fn single(halves: &Tensor) -> Option<Tensor> {
    let TensorData::F16(data) = halves.data() else {
        return None;
    };
    let data = data.iter().map(|&bits| f16_to_f32(bits)).collect();
    Tensor::new(halves.shape().clone(), TensorData::F32(data)).ok()
}

fn cast(builder: &mut Builder<'_>, from: ValueId, into: ValueId, dtype: DType) {
    builder.node("Cast", &[from], into);
    if let Some(node) = builder.graph.nodes.last_mut() {
        node.attributes = [to(dtype)].into();
    }
}

fn to(dtype: DType) -> (String, Attribute) {
    ("to".to_owned(), Attribute::Int(dtype.onnx().into()))
}
