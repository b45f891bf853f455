//! A `DequantizeLinear` for each reader.

use super::builder::Builder;
use crate::graph::{Graph, ValueId, affine, compact};

/// Gives each node that reads a dequantised 8-bit activation a `DequantizeLinear` of its own. An
/// output of the model, or else the first reader, keeps the value's name.
pub(in crate::graph::canonical) fn separate(graph: &mut Graph) {
    let consumers = graph.consumers();
    let n_nodes = graph.nodes.len();
    let mut builder = Builder::new(graph);
    for idx in 0..n_nodes {
        let graph = &*builder.graph;
        let node = graph.nodes[idx].clone();
        let Some(real) = node.output(0).filter(|_| node.op == "DequantizeLinear") else {
            continue;
        };
        let mut readers = consumers[real.0].clone();
        readers.dedup();
        let n_kept = usize::from(!graph.outputs.contains(&real));
        if affine(graph, &node).is_none() || readers.len() <= n_kept {
            continue;
        }
        for reader in readers.into_iter().skip(n_kept) {
            let value = builder.graph.value(real).clone();
            let copy = builder.value(&value.name, value.dtype, value.shape);
            let inputs: Vec<ValueId> = node.inputs.iter().flatten().copied().collect();
            builder.node("DequantizeLinear", &inputs, copy);
            for id in builder.graph.nodes[reader.0].inputs.iter_mut().flatten() {
                if *id == real {
                    *id = copy;
                }
            }
        }
    }
    if graph.nodes.len() > n_nodes {
        compact(graph);
    }
}
