//! Graphs in a newer operator set.

use std::sync::Arc;

use super::defaults::parameters;
use super::{Attribute, Graph, Node, Shape, Tensor, TensorData, Value, ValueId};

/// Operator set in which conversions take a scale for each channel.
const OLDEST: i64 = 13;

/// A node that means something else in the newer operator set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{op}` of operator set {from} is not written in set {to}")]
pub struct UpgradeError {
    /// The operator.
    pub op: String,
    /// The operator set that it follows.
    pub from: i64,
    /// The operator set that it would have to follow.
    pub to: i64,
}

/// Writes a graph in operator set 13, or the oldest after it that has all of its operators, such as
/// those that canonical form puts together; graphs of a newer one stay as they are.
///
/// # Errors
/// [`UpgradeError`] names the first operator that changed its meaning.
pub fn upgrade(graph: &mut Graph) -> Result<(), UpgradeError> {
    let from = graph.opset;
    let own = graph.nodes.iter().filter(|node| node.domain.is_empty());
    let to = own
        .map(|node| since(&node.op))
        .fold(OLDEST, i64::max)
        .max(from);
    for idx in 0..graph.nodes.len() {
        let node = &graph.nodes[idx];
        if node.domain.is_empty() && changes(graph, node, from, to) {
            return Err(UpgradeError {
                op: node.op.clone(),
                from,
                to,
            });
        }
        if node.domain.is_empty() && from < to {
            spell_out(graph, idx, to);
        }
    }
    graph.opset = to;
    Ok(())
}

/// Returns the operator set that an operator came with, if that may be above the file's.
fn since(op: &str) -> i64 {
    match op {
        "HardSwish" => 14,
        "LayerNormalization" => 17,
        "Mish" | "GroupNormalization" => 18,
        "Gelu" => 20,
        "RMSNormalization" => 23,
        "Swish" => 24,
        _ => 1,
    }
}

/// Returns whether a node means something else in a newer set, or cannot be written in it here.
fn changes(graph: &Graph, node: &Node, from: i64, to: i64) -> bool {
    let crosses = |set: i64| from < set && to >= set;
    let rank = node
        .input(0)
        .map_or(0, |id| graph.value(id).shape.rank() as i64);
    match node.op.as_str() {
        // Up to set 12 all axes from the given one on are one.
        "Softmax" | "LogSoftmax" | "Hardmax" => {
            let axis = node.int("axis", 1);
            let axis = if axis < 0 { axis + rank } else { axis };
            crosses(13) && axis != rank - 1
        }
        "Upsample" => crosses(10),
        "Resize" => crosses(11),
        "GridSample" => crosses(20),
        "GroupNormalization" => crosses(21),
        "Dropout" => crosses(12),
        _ => false,
    }
}

/// Writes a node as a newer set has it: parameters as inputs, defaults that changed spelt out.
fn spell_out(graph: &mut Graph, idx: usize, to: i64) {
    let node = &graph.nodes[idx];
    if matches!(node.op.as_str(), "Softmax" | "LogSoftmax" | "Hardmax") {
        let axis = Attribute::Int(node.int("axis", 1));
        graph.nodes[idx].attributes.insert("axis".to_owned(), axis);
        return;
    }
    let is_late = node.op.starts_with("Reduce") && node.op != "ReduceSum";
    if is_late && to < 18 {
        return;
    }
    for (position, name) in parameters(&node.op.clone()) {
        let node = &graph.nodes[idx];
        let Some(attribute) = node
            .attributes
            .get(name)
            .filter(|_| node.input(position).is_none())
        else {
            continue;
        };
        let data = match attribute {
            Attribute::Int(value) => TensorData::I64(vec![*value]),
            Attribute::Ints(values) => TensorData::I64(values.clone()),
            Attribute::Float(value) => TensorData::F32(vec![*value]),
            Attribute::Floats(values) => TensorData::F32(values.clone()),
            _ => continue,
        };
        let dims = match attribute {
            Attribute::Float(_) => Vec::new(),
            _ => vec![data.len()],
        };
        let title = node
            .output(0)
            .map_or(String::new(), |id| graph.value(id).name.clone());
        let id = ValueId(graph.values.len());
        graph.values.push(Value {
            name: format!("{title}/{name}"),
            dtype: data.dtype(),
            shape: Shape(dims.clone()),
            data: Tensor::new(Shape(dims), data).ok().map(Arc::new),
        });
        let node = &mut graph.nodes[idx];
        node.attributes.remove(name);
        if node.inputs.len() <= position {
            node.inputs.resize(position + 1, None);
        }
        node.inputs[position] = Some(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Builder, DType};

    /// Returns a graph of one node on a matrix.
    fn graph(op: &str, attributes: &[(&str, Attribute)], opset: i64) -> Graph {
        let mut graph = Graph {
            name: String::new(),
            opset,
            values: Vec::new(),
            nodes: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        let mut builder = Builder::new(&mut graph);
        let matrix = Shape(vec![2, 3]);
        let x = builder.value("x", DType::F32, matrix.clone());
        let y = builder.value("y", DType::F32, matrix);
        builder.node(op, &[x], y);
        let attributes = attributes.iter().cloned();
        graph.nodes[0].attributes = attributes.map(|(name, a)| (name.to_owned(), a)).collect();
        (graph.inputs, graph.outputs) = (vec![x], vec![y]);
        graph
    }

    #[test]
    fn parameters_become_inputs() {
        let bounds = [
            ("min", Attribute::Float(0.0)),
            ("max", Attribute::Float(6.0)),
        ];
        let mut graph = graph("Clip", &bounds, 7);
        upgrade(&mut graph).unwrap();
        assert_eq!(graph.opset, 13);
        let node = &graph.nodes[0];
        assert!(node.attributes.is_empty());
        let bound = |idx| {
            graph
                .constant(node.input(idx).unwrap())
                .unwrap()
                .as_f32()
                .unwrap()
        };
        assert_eq!((bound(1), bound(2)), (&[0.0][..], &[6.0][..]));
    }

    #[test]
    fn what_the_canonical_form_puts_together_decides_on_the_set() {
        let mut swish = graph("HardSwish", &[], 11);
        upgrade(&mut swish).unwrap();
        assert_eq!(swish.opset, 14);
        let mut newer = graph("Relu", &[], 19);
        upgrade(&mut newer).unwrap();
        assert_eq!(newer.opset, 19);
    }

    #[test]
    fn a_softmax_over_several_axes_is_refused_and_over_the_last_one_is_spelt_out() {
        let mut last = graph("Softmax", &[], 9);
        upgrade(&mut last).unwrap();
        assert_eq!(last.nodes[0].int("axis", -1), 1);
        let mut all = graph("Softmax", &[("axis", Attribute::Int(0))], 9);
        let error = upgrade(&mut all).unwrap_err().to_string();
        assert_eq!(
            error,
            "`Softmax` of operator set 9 is not written in set 13"
        );
    }
}
