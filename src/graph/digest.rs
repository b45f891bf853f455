//! Structure and content digests of subgraphs and graphs.
//!
//! Each node is hashed from its operator, its attributes and what feeds it, so a digest depends on
//! the wiring alone: names, node order, doc strings and file paths do not enter. The structure
//! leaves out the elements of weights, learned factors and terms included; the content has them too.
//! Constants that say how a node computes (axes, pads, bounds, exponents) are structure.

use std::collections::BTreeMap;

use super::defaults::{parameter, resolved};
use super::{Attribute, DType, Graph, Node, NodeId, Shape, Subgraph, Tensor, ValueId};
use crate::digest::{Digest, Encoder};

/// Domain tags; the number goes up when the encoding moves.
const STRUCTURE: &str = "metainfer structure v1";
const CONTENT: &str = "metainfer content v1";

/// Digests of a subgraph or a whole graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digests {
    /// What latency and energy depend on: operators, attributes, wiring, types and shapes.
    pub structure: Digest,
    /// What numbers depend on: the structure and the weights.
    pub content: Digest,
}

impl Subgraph {
    /// Returns the digests of the subgraph within its graph. O(weights).
    pub fn digests(&self, graph: &Graph) -> Digests {
        digests(graph, &self.nodes(), &self.inputs, &self.outputs)
    }
}

impl Graph {
    /// Returns the digests of the whole graph: order of inputs and outputs included. O(weights).
    pub fn digests(&self) -> Digests {
        let nodes: Vec<NodeId> = (0..self.nodes.len()).map(NodeId).collect();
        digests(self, &nodes, &self.inputs, &self.outputs)
    }
}

fn digests(graph: &Graph, nodes: &[NodeId], inputs: &[ValueId], outputs: &[ValueId]) -> Digests {
    let run = |domain, with_weights| {
        let mut hasher = Hasher {
            graph,
            domain,
            with_weights,
            known: BTreeMap::new(),
        };
        hasher.whole(nodes, inputs, outputs)
    };
    Digests {
        structure: run(STRUCTURE, false),
        content: run(CONTENT, true),
    }
}

struct Hasher<'a> {
    graph: &'a Graph,
    domain: &'a str,
    with_weights: bool,
    /// Digests of values that are inputs or produced inside.
    known: BTreeMap<ValueId, Digest>,
}

impl Hasher<'_> {
    fn whole(&mut self, nodes: &[NodeId], inputs: &[ValueId], outputs: &[ValueId]) -> Digest {
        for (idx, &id) in inputs.iter().enumerate() {
            let mut encoder = self.encoder("input");
            encoder.u64(idx as u64);
            self.typed(&mut encoder, id);
            self.known.insert(id, encoder.finish());
        }
        let mut all = Vec::new();
        for &id in nodes {
            let node = self.graph.node(id);
            let digest = self.node(node);
            for (idx, &output) in node.outputs.iter().enumerate() {
                let Some(output) = output else { continue };
                let mut encoder = self.encoder("output");
                encoder.u64(idx as u64);
                encoder.digest(&digest);
                self.typed(&mut encoder, output);
                self.known.insert(output, encoder.finish());
            }
            all.push(digest);
        }
        // Their number tells two equal nodes from one that is read twice.
        all.sort_unstable();
        let mut encoder = self.encoder("graph");
        encoder.u64(inputs.len() as u64);
        encoder.u64(all.len() as u64);
        for digest in &all {
            encoder.digest(digest);
        }
        encoder.u64(outputs.len() as u64);
        for &output in outputs {
            let digest = self.value(output, false);
            encoder.digest(&digest);
        }
        encoder.finish()
    }

    fn node(&self, node: &Node) -> Digest {
        let mut encoder = self.encoder("node");
        encoder.str(&node.domain);
        encoder.str(&node.op);
        let attributes = resolved(self.graph, node);
        encoder.u64(attributes.len() as u64);
        for (name, attribute) in &attributes {
            encoder.str(name);
            encode_attribute(&mut encoder, attribute);
        }
        let mut operands: Vec<Option<Digest>> = node
            .inputs
            .iter()
            .enumerate()
            .map(|(idx, id)| self.operand(node, idx, (*id)?))
            .collect();
        while operands.last() == Some(&None) {
            operands.pop();
        }
        if matches!(
            node.op.as_str(),
            "Add" | "Mul" | "Max" | "Min" | "Sum" | "Mean"
        ) {
            operands.sort_unstable();
        }
        encoder.u64(operands.len() as u64);
        for digest in &operands {
            encoder.u64(u64::from(digest.is_some()));
            if let Some(digest) = digest {
                encoder.digest(digest);
            }
        }
        encoder.u64(node.outputs.len() as u64);
        for output in &node.outputs {
            encoder.u64(u64::from(output.is_some()));
        }
        encoder.finish()
    }

    /// Returns `None` for a constant that is among the attributes.
    fn operand(&self, node: &Node, idx: usize, id: ValueId) -> Option<Digest> {
        let is_constant = self.graph.constant(id).is_some();
        if is_constant && parameter(node, idx).is_some() {
            return None;
        }
        Some(self.value(id, is_weight(self.graph, node, idx)))
    }

    fn value(&self, id: ValueId, is_weight: bool) -> Digest {
        if let Some(digest) = self.known.get(&id) {
            return *digest;
        }
        let Some(constant) = self.graph.constant(id) else {
            // Not reached for values of a well-formed graph.
            return self.encoder("unknown").finish();
        };
        let mut encoder = self.encoder("constant");
        self.typed(&mut encoder, id);
        if self.with_weights || !is_weight {
            encoder.bytes(&constant.data().to_le_bytes());
        }
        encoder.finish()
    }

    fn typed(&self, encoder: &mut Encoder, id: ValueId) {
        let value = self.graph.value(id);
        encode_type(encoder, value.dtype, &value.shape);
    }

    fn encoder(&self, part: &str) -> Encoder {
        let mut encoder = Encoder::new(self.domain);
        encoder.str(part);
        encoder
    }
}

