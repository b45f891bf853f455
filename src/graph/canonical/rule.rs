//! What rules are made of: what they see and what they say.

use std::collections::BTreeMap;

use crate::graph::{Attribute, Graph, Node, NodeId, Shape, Tensor, ValueId};

/// What a node becomes.
pub(super) enum Rewrite {
    /// Another operator with the same first output.
    Replace(Replacement),
    /// Its output equals this value.
    Forward(ValueId),
}

/// The operator a node becomes, optionally fed by a new one.
pub(super) struct Replacement {
    pub op: &'static str,
    pub attributes: BTreeMap<String, Attribute>,
    pub inputs: Vec<Option<Source>>,
    /// A new node before it, whose output it reads as its first input.
    pub before: Option<Before>,
}

/// A node put in front of another one.
pub(super) struct Before {
    pub op: &'static str,
    pub attributes: BTreeMap<String, Attribute>,
    pub inputs: Vec<Option<Source>>,
    pub shape: Shape,
}

/// An input of a replacement.
pub(super) enum Source {
    Value(ValueId),
    Constant(Tensor),
}

/// A graph with its wiring, as rules see it.
pub(super) struct View<'a> {
    pub graph: &'a Graph,
    pub wiring: &'a Wiring,
}

/// A rule: says what a node becomes, if it matches.
pub(super) type Rule = fn(&View<'_>, &Node) -> Option<Rewrite>;

/// Who produces and how many read each value.
pub(super) struct Wiring {
    producers: Vec<Option<NodeId>>,
    /// How often each value is read, by nodes or as a model output.
    reads: Vec<usize>,
}

impl Wiring {
    /// Reads the wiring off a graph.
    pub(super) fn of(graph: &Graph) -> Self {
        let mut wiring = Self {
            producers: graph.producers(),
            reads: vec![0; graph.values.len()],
        };
        for node in &graph.nodes {
            wiring.add(node);
        }
        for id in &graph.outputs {
            wiring.reads[id.0] += 1;
        }
        wiring
    }

    /// Makes room for values that were added to the graph.
    pub(super) fn grow(&mut self, graph: &Graph) {
        self.producers.resize(graph.values.len(), None);
        self.reads.resize(graph.values.len(), 0);
    }

    /// Counts what a node reads.
    pub(super) fn add(&mut self, node: &Node) {
        for id in node.inputs.iter().flatten() {
            self.reads[id.0] += 1;
        }
    }

    /// Stops counting what a node reads.
    pub(super) fn remove(&mut self, node: &Node) {
        for id in node.inputs.iter().flatten() {
            self.reads[id.0] -= 1;
        }
    }

    /// Notes who produces a value.
    pub(super) fn produce(&mut self, id: ValueId, node: NodeId) {
        self.producers[id.0] = Some(node);
    }
}

impl View<'_> {
    /// Returns the node that produces a value.
    pub(super) fn producer(&self, id: ValueId) -> Option<&Node> {
        self.wiring.producers[id.0].map(|node| self.graph.node(node))
    }

    /// Returns whether a value is read exactly once.
    pub(super) fn is_read_once(&self, id: ValueId) -> bool {
        self.wiring.reads[id.0] == 1
    }

    /// Returns the producer of input `idx` if it has operator `op`.
    pub(super) fn feeder<'s>(&'s self, node: &Node, idx: usize, op: &str) -> Option<&'s Node> {
        let producer = self.producer(node.input(idx)?)?;
        (producer.op == op && producer.domain.is_empty()).then_some(producer)
    }
}

impl Replacement {
    /// Replaces by an operator without attributes.
    pub(super) fn plain(op: &'static str, inputs: Vec<ValueId>) -> Rewrite {
        Self::with(op, [], inputs)
    }

    /// Replaces by an operator with attributes.
    pub(super) fn with<const N: usize>(
        op: &'static str,
        attributes: [(&str, Attribute); N],
        inputs: Vec<ValueId>,
    ) -> Rewrite {
        Rewrite::Replace(Self {
            op,
            attributes: attributes
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            inputs: inputs
                .into_iter()
                .map(|id| Some(Source::Value(id)))
                .collect(),
            before: None,
        })
    }
}
