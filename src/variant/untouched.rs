//! What a variant leaves as it was.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::graph::{Graph, Node, ValueId};

/// Returns the values of `variant`, constants aside, that are computed as those of the same name in
/// `base` are, and so need not be computed again. O(nodes + values).
pub fn untouched(base: &Graph, variant: &Graph) -> Vec<ValueId> {
    let names: BTreeMap<&str, ValueId> = ids(base)
        .map(|id| (base.value(id).name.as_str(), id))
        .collect();
    let producers = base.producers();
    // For each value of the variant: the one of the base that it is.
    let mut same: Vec<Option<ValueId>> = ids(variant)
        .map(|id| {
            let value = variant.value(id);
            let twin = *names.get(value.name.as_str())?;
            let is_same = match (&value.data, &base.value(twin).data) {
                (Some(own), Some(other)) => Arc::ptr_eq(own, other) || own == other,
                (None, None) => variant.inputs.contains(&id) && base.inputs.contains(&twin),
                _ => false,
            };
            is_same.then_some(twin)
        })
        .collect();
    let mut untouched: Vec<ValueId> = variant
        .inputs
        .iter()
        .copied()
        .filter(|id| same[id.0].is_some())
        .collect();
    for node in &variant.nodes {
        for (position, id) in node.outputs.iter().enumerate() {
            let Some(id) = *id else { continue };
            let twin = names.get(variant.value(id).name.as_str()).copied();
            let producer = twin.and_then(|twin| producers[twin.0]);
            if let (Some(twin), Some(producer)) = (twin, producer)
                && base.node(producer).output(position) == Some(twin)
                && is_same(node, base.node(producer), &same)
            {
                same[id.0] = Some(twin);
                untouched.push(id);
            }
        }
    }
    untouched
}

fn is_same(node: &Node, other: &Node, same: &[Option<ValueId>]) -> bool {
    let twin = |id: &Option<ValueId>| id.map(|id| same[id.0]);
    node.op == other.op
        && node.domain == other.domain
        && node.attributes == other.attributes
        && node.inputs.len() == other.inputs.len()
        && node
            .inputs
            .iter()
            .zip(&other.inputs)
            .all(|(own, other)| match (twin(own), other) {
                (None, None) => true,
                (Some(Some(twin)), Some(other)) => twin == *other,
                _ => false,
            })
}

fn ids(graph: &Graph) -> impl Iterator<Item = ValueId> {
    (0..graph.values.len()).map(ValueId)
}
