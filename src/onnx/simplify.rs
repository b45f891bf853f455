//! Nodes in simpler words, while a graph is built: what only says a type, and what is empty.

use super::error::Problem;
use crate::graph::{Attribute, Graph, Node, Shape};

/// Writes a node in simpler words before its outputs are inferred: `CastLike` is a `Cast`.
pub(super) fn before(graph: &Graph, node: &mut Node) {
    if node.op != "CastLike" {
        return;
    }
    if let Some(like) = node.input(1) {
        let to = graph.value(like).dtype.onnx();
        "Cast".clone_into(&mut node.op);
        node.attributes = [("to".to_owned(), Attribute::Int(to.into()))].into();
        node.inputs.truncate(1);
    }
}

/// Writes a node in simpler words whose outputs are inferred and not empty: `Dropout` is an
/// `Identity`, as its rule says, and `Concat` goes without what is empty.
///
/// # Errors
/// If it makes something from nothing, as a product over an empty axis does.
pub(super) fn after(graph: &Graph, node: &mut Node) -> Result<(), Problem> {
    let is_empty =
        |id: &Option<crate::graph::ValueId>| id.is_some_and(|id| graph.value(id).shape.is_empty());
    match node.op.as_str() {
        "Dropout" => {
            "Identity".clone_into(&mut node.op);
            node.attributes.clear();
            node.inputs.truncate(1);
            node.outputs.truncate(1);
        }
        "Concat" => {
            node.inputs.retain(|id| !is_empty(id));
            if node.inputs.len() == 1 {
                "Identity".clone_into(&mut node.op);
                node.attributes.clear();
            }
        }
        _ => {}
    }
    // An empty list of axes or sizes says something; empty data does not.
    let is_list = |idx: usize| idx > 0 && takes_lists(&node.op);
    let empty = node.inputs.iter().enumerate();
    match empty
        .filter(|(idx, id)| is_empty(id) && !is_list(*idx))
        .find_map(|(_, id)| *id)
    {
        Some(id) => {
            let value = graph.value(id);
            Err(zero_sized(&value.name, value.shape.clone()))
        }
        None => Ok(()),
    }
}

/// Says that a value has no elements.
pub(super) fn zero_sized(name: &str, shape: Shape) -> Problem {
    Problem::ZeroSized {
        value: name.to_owned(),
        shape,
    }
}

/// Returns whether inputs but the first are lists of axes, sizes or amounts.
fn takes_lists(op: &str) -> bool {
    matches!(
        op,
        "Reshape"
            | "Expand"
            | "Tile"
            | "Squeeze"
            | "Unsqueeze"
            | "Slice"
            | "Split"
            | "Pad"
            | "Resize"
            | "Upsample"
            | "CenterCropPad"
    ) || op.starts_with("Reduce")
}
