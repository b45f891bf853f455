//! Readings of single nodes that several parts need.

use super::{Attribute, Graph, Node};

/// Returns the constant bounds of a `Clip`, infinite where left out; `None` if they are computed
/// or the node is no `Clip` of f32.
///
/// Bounds are attributes before operator set 11 and inputs from then on.
pub fn clip_bounds(graph: &Graph, node: &Node) -> Option<(f32, f32)> {
    if node.op != "Clip" {
        return None;
    }
    let bound = |name: &str, idx: usize, default: f32| {
        if let Some(Attribute::Float(value)) = node.attributes.get(name) {
            return Some(*value);
        }
        match node.input(idx) {
            None => Some(default),
            Some(id) => scalar(graph, id),
        }
    };
    Some((
        bound("min", 1, f32::NEG_INFINITY)?,
        bound("max", 2, f32::INFINITY)?,
    ))
}

/// Returns the element of an f32 constant that has just one.
pub fn scalar(graph: &Graph, id: super::ValueId) -> Option<f32> {
    match graph.constant(id)?.as_f32()? {
        [value] => Some(*value),
        _ => None,
    }
}
