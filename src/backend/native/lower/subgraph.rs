//! A subgraph becomes operations, by its anchor.

use super::epilogue::is_conversion;
use super::{deconv, elementwise, epilogue, join, layers, loops, quantized, resample};
use crate::backend::native::spec::{Kind, Operation};
use crate::graph::{Graph, Node, NodeId, Partition, Subgraph, ValueId};

/// An operator that the native backend has no kernel for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("operator `{op}` of node `{node}` is not covered by the native backend: {reason}")]
pub struct NotCovered {
    /// Name of the node, or of its output if it has none.
    pub node: String,
    /// ONNX operator type.
    pub op: String,
    /// What about it is not covered.
    pub reason: String,
}

/// Lowers every subgraph, in order; a subgraph may become several operations, the first of which
/// is the one its mapping is for.
///
/// # Errors
/// All operators that are not covered.
pub fn lower(graph: &Graph, partition: &Partition) -> Result<Vec<Operation>, Vec<NotCovered>> {
    lower_each(graph, partition, tuned)
}

fn lower_each(
    graph: &Graph,
    partition: &Partition,
    lower: impl Fn(&Lowering<'_>) -> Result<Vec<Operation>, NotCovered>,
) -> Result<Vec<Operation>, Vec<NotCovered>> {
    let consumers = graph.consumers();
    let mut operations = Vec::new();
    let mut missing = Vec::new();
    for (idx, subgraph) in partition.subgraphs.iter().enumerate() {
        let ctx = Lowering {
            graph,
            subgraph,
            idx,
            consumers: &consumers,
        };
        match lower(&ctx) {
            Ok(lowered) => operations.extend(lowered),
            Err(not_covered) => missing.push(not_covered),
        }
    }
    if missing.is_empty() {
        Ok(operations)
    } else {
        Err(missing)
    }
}

/// Lowers every node to plain loops, each a subgraph of its own.
///
/// # Errors
/// All operators that are not covered.
pub fn lower_plain(graph: &Graph) -> Result<Vec<Operation>, Vec<NotCovered>> {
    let partition = Partition::by_node(graph);
    lower_each(graph, &partition, |ctx| plain(ctx, &ctx.subgraph.nodes()))
}

/// Lowers a subgraph by its tuned kernel, or else node by node.
fn tuned(ctx: &Lowering<'_>) -> Result<Vec<Operation>, NotCovered> {
    let anchor = ctx.graph.node(ctx.subgraph.anchor);
    let tuned = match anchor.op.as_str() {
        "Conv" => layers::convolution(ctx, anchor).or_else(|_| loops::convolution(ctx, anchor)),
        "ConvTranspose" => {
            deconv::deconvolution(ctx, anchor).or_else(|_| loops::convolution(ctx, anchor))
        }
        "Concat" => join::concat(ctx, anchor),
        "Resize" | "Upsample" => resample::nearest(ctx, anchor),
        "Gemm" | "MatMul" => {
            layers::fully_connected(ctx, anchor).or_else(|_| loops::product(ctx, anchor))
        }
        "MaxPool" | "AveragePool" | "GlobalAveragePool" | "GlobalMaxPool" => {
            layers::pooling(ctx, anchor)
        }
        op if epilogue::is_view(op) => layers::alias(ctx, anchor),
        _ => elementwise::chain(ctx),
    };
    tuned.or_else(|_| one_by_one(ctx, &ctx.subgraph.nodes()))
}

/// Lowers nodes on their own: conversions between u8 and f32 to maps, all else to plain loops.
fn one_by_one(ctx: &Lowering<'_>, nodes: &[NodeId]) -> Result<Vec<Operation>, NotCovered> {
    let converts = |id: &NodeId| is_conversion(&ctx.node(*id).op);
    let runs = nodes.chunk_by(|a, b| !converts(a) && !converts(b));
    let lowered = runs.map(|run| match run {
        [id] if converts(id) => quantized::chain(ctx, run).or_else(|_| plain(ctx, run)),
        _ => plain(ctx, run),
    });
    Ok(lowered.collect::<Result<Vec<_>, _>>()?.concat())
}

/// Lowers nodes to plain loops.
fn plain(ctx: &Lowering<'_>, nodes: &[NodeId]) -> Result<Vec<Operation>, NotCovered> {
    let mut operations = Vec::new();
    let nodes: Vec<&Node> = nodes.iter().map(|&id| ctx.node(id)).collect();
    let mut rest = nodes.as_slice();
    while !rest.is_empty() {
        let (n_nodes, lowered) = loops::lower(ctx, rest)?;
        operations.extend(lowered);
        rest = &rest[n_nodes.max(1)..];
    }
    Ok(operations)
}

/// A subgraph that is being lowered.
pub(super) struct Lowering<'a> {
    pub(super) graph: &'a Graph,
    pub(super) subgraph: &'a Subgraph,
    pub(super) idx: usize,
    /// The nodes that read each value of the graph.
    pub(super) consumers: &'a [Vec<NodeId>],
}

impl Lowering<'_> {
    pub(super) fn not_covered(&self, node: &Node, reason: impl Into<String>) -> NotCovered {
        let output = node.outputs.iter().flatten().next();
        let name = match output {
            _ if !node.name.is_empty() => node.name.clone(),
            Some(&value) => self.graph.value(value).name.clone(),
            None => String::new(),
        };
        NotCovered {
            node: name,
            op: node.op.clone(),
            reason: reason.into(),
        }
    }

    /// Returns the operations of an epilogue's views.
    pub(super) fn views(&self, views: &[(ValueId, ValueId)]) -> impl Iterator<Item = Operation> {
        views
            .iter()
            .map(|&(x, y)| self.operation("view".to_owned(), Kind::Alias, x, y))
    }

    /// Returns the operations of nodes that follow a kernel and are not fused with it.
    pub(super) fn after(&self, nodes: &[NodeId]) -> Result<Vec<Operation>, NotCovered> {
        quantized::chain(self, nodes).or_else(|_| one_by_one(self, nodes))
    }

    pub(super) fn operation(&self, name: String, kind: Kind, x: ValueId, y: ValueId) -> Operation {
        Operation {
            subgraph: self.idx,
            name,
            kind,
            x,
            y,
        }
    }

    /// Returns input `idx`, which must be a value that is computed.
    pub(super) fn activation(&self, node: &Node, idx: usize) -> Result<ValueId, NotCovered> {
        node.input(idx)
            .filter(|&value| self.graph.constant(value).is_none())
            .ok_or_else(|| self.not_covered(node, format!("input {idx} is constant or missing")))
    }

    /// Returns input `idx`, which must be constant f32 numbers.
    pub(super) fn weights(&self, node: &Node, idx: usize) -> Result<&[f32], NotCovered> {
        node.input(idx)
            .and_then(|value| self.graph.constant(value))
            .and_then(|tensor| tensor.as_f32())
            .ok_or_else(|| self.not_covered(node, format!("input {idx} is not a constant of f32")))
    }

    pub(super) fn output(&self, node: &Node) -> Result<ValueId, NotCovered> {
        node.outputs
            .first()
            .copied()
            .flatten()
            .ok_or_else(|| self.not_covered(node, "it has no output"))
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        self.graph.node(id)
    }
}
