//! Padding that a convolution can do itself.

use super::rule::{Replacement, Rewrite, Source, View};
use crate::graph::{Attribute, Node};

/// Takes a zero `Pad` of the spatial axes into the `Conv` that reads it.
pub(super) fn into_convolution(view: &View<'_>, node: &Node) -> Option<Rewrite> {
    if node.op != "Conv" || node.string("auto_pad", "NOTSET").starts_with("SAME") {
        return None;
    }
    let pad = view.feeder(node, 0, "Pad")?;
    let x = pad.input(0)?;
    let rank = view.graph.value(x).shape.rank();
    let value = match pad.input(2) {
        Some(id) => view.scalar(id)?,
        None => pad.float("value", 0.0),
    };
    if pad.string("mode", "constant") != "constant" || value != 0.0 || pad.input(3).is_some() {
        return None;
    }
    let added = view.ints(pad, "pads", 1)?;
    let outer = [0, 1, rank, rank + 1];
    if added.len() != 2 * rank
        || added.iter().any(|&p| p < 0)
        || outer.iter().any(|&i| added[i] != 0)
    {
        return None;
    }
    let n = rank - 2;
    let own = node
        .ints("pads")
        .map_or_else(|| vec![0; 2 * n], <[i64]>::to_vec);
    let total = (0..n)
        .map(|i| own[i].checked_add(added[2 + i]))
        .chain((0..n).map(|i| own[n + i].checked_add(added[rank + 2 + i])))
        .collect::<Option<Vec<_>>>()?;
    let mut attributes = node.attributes.clone();
    attributes.remove("auto_pad");
    attributes.insert("pads".to_owned(), Attribute::Ints(total));
    let mut inputs: Vec<Option<Source>> =
        node.inputs.iter().map(|id| id.map(Source::Value)).collect();
    inputs[0] = Some(Source::Value(x));
    Some(Rewrite::Replace(Replacement {
        op: "Conv",
        attributes,
        inputs,
        before: None,
    }))
}
