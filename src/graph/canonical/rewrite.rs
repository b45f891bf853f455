//! The driver: applies rules until none matches.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::rule::{Replacement, Rewrite, Rule, Source, View, Wiring};
use super::window::write_out_windows;
use super::{
    activation, algebra, batch_norm, compose, identity, matmul, normalization, pad, pool,
    quantized, scale,
};
use crate::graph::{DType, Graph, Node, NodeId, Tensor, Value, ValueId, compact};

/// Passes after which rewriting stops even if rules still fire; models settle within five.
const MAX_PASSES: usize = 50;

/// In order of preference: simplifications first, then what builds on them.
const RULES: &[Rule] = &[
    identity::forward,
    quantized::requantized,
    quantized::moved,
    quantized::clamped,
    quantized::unquantized_layer,
    algebra::neutral,
    algebra::reshape_chain,
    activation::relu6,
    activation::hard_sigmoid,
    activation::hard_swish,
    activation::silu,
    activation::gelu_erf,
    activation::gelu_tanh,
    normalization::layer_normalization,
    normalization::softmax,
    pool::global_average,
    pad::into_convolution,
    batch_norm::fold,
    batch_norm::spell_out,
    scale::fold_multiplication,
    scale::fold_addition,
    matmul::to_gemm,
    compose::linear,
    algebra::gate_with_shortcut,
];

/// Rewrites a graph into its canonical form: the same function, in fewer and larger operators.
///
/// Values that survive keep their names. Differences in rounding are those of folding scales into
/// weights: about 1e-6 relative in f32.
pub fn canonicalize(mut graph: Graph) -> Graph {
    quantized::spell_out(&mut graph);
    write_out_windows(&mut graph);
    compact(&mut graph);
    for _ in 0..MAX_PASSES {
        if !pass(&mut graph) {
            break;
        }
        compact(&mut graph);
    }
    quantized::separate(&mut graph);
    graph
}

/// Applies the first matching rule to each node once; returns whether any matched.
fn pass(graph: &mut Graph) -> bool {
    let mut names: BTreeSet<String> = graph.values.iter().map(|v| v.name.clone()).collect();
    let mut wiring = Wiring::of(graph);
    let mut changed = false;
    for idx in 0..graph.nodes.len() {
        let view = View {
            graph,
            wiring: &wiring,
        };
        let rewrite = RULES.iter().find_map(|rule| rule(&view, &graph.nodes[idx]));
        changed |= match rewrite {
            None => false,
            Some(Rewrite::Replace(replacement)) => {
                let n_nodes = graph.nodes.len();
                wiring.remove(&graph.nodes[idx]);
                replace(graph, idx, replacement, &mut names);
                wiring.grow(graph);
                wiring.add(&graph.nodes[idx]);
                for (position, node) in graph.nodes.iter().enumerate().skip(n_nodes) {
                    wiring.add(node);
                    for id in node.outputs.iter().flatten() {
                        wiring.produce(*id, NodeId(position));
                    }
                }
                true
            }
            Some(Rewrite::Forward(value)) => {
                let applied = forward(graph, idx, value);
                if applied {
                    wiring = Wiring::of(graph);
                }
                applied
            }
        };
    }
    changed
}

fn replace(graph: &mut Graph, idx: usize, new: Replacement, names: &mut BTreeSet<String>) {
    let title = graph.nodes[idx]
        .outputs
        .iter()
        .flatten()
        .next()
        .map_or(String::new(), |id| graph.value(*id).name.clone());
    let mut resolve = |graph: &mut Graph, inputs: Vec<Option<Source>>| -> Vec<Option<ValueId>> {
        let mut ids = Vec::new();
        for (position, input) in inputs.into_iter().enumerate() {
            ids.push(match input {
                None => None,
                Some(Source::Value(id)) => Some(id),
                Some(Source::Constant(tensor)) => {
                    let name = unique(format!("{title}/{position}"), names);
                    Some(push_constant(graph, name, tensor))
                }
            });
        }
        ids
    };
    let mut inputs = resolve(graph, new.inputs);
    if let Some(before) = new.before {
        let first = resolve(graph, before.inputs);
        let dtype = first
            .iter()
            .flatten()
            .next()
            .map_or(DType::F32, |id| graph.value(*id).dtype);
        let output = ValueId(graph.values.len());
        graph.values.push(Value {
            name: unique(format!("{title}/{}", before.op), names),
            dtype,
            shape: before.shape,
            data: None,
        });
        inputs.insert(0, Some(output));
        // Order is restored by `compact`.
        graph.nodes.push(Node {
            name: graph.nodes[idx].name.clone(),
            op: before.op.to_owned(),
            domain: String::new(),
            attributes: before.attributes,
            inputs: first,
            outputs: vec![Some(output)],
        });
    }
    let node = &mut graph.nodes[idx];
    node.op = new.op.to_owned();
    node.domain = String::new();
    node.attributes = new.attributes;
    node.inputs = inputs;
    node.outputs.truncate(1);
}

fn push_constant(graph: &mut Graph, name: String, tensor: Tensor) -> ValueId {
    let id = ValueId(graph.values.len());
    graph.values.push(Value {
        name,
        dtype: tensor.dtype(),
        shape: tensor.shape().clone(),
        data: Some(Arc::new(tensor)),
    });
    id
}

pub(super) fn unique(mut name: String, names: &mut BTreeSet<String>) -> String {
    while !names.insert(name.clone()) {
        name.push('\'');
    }
    name
}

/// Makes readers of a node's output read `value` instead; returns whether that was possible.
fn forward(graph: &mut Graph, idx: usize, value: ValueId) -> bool {
    let Some(output) = graph.nodes[idx].outputs.first().copied().flatten() else {
        return false;
    };
    let (mut from, mut to) = (output, value);
    if graph.outputs.contains(&output) {
        // The model's output keeps its name: what produced the value produces it instead.
        let is_fixed = graph.inputs.contains(&value)
            || graph.outputs.contains(&value)
            || graph.constant(value).is_some();
        if is_fixed {
            return false;
        }
        (from, to) = (value, output);
        let producers = graph
            .nodes
            .iter_mut()
            .enumerate()
            .filter(|(i, _)| *i != idx);
        for (_, node) in producers {
            for id in node.outputs.iter_mut().flatten().filter(|id| **id == from) {
                *id = to;
            }
        }
    }
    for node in &mut graph.nodes {
        for id in node.inputs.iter_mut().flatten().filter(|id| **id == from) {
            *id = to;
        }
    }
    // The node itself is dead now; an empty one may not claim the output.
    graph.nodes[idx].outputs.clear();
    graph.nodes[idx].inputs.clear();
    true
}
