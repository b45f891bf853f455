//! Conversions from and to half precision at the edges of a graph, which the reference executor,
//! who knows no f16, is spared: it is given what they make of the inputs, and what they round is
//! read before them.

use std::collections::BTreeSet;

use crate::graph::{DType, Graph, Node, ValueId};

/// A conversion that is done outside of the executor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edge {
    /// The value that is converted.
    pub(super) from: String,
    /// What it becomes.
    pub(super) to: String,
    /// The type that it gets.
    pub(super) dtype: DType,
}

/// The conversions that were taken off a graph.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Edges {
    /// Of inputs, in order.
    pub(super) before: Vec<Edge>,
    /// Of results that are not read again.
    pub(super) behind: Vec<Edge>,
}

/// Takes the conversions from and to f16 off the edges of a graph. Others stay.
pub(super) fn take_off(graph: &mut Graph) -> Edges {
    let mut edges = Edges::default();
    if graph.values.iter().all(|value| value.dtype != DType::F16) {
        return edges;
    }
    let consumers = graph.consumers();
    let mut given: BTreeSet<ValueId> = graph.inputs.iter().copied().collect();
    for node in std::mem::take(&mut graph.nodes) {
        let Some((from, to)) = conversion(graph, &node) else {
            graph.nodes.push(node);
            continue;
        };
        let edge = Edge {
            from: graph.value(from).name.clone(),
            to: graph.value(to).name.clone(),
            dtype: graph.value(to).dtype,
        };
        if given.contains(&from) {
            given.insert(to);
            edges.before.push(edge);
            graph.inputs.push(to);
        } else if edge.dtype == DType::F16 && consumers[to.0].is_empty() {
            edges.behind.push(edge);
            for output in graph.outputs.iter_mut().filter(|id| **id == to) {
                *output = from;
            }
        } else {
            graph.nodes.push(node);
        }
    }
    let values = &graph.values;
    let is_known = |id: &ValueId| values[id.0].dtype != DType::F16;
    graph.inputs.retain(is_known);
    graph.outputs.retain(is_known);
    edges
}

/// Returns what a conversion between f16 and f32 reads and makes.
fn conversion(graph: &Graph, node: &Node) -> Option<(ValueId, ValueId)> {
    let (from, to) = (node.input(0)?, node.output(0)?);
    let types = [from, to].map(|id| graph.value(id).dtype);
    let is_half = matches!(types, [DType::F16, DType::F32] | [DType::F32, DType::F16]);
    (node.op == "Cast" && is_half).then_some((from, to))
}
