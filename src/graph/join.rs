//! Several graphs side by side.

use super::{Graph, ValueId};

/// Puts graphs side by side, each with its own inputs and outputs; names get the index of their
/// graph in front. Nodes stay in their order. Returns the whole and where the nodes of each begin.
pub fn side_by_side(graphs: Vec<Graph>) -> (Graph, Vec<usize>) {
    let mut whole = Graph {
        name: String::new(),
        opset: graphs.iter().map(|graph| graph.opset).max().unwrap_or(1),
        values: Vec::new(),
        nodes: Vec::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
    };
    let mut firsts = Vec::new();
    for (idx, mut graph) in graphs.into_iter().enumerate() {
        firsts.push(whole.nodes.len());
        let offset = whole.values.len();
        let moved = |id: ValueId| ValueId(id.0 + offset);
        for value in &mut graph.values {
            value.name = format!("{idx}/{}", value.name);
        }
        for node in &mut graph.nodes {
            for id in node.inputs.iter_mut().chain(&mut node.outputs).flatten() {
                *id = moved(*id);
            }
        }
        whole.values.append(&mut graph.values);
        whole.nodes.append(&mut graph.nodes);
        whole.inputs.extend(graph.inputs.into_iter().map(moved));
        whole.outputs.extend(graph.outputs.into_iter().map(moved));
    }
    (whole, firsts)
}
