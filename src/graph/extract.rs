//! Parts of a graph as graphs of their own.

use super::{Graph, ValueId, compact};

/// Returns what computes `outputs` once `inputs` are known, as a graph that reads those of them that
/// it needs. Values keep their names; ids change. O(nodes + values).
///
/// Outputs that are among the inputs, and constants, are no part of it.
pub fn extract(graph: &Graph, inputs: &[ValueId], outputs: &[ValueId]) -> Graph {
    let mut part = graph.clone();
    let mut is_known = vec![false; graph.values.len()];
    for id in inputs {
        is_known[id.0] = true;
    }
    let is_open = |id: &&ValueId| !is_known[id.0] && graph.constant(**id).is_none();
    part.outputs = outputs.iter().filter(is_open).copied().collect();
    // A node that makes several values, of which only some are known, is still needed for the rest:
    // its known outputs get another value to write.
    part.nodes.retain(|node| {
        let mut made = node.outputs.iter().flatten();
        !made.all(|id| is_known[id.0])
    });
    for node in &mut part.nodes {
        for output in &mut node.outputs {
            if let Some(id) = output.filter(|id| is_known[id.0]) {
                let mut spare = graph.value(id).clone();
                spare.name = format!("{}/unread", spare.name);
                *output = Some(ValueId(part.values.len()));
                part.values.push(spare);
            }
        }
    }
    let mut read = vec![false; part.values.len()];
    let known = graph.inputs.iter().chain(inputs);
    part.inputs = known
        .filter(|id| !std::mem::replace(&mut read[id.0], true))
        .copied()
        .collect();
    compact_with_inputs(&mut part);
    part
}

/// Compacts, and drops inputs that nothing reads any more.
fn compact_with_inputs(graph: &mut Graph) {
    compact(graph);
    let mut is_read = vec![false; graph.values.len()];
    for id in graph
        .nodes
        .iter()
        .flat_map(|node| node.inputs.iter().flatten())
    {
        is_read[id.0] = true;
    }
    graph.inputs.retain(|id| is_read[id.0]);
    compact(graph);
}
