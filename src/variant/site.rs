//! What may be varied in a model: its subgraphs.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::{DType, Graph, Node, NodeId, Partition, Subgraph, ValueId, scalar};

/// One subgraph, with what its variants need to know of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The operator that decides how the subgraph is computed.
    pub anchor: NodeId,
    /// The weights, if it is a layer.
    pub layer: Option<Layer>,
    /// The f32 activations that it reads as integers in its integer form, empty if it has none: what a
    /// layer multiplies and what its prologue computes that of, or all inputs of what is no layer.
    pub integers: Vec<ValueId>,
}

/// A product with constant weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layer {
    /// What they multiply.
    pub x: ValueId,
    /// The weights, f32.
    pub weights: ValueId,
    /// Axis of the weights that counts outputs.
    pub axis: usize,
}

/// Operators that take elements as they are, on which integers of one scale are moved like numbers.
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
    "DepthToSpace",
    "SpaceToDepth",
];

/// Returns the sites of a graph, one a subgraph, in their order.
pub fn sites(graph: &Graph, partition: &Partition) -> Vec<Site> {
    let subgraphs = partition.subgraphs.iter();
    subgraphs.map(|subgraph| site(graph, subgraph)).collect()
}

fn site(graph: &Graph, subgraph: &Subgraph) -> Site {
    let anchor = graph.node(subgraph.anchor);
    let layer = layer(graph, anchor);
    let is_covered = match layer {
        Some(_) => matches!(anchor.op.as_str(), "Conv" | "Gemm" | "MatMul"),
        None => maps_integers(graph, anchor),
    };
    let is_float = |id: &ValueId| graph.value(*id).dtype == DType::F32;
    // What a layer adds to its products may be either.
    let before = match layer {
        Some(_) => subgraph.prologue.clone(),
        None => subgraph.nodes(),
    };
    let read = before.iter().chain([&subgraph.anchor]);
    let read = read.flat_map(|id| graph.node(*id).inputs.iter().flatten().copied());
    let is_inner = |id: ValueId| {
        let x = anchor.input(0).filter(|_| layer.is_some());
        subgraph.inputs.contains(&id) || x == Some(id)
    };
    let mut integers: Vec<ValueId> = Vec::new();
    for id in read.filter(|id| is_covered && is_float(id) && is_inner(*id)) {
        if !integers.contains(&id) {
            integers.push(id);
        }
    }
    Site {
        anchor: subgraph.anchor,
        layer,
        integers,
    }
}

/// Returns the weights of a layer whose products integers can stand for.
fn layer(graph: &Graph, node: &Node) -> Option<Layer> {
    let (x, weights) = (node.input(0)?, node.input(1)?);
    let tensor = graph.constant(weights)?;
    tensor.as_f32()?;
    let rank = tensor.shape().rank();
    let axis = match node.op.as_str() {
        "Conv" if rank >= 3 => 0,
        "Gemm" if rank == 2 => {
            let is_plain = [node.float("alpha", 1.0), node.float("beta", 1.0)]
                .iter()
                .all(|&factor| (factor - 1.0).abs() < f32::EPSILON)
                && node.int("transA", 0) == 0;
            is_plain.then(|| usize::from(node.int("transB", 0) == 0))?
        }
        "MatMul" if rank == 2 => 1,
        _ => return None,
    };
    node.domain.is_empty().then_some(Layer { x, weights, axis })
}

/// Returns whether an operator without weights is computed on 8-bit integers as well.
fn maps_integers(graph: &Graph, node: &Node) -> bool {
    let op = node.op.as_str();
    if !node.domain.is_empty() || node.outputs.len() != 1 {
        return false;
    }
    let is_float = |id: &ValueId| graph.value(*id).dtype == DType::F32;
    let mut data = node.inputs.iter().flatten();
    let n_data = match op {
        "Concat" | "Add" | "Sub" | "Mul" | "Div" => node.inputs.len(),
        _ => 1,
    };
    let of_floats = data.by_ref().take(n_data).all(is_float) && node.output(0).iter().all(is_float);
    let is_map = matches!(
        op,
        "Add"
            | "Sub"
            | "Mul"
            | "Relu"
            | "LeakyRelu"
            | "Clip"
            | "HardSigmoid"
            | "HardSwish"
            | "Sigmoid"
            | "Tanh"
            | "Swish"
            | "Gelu"
            | "Elu"
            | "AveragePool"
            | "GlobalAveragePool"
    );
    // Scaling by a constant is arithmetic of one activation, which is exact where it is.
    let of_one = matches!(op, "Add" | "Sub" | "Mul")
        && node
            .inputs
            .iter()
            .flatten()
            .any(|&id| scalar(graph, id).is_some());
    of_floats && !of_one && (is_map || MOVES.contains(&op))
}

/// Returns the values that sites read as integers.
pub fn read_values(sites: &[Site]) -> BTreeSet<ValueId> {
    let each = sites.iter().flat_map(|site| site.integers.iter());
    each.copied().collect()
}

/// Returns for each value the first of those that it shares its scale with: what is only moved from
/// one to the other is moved as integers.
pub fn ties(graph: &Graph) -> BTreeMap<ValueId, ValueId> {
    let mut parents: Vec<usize> = (0..graph.values.len()).collect();
    for node in &graph.nodes {
        let (true, Some(output)) = (MOVES.contains(&node.op.as_str()), node.output(0)) else {
            continue;
        };
        let n_data = match node.op.as_str() {
            "Concat" => node.inputs.len(),
            _ => 1,
        };
        let is_open = |id: &&ValueId| graph.constant(**id).is_none();
        for input in node.inputs.iter().take(n_data).flatten().filter(is_open) {
            let (lhs, rhs) = (root(&mut parents, input.0), root(&mut parents, output.0));
            parents[lhs.max(rhs)] = lhs.min(rhs);
        }
    }
    let values = 0..graph.values.len();
    values
        .map(|id| (ValueId(id), ValueId(root(&mut parents, id))))
        .collect()
}

fn root(parents: &mut [usize], mut at: usize) -> usize {
    while parents[at] != at {
        parents[at] = parents[parents[at]];
        at = parents[at];
    }
    at
}
