//! Dead code and the canonical node order.

use super::{Graph, NodeId, ValueId};

/// Drops what no output depends on and sorts the nodes into their canonical order.
///
/// The order is a depth-first one from the outputs, shallow operands first, so it depends on the
/// wiring alone: files that list the same nodes in another order give the same graph. Of two
/// branches that meet, the longer one comes last, which is where a residual addition is fused.
/// Values keep their relative order. O(nodes · log(inputs) + values).
pub fn compact(graph: &mut Graph) {
    let producers = graph.producers();
    let depths = depths(graph, &producers);
    let order = post_order(graph, &producers, &depths);
    let mut nodes: Vec<_> = std::mem::take(&mut graph.nodes)
        .into_iter()
        .map(Some)
        .collect();
    graph.nodes = order.iter().filter_map(|id| nodes[id.0].take()).collect();
    drop_unused_outputs(graph);
    drop_unused_values(graph);
}

/// Returns for each value the length of the longest path to it.
fn depths(graph: &Graph, producers: &[Option<NodeId>]) -> Vec<usize> {
    // Nodes may be out of order here, so depths are found by the same walk as the order.
    let mut depths = vec![0; graph.values.len()];
    let plain = vec![0; graph.values.len()];
    for id in post_order(graph, producers, &plain) {
        let node = graph.node(id);
        let inputs = node.inputs.iter().flatten().map(|value| depths[value.0]);
        let depth = inputs.max().unwrap_or(0) + 1;
        for output in node.outputs.iter().flatten() {
            depths[output.0] = depth;
        }
    }
    depths
}

fn post_order(graph: &Graph, producers: &[Option<NodeId>], depths: &[usize]) -> Vec<NodeId> {
    let mut order = Vec::new();
    let mut is_seen = vec![false; graph.nodes.len()];
    // Each entry is a node and the producers it still waits for, next one last.
    let mut stack: Vec<(NodeId, Vec<NodeId>)> = Vec::new();
    let waits = |id: NodeId| {
        let mut inputs: Vec<ValueId> = graph.node(id).inputs.iter().flatten().copied().collect();
        inputs.sort_by_key(|value| depths[value.0]);
        inputs.reverse();
        inputs
            .iter()
            .filter_map(|value| producers[value.0])
            .collect::<Vec<_>>()
    };
    for output in &graph.outputs {
        let mut next = producers[output.0];
        while let Some(id) = next {
            if !std::mem::replace(&mut is_seen[id.0], true) {
                stack.push((id, waits(id)));
            }
            next = loop {
                match stack.last_mut() {
                    None => break None,
                    Some((id, waits)) => match waits.pop() {
                        Some(source) if is_seen[source.0] => {}
                        Some(source) => break Some(source),
                        None => {
                            order.push(*id);
                            stack.pop();
                        }
                    },
                }
            };
        }
    }
    order
}

/// Leaves out optional outputs that nobody reads, apart from the first.
fn drop_unused_outputs(graph: &mut Graph) {
    let mut is_read = vec![false; graph.values.len()];
    let reads = graph
        .nodes
        .iter()
        .flat_map(|node| node.inputs.iter().flatten());
    for id in reads.chain(&graph.outputs) {
        is_read[id.0] = true;
    }
    for node in &mut graph.nodes {
        for output in node.outputs.iter_mut().skip(1) {
            if output.is_some_and(|id| !is_read[id.0]) {
                *output = None;
            }
        }
        while node.outputs.len() > 1 && node.outputs.last() == Some(&None) {
            node.outputs.pop();
        }
    }
}

fn drop_unused_values(graph: &mut Graph) {
    let mut is_used = vec![false; graph.values.len()];
    for node in &graph.nodes {
        for id in node.inputs.iter().chain(&node.outputs).flatten() {
            is_used[id.0] = true;
        }
    }
    for id in graph.inputs.iter().chain(&graph.outputs) {
        is_used[id.0] = true;
    }
    let mut new_ids = vec![ValueId(0); graph.values.len()];
    let mut kept = Vec::new();
    for (idx, value) in std::mem::take(&mut graph.values).into_iter().enumerate() {
        if is_used[idx] {
            new_ids[idx] = ValueId(kept.len());
            kept.push(value);
        }
    }
    graph.values = kept;
    for node in &mut graph.nodes {
        for id in node.inputs.iter_mut().chain(&mut node.outputs).flatten() {
            *id = new_ids[id.0];
        }
    }
    for id in graph.inputs.iter_mut().chain(&mut graph.outputs) {
        *id = new_ids[id.0];
    }
}
