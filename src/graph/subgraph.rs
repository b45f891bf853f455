//! Subgraphs: the unit of tuning.

use super::{Graph, Node, NodeId, ValueId};

/// An anchor operator with the cheap operators fused around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subgraph {
    /// The operator that decides how the subgraph is computed.
    pub anchor: NodeId,
    /// Nodes before the anchor, in topological order; each feeds the anchor alone.
    pub prologue: Vec<NodeId>,
    /// Nodes after the anchor, in topological order; each reads the one before it, or they compute
    /// between two 8-bit values that do.
    pub epilogue: Vec<NodeId>,
    /// Values read from outside that are not constants, in the order they are first read.
    pub inputs: Vec<ValueId>,
    /// Values that are read outside or are model outputs, in the order they are produced.
    pub outputs: Vec<ValueId>,
}

/// A graph cut into subgraphs, in topological order; every node is in exactly one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// The subgraphs.
    pub subgraphs: Vec<Subgraph>,
}

impl Partition {
    /// Cuts a graph into its nodes, in their order.
    pub fn by_node(graph: &Graph) -> Self {
        let subgraph = |(idx, node): (usize, &Node)| {
            let mut inputs: Vec<ValueId> = Vec::new();
            for &id in node.inputs.iter().flatten() {
                if graph.constant(id).is_none() && !inputs.contains(&id) {
                    inputs.push(id);
                }
            }
            Subgraph {
                anchor: NodeId(idx),
                prologue: Vec::new(),
                epilogue: Vec::new(),
                inputs,
                outputs: node.outputs.iter().flatten().copied().collect(),
            }
        };
        Self {
            subgraphs: graph.nodes.iter().enumerate().map(subgraph).collect(),
        }
    }
}

/// What a subgraph is, by its anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `Conv` in one group.
    Conv,
    /// `Conv` in several groups, other than depthwise.
    GroupedConv,
    /// `Conv` with one input channel in each group.
    DepthwiseConv,
    /// `ConvTranspose`.
    ConvTranspose,
    /// `Gemm`: a matrix times constant weights.
    Gemm,
    /// `MatMul`, batched or of two activations.
    MatMul,
    /// Pools, global ones too.
    Pool,
    /// Reductions, softmax and normalisations.
    Reduction,
    /// `LSTM`, `GRU`, `RNN`.
    Recurrent,
    /// Operators on one element at a time.
    Elementwise,
    /// The same elements in the same order under another shape.
    View,
    /// Everything else: moves, resizes, gathers.
    Other,
}

impl Subgraph {
    /// Returns all nodes in topological order.
    pub fn nodes(&self) -> Vec<NodeId> {
        let anchor = std::iter::once(&self.anchor);
        self.prologue
            .iter()
            .chain(anchor)
            .chain(&self.epilogue)
            .copied()
            .collect()
    }

    /// Returns what the subgraph is.
    pub fn kind(&self, graph: &Graph) -> Kind {
        let node = graph.node(self.anchor);
        match node.op.as_str() {
            "Conv" => {
                let channels = node
                    .input(0)
                    .and_then(|id| graph.value(id).shape.dims().get(1).copied());
                match node.int("group", 1) {
                    1 => Kind::Conv,
                    group if Some(group as usize) == channels => Kind::DepthwiseConv,
                    _ => Kind::GroupedConv,
                }
            }
            "ConvTranspose" => Kind::ConvTranspose,
            "Gemm" => Kind::Gemm,
            "MatMul" => Kind::MatMul,
            "MaxPool" | "AveragePool" | "LpPool" | "GlobalAveragePool" | "GlobalMaxPool"
            | "GlobalLpPool" => Kind::Pool,
            "Softmax"
            | "LogSoftmax"
            | "LayerNormalization"
            | "RMSNormalization"
            | "InstanceNormalization"
            | "GroupNormalization"
            | "LpNormalization"
            | "ArgMax"
            | "ArgMin" => Kind::Reduction,
            op if op.starts_with("Reduce") => Kind::Reduction,
            "LSTM" | "GRU" | "RNN" => Kind::Recurrent,
            op if super::operator::is_view(op) => Kind::View,
            op if super::operator::is_elementwise(op) => Kind::Elementwise,
            _ => Kind::Other,
        }
    }
}
