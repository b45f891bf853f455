//! Topological order of a file's nodes.

use std::collections::HashMap;

use super::error::Problem;
use super::proto::{Graph, Node};

/// Returns the nodes of a graph, producers before consumers, otherwise in file order.
///
/// Names that the graph itself does not produce are taken as given from outside.
pub(super) fn sorted<'g, 'a>(graph: &'g Graph<'a>) -> Result<Vec<&'g Node<'a>>, Problem> {
    let mut producer: HashMap<&str, usize> = HashMap::new();
    for (idx, node) in graph.nodes.iter().enumerate() {
        for &output in node.outputs.iter().filter(|name| !name.is_empty()) {
            if producer.insert(output, idx).is_some() {
                return Err(Problem::Duplicate(output.to_owned()));
            }
        }
    }
    let mut waits = vec![0usize; graph.nodes.len()];
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes.len()];
    for (idx, node) in graph.nodes.iter().enumerate() {
        let mut names = Vec::new();
        reads(node, &mut names);
        for source in names.iter().filter_map(|name| producer.get(name)) {
            waits[idx] += 1;
            readers[*source].push(idx);
        }
    }
    let mut ready: std::collections::BTreeSet<usize> =
        (0..waits.len()).filter(|&idx| waits[idx] == 0).collect();
    let mut order = Vec::new();
    while let Some(idx) = ready.pop_first() {
        order.push(&graph.nodes[idx]);
        for &reader in &readers[idx] {
            waits[reader] -= 1;
            if waits[reader] == 0 {
                ready.insert(reader);
            }
        }
    }
    match waits.iter().position(|&n| n > 0) {
        Some(idx) => Err(Problem::Cycle(title(&graph.nodes[idx]).to_owned())),
        None => Ok(order),
    }
}

/// Returns a node's name, or that of its first output if it has none.
pub(super) fn title<'a>(node: &Node<'a>) -> &'a str {
    if node.name.is_empty() {
        node.outputs.first().copied().unwrap_or("?")
    } else {
        node.name
    }
}

/// Collects what a node reads, bodies of control flow included.
fn reads<'a>(node: &Node<'a>, names: &mut Vec<&'a str>) {
    names.extend(node.inputs.iter().filter(|name| !name.is_empty()));
    for body in node.attributes.iter().filter_map(|a| a.graph.as_deref()) {
        for inner in &body.nodes {
            reads(inner, names);
        }
        names.extend(body.outputs.iter().map(|output| output.name));
    }
}