/// Returns whether a constant input is a weight, which may change without changing the structure.
fn is_weight(graph: &Graph, node: &Node, idx: usize) -> bool {
    let has_weights = matches!(
        node.op.as_str(),
        "Conv"
            | "ConvTranspose"
            | "Gemm"
            | "MatMul"
            | "BatchNormalization"
            | "LayerNormalization"
            | "InstanceNormalization"
            | "LSTM"
            | "GRU"
            | "RNN"
            | "PRelu"
            | "QuantizeLinear"
            | "DequantizeLinear"
    );
    let is_shaping = matches!(
        node.op.as_str(),
        "Resize" | "Upsample" | "Range" | "OneHot" | "Pad" | "Clip"
    );
    let Some(constant) = node.input(idx).and_then(|id| graph.constant(id)) else {
        return false;
    };
    let is_float = matches!(constant.dtype(), DType::F32 | DType::F16 | DType::F64);
    // A learned factor is a weight even if it is a single number.
    let is_arithmetic = matches!(node.op.as_str(), "Add" | "Sub" | "Mul" | "Div");
    let is_tensor = !is_shaping && constant.shape().len() > 1;
    has_weights || (is_float && (is_arithmetic || is_tensor))
}

fn encode_type(encoder: &mut Encoder, dtype: DType, shape: &Shape) {
    encoder.str(dtype.name());
    encoder.u64(shape.rank() as u64);
    for &dim in shape.dims() {
        encoder.u64(dim as u64);
    }
}

fn encode_tensor(encoder: &mut Encoder, tensor: &Tensor) {
    encode_type(encoder, tensor.dtype(), tensor.shape());
    encoder.bytes(&tensor.data().to_le_bytes());
}

fn encode_attribute(encoder: &mut Encoder, attribute: &Attribute) {
    match attribute {
        Attribute::Float(value) => {
            encoder.str("float");
            encoder.f32(*value);
        }
        Attribute::Int(value) => {
            encoder.str("int");
            encoder.i64(*value);
        }
        Attribute::String(value) => {
            encoder.str("string");
            encoder.str(value);
        }
        Attribute::Floats(values) => {
            encoder.str("floats");
            encoder.u64(values.len() as u64);
            for &value in values {
                encoder.f32(value);
            }
        }
        Attribute::Ints(values) => {
            encoder.str("ints");
            encoder.u64(values.len() as u64);
            for &value in values {
                encoder.i64(value);
            }
        }
        Attribute::Strings(values) => {
            encoder.str("strings");
            encoder.u64(values.len() as u64);
            for value in values {
                encoder.str(value);
            }
        }
        Attribute::Tensor(tensor) => {
            encoder.str("tensor");
            encode_tensor(encoder, tensor);
        }
        Attribute::Graph(graph) => {
            encoder.str("graph");
            encoder.digest(&graph.digests().content);
        }
    }
}
