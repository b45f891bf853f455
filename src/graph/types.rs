//! Graph, node and value.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Attribute, DType, Shape, Tensor};

/// Index of a value in [`Graph::values`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub usize);

/// Index of a node in [`Graph::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub usize);

/// One tensor that flows through a graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// Name in the ONNX file; unique in the graph, never part of a digest.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Static shape.
    pub shape: Shape,
    /// The elements, if the value is a constant (initializer or folded).
    pub data: Option<Arc<Tensor>>,
}

/// One operator of a graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Name in the ONNX file, possibly empty; for messages only.
    pub name: String,
    /// ONNX operator type, e.g. `Conv`.
    pub op: String,
    /// ONNX operator domain; empty for the default one.
    pub domain: String,
    /// Attributes that were given; defaults are those of the ONNX specification.
    pub attributes: BTreeMap<String, Attribute>,
    /// Inputs in ONNX order; `None` where an optional one is left out.
    pub inputs: Vec<Option<ValueId>>,
    /// Outputs in ONNX order; `None` where an optional one is left out.
    pub outputs: Vec<Option<ValueId>>,
}

/// A model at static shapes. Nodes are in topological order.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// Name of the model, for messages only.
    pub name: String,
    /// Version of the default operator set that the nodes follow.
    pub opset: i64,
    /// All values.
    pub values: Vec<Value>,
    /// All nodes, producers before consumers.
    pub nodes: Vec<Node>,
    /// Model inputs that are not constants.
    pub inputs: Vec<ValueId>,
    /// Model outputs.
    pub outputs: Vec<ValueId>,
}

impl Graph {
    /// Returns a value.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.0]
    }

    /// Returns a node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    /// Returns the elements of a value if it is a constant.
    pub fn constant(&self, id: ValueId) -> Option<&Tensor> {
        self.values[id.0].data.as_deref()
    }

    /// Returns for each value the node that produces it. O(nodes).
    pub fn producers(&self) -> Vec<Option<NodeId>> {
        let mut producers = vec![None; self.values.len()];
        for (idx, node) in self.nodes.iter().enumerate() {
            for output in node.outputs.iter().flatten() {
                producers[output.0] = Some(NodeId(idx));
            }
        }
        producers
    }

    /// Returns for each value the nodes that read it, in order, once per reading input. O(nodes).
    pub fn consumers(&self) -> Vec<Vec<NodeId>> {
        let mut consumers = vec![Vec::new(); self.values.len()];
        for (idx, node) in self.nodes.iter().enumerate() {
            for input in node.inputs.iter().flatten() {
                consumers[input.0].push(NodeId(idx));
            }
        }
        consumers
    }
}

impl Node {
    /// Returns input `idx` if it is given.
    pub fn input(&self, idx: usize) -> Option<ValueId> {
        self.inputs.get(idx).copied().flatten()
    }

    /// Returns output `idx` if it is given.
    pub fn output(&self, idx: usize) -> Option<ValueId> {
        self.outputs.get(idx).copied().flatten()
    }

    /// Returns an integer attribute, or `default` if it is not given.
    pub fn int(&self, name: &str, default: i64) -> i64 {
        match self.attributes.get(name) {
            Some(Attribute::Int(value)) => *value,
            _ => default,
        }
    }

    /// Returns a float attribute, or `default` if it is not given.
    pub fn float(&self, name: &str, default: f32) -> f32 {
        match self.attributes.get(name) {
            Some(Attribute::Float(value)) => *value,
            _ => default,
        }
    }

    /// Returns a list of integers, if it is given.
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        match self.attributes.get(name) {
            Some(Attribute::Ints(values)) => Some(values),
            _ => None,
        }
    }

    /// Returns a string attribute, or `default` if it is not given.
    pub fn string<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        match self.attributes.get(name) {
            Some(Attribute::String(value)) => value,
            _ => default,
        }
    }
}
