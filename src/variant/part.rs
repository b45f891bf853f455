//! One site as a model of its own: what it costs does not depend on the rest, apart from the form in
//! which values pass between them.

use std::collections::BTreeMap;

use super::affine::Affine;
use super::quantize::{integer_input, integer_output, round_value, round_weights};
use super::site::Site;
use super::{Layer, QuantizeError};
use crate::graph::{Graph, NodeId, Subgraph, ValueId, canonicalize, compact, extract};
use crate::space::Precision;

/// How a site is computed, and the form of what it reads and makes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// How it is computed.
    pub precision: Precision,
    /// Inputs that are stored as integers, all of those of an integer site.
    pub integer_inputs: Vec<ValueId>,
    /// Outputs that are.
    pub integer_outputs: Vec<ValueId>,
}

/// Returns a site in some form as a canonical graph of its own.
///
/// # Errors
/// [`QuantizeError`] if a value that is to be rounded is not in `affine`.
pub fn part(
    graph: &Graph,
    subgraph: &Subgraph,
    site: &Site,
    form: &Part,
    affine: &BTreeMap<ValueId, Affine>,
) -> Result<Graph, QuantizeError> {
    let known = |id: ValueId| {
        let name = || graph.value(id).name.clone();
        let affine = affine.get(&id).copied();
        affine.ok_or_else(|| QuantizeError::NoRange(name()))
    };
    let mut alone = extract(graph, &subgraph.inputs, &subgraph.outputs);
    if form.precision == Precision::Int8 {
        for &value in &site.integers {
            if !subgraph.inputs.contains(&value)
                && let Some(own) = find(&alone, graph, value)
            {
                round_value(&mut alone, own, known(value)?);
            }
        }
        let weights = site.layer.and_then(|layer| {
            let weights = find(&alone, graph, layer.weights)?;
            Some(Layer { weights, ..layer })
        });
        if let Some(layer) = weights
            && let Some(anchor) = reader(&alone, layer.weights)
        {
            round_weights(&mut alone, anchor, layer, None);
        }
    }
    for &value in &form.integer_outputs {
        if let Some(own) = find(&alone, graph, value) {
            integer_output(&mut alone, own, known(value)?);
        }
    }
    for &value in &form.integer_inputs {
        if let Some(own) = find(&alone, graph, value) {
            integer_input(&mut alone, own, known(value)?);
        }
    }
    compact(&mut alone);
    Ok(canonicalize(alone))
}

/// Returns the value of `part` that has the name of one of `graph`.
fn find(part: &Graph, graph: &Graph, id: ValueId) -> Option<ValueId> {
    let name = &graph.value(id).name;
    let position = part.values.iter().position(|value| value.name == *name);
    position.map(ValueId)
}

/// Returns the first node that reads a value.
fn reader(graph: &Graph, id: ValueId) -> Option<NodeId> {
    let reads = |node: &crate::graph::Node| node.inputs.contains(&Some(id));
    graph.nodes.iter().position(reads).map(NodeId)
}
