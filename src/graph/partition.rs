//! Cutting a graph into subgraphs.
//!
//! Convolutions and matrix products take in what follows them element by element, a residual
//! addition, a global pool and the channel scale before them. A subgraph reads only values of
//! subgraphs whose anchors come before its own in the canonical node order, so no cycle between
//! subgraphs can arise.

use super::operator::{is_activation, is_arithmetic, is_elementwise, is_view};
use super::{Graph, Node, NodeId, Partition, Subgraph, ValueId};

/// Cuts a canonical graph into subgraphs.
///
/// Nodes must be in canonical order, as [`super::canonicalize`] leaves them. O(nodes).
pub fn partition(graph: &Graph) -> Partition {
    let mut cutter = Cutter {
        graph,
        producers: graph.producers(),
        consumers: graph.consumers(),
        is_taken: vec![false; graph.nodes.len()],
    };
    let scales: Vec<Option<NodeId>> = (0..graph.nodes.len())
        .map(|idx| cutter.channel_scale(NodeId(idx)))
        .collect();
    for scale in scales.iter().flatten() {
        cutter.is_taken[scale.0] = true;
    }
    let mut subgraphs = Vec::new();
    for (idx, scale) in scales.into_iter().enumerate() {
        if !cutter.is_taken[idx] {
            subgraphs.push(cutter.grow(NodeId(idx), scale));
        }
    }
    Partition { subgraphs }
}

struct Cutter<'a> {
    graph: &'a Graph,
    producers: Vec<Option<NodeId>>,
    consumers: Vec<Vec<NodeId>>,
    is_taken: Vec<bool>,
}

impl Cutter<'_> {
    /// Returns the `Mul` by one factor a channel that only this convolution reads.
    fn channel_scale(&self, id: NodeId) -> Option<NodeId> {
        let node = self.graph.node(id);
        if node.op != "Conv" || node.int("group", 1) != 1 {
            return None;
        }
        let scaled = node.input(0)?;
        let producer = self.producers[scaled.0]?;
        let scale = self.graph.node(producer);
        self.only_reader(scaled)?;
        if scale.op != "Mul" {
            return None;
        }
        let dims = |id: Option<ValueId>| Some(self.graph.value(id?).shape.dims());
        let (lhs, rhs) = (dims(scale.input(0))?, dims(scale.input(1))?);
        let whole = self.graph.value(scaled).shape.dims();
        let is_factor = |dims: &[usize], id: Option<ValueId>| {
            let is_constant = id.is_some_and(|id| self.graph.constant(id).is_some());
            !is_constant
                && dims.len() == 4
                && dims[..2] == whole[..2]
                && dims[2..] == [1, 1]
                && dims != whole
        };
        let fits = (lhs == whole && is_factor(rhs, scale.input(1)))
            || (rhs == whole && is_factor(lhs, scale.input(0)));
        fits.then_some(producer)
    }

    fn grow(&mut self, anchor: NodeId, scale: Option<NodeId>) -> Subgraph {
        self.is_taken[anchor.0] = true;
        let node = self.graph.node(anchor);
        let mut epilogue = Vec::new();
        let mut value = node.output(0);
        let is_product = matches!(
            node.op.as_str(),
            "Conv" | "ConvTranspose" | "Gemm" | "MatMul"
        );
        let mut may_add = is_product;
        let is_open = node.outputs.len() == 1 && !is_view(&node.op);
        while let Some(current) = value.filter(|_| is_open) {
            let Some(next) = self
                .only_reader(current)
                .filter(|next| !self.is_taken[next.0])
            else {
                break;
            };
            let reader = self.graph.node(next);
            let is_residual = may_add && self.is_residual(reader, current, anchor);
            let is_bias = node.op == "MatMul" && epilogue.is_empty() && self.is_bias(reader);
            let joins = self.is_pointwise(reader)
                || is_residual
                || is_bias
                || (is_elementwise(&node.op) && self.is_ready(reader, current, anchor));
            if !joins {
                break;
            }
            may_add &= !is_residual;
            self.is_taken[next.0] = true;
            epilogue.push(next);
            value = reader.output(0);
        }
        if let Some(current) = value.filter(|_| is_open) {
            self.finish(node, current, &mut epilogue);
        }
        self.close(anchor, scale.into_iter().collect(), epilogue)
    }

    /// Takes in a global pool, and a flattening of single pixels.
    fn finish(&mut self, anchor: &Node, mut value: ValueId, epilogue: &mut Vec<NodeId>) {
        let is_pool =
            |id: &&NodeId| self.graph.node(**id).op == "GlobalAveragePool" && !self.is_taken[id.0];
        if anchor.op == "Conv"
            && let Some(&pool) = self.consumers[value.0].iter().find(is_pool)
        {
            self.is_taken[pool.0] = true;
            epilogue.push(pool);
            let Some(pooled) = self.graph.node(pool).output(0) else {
                return;
            };
            value = pooled;
        }
        let dims = self.graph.value(value).shape.dims();
        let is_single = dims.len() > 2 && dims[2..].iter().all(|&size| size == 1);
        if let Some(next) = self
            .only_reader(value)
            .filter(|next| !self.is_taken[next.0])
            && is_single
            && is_view(&self.graph.node(next).op)
        {
            self.is_taken[next.0] = true;
            epilogue.push(next);
        }
    }

    /// Returns the only node that reads a value, if it reads it once and nobody else does.
    fn only_reader(&self, id: ValueId) -> Option<NodeId> {
        match self.consumers[id.0].as_slice() {
            [reader] if !self.graph.outputs.contains(&id) => Some(*reader),
            _ => None,
        }
    }

    /// Returns whether a node maps its only activation element by element.
    fn is_pointwise(&self, node: &Node) -> bool {
        if !node.domain.is_empty() {
            return false;
        }
        let constant = |id: ValueId| super::scalar(self.graph, id).is_some();
        if is_activation(&node.op) {
            return node.inputs.iter().skip(1).flatten().all(|&id| constant(id));
        }
        let is_scaling = matches!(node.op.as_str(), "Add" | "Sub" | "Mul" | "Div");
        is_scaling && node.inputs.iter().flatten().any(|&id| constant(id)) && self.keeps_shape(node)
    }

    /// Returns whether the output has the shape of every input that is not constant.
    fn keeps_shape(&self, node: &Node) -> bool {
        let shape = |id: ValueId| &self.graph.value(id).shape;
        let Some(output) = node.output(0) else {
            return false;
        };
        node.inputs
            .iter()
            .flatten()
            .filter(|id| self.graph.constant(**id).is_none())
            .all(|&id| shape(id) == shape(output))
    }

    /// Returns whether a node adds another activation of the same shape that is there already.
    fn is_residual(&self, node: &Node, current: ValueId, anchor: NodeId) -> bool {
        node.op == "Add"
            && node
                .inputs
                .iter()
                .flatten()
                .all(|id| self.graph.constant(*id).is_none())
            && self.keeps_shape(node)
            && self.is_ready(node, current, anchor)
    }

    /// Returns whether a node is elementwise arithmetic whose other operands are there already.
    fn is_ready(&self, node: &Node, current: ValueId, anchor: NodeId) -> bool {
        let is_there = |id: ValueId| {
            id == current || self.producers[id.0].is_none_or(|producer| producer < anchor)
        };
        let shape = |id: ValueId| &self.graph.value(id).shape;
        let output = node.output(0);
        node.domain.is_empty()
            && (is_arithmetic(&node.op) || is_activation(&node.op))
            && output.is_some_and(|output| shape(output) == shape(current))
            && node.inputs.iter().flatten().all(|&id| is_there(id))
    }

    /// Returns whether a node adds a constant along the last axis.
    fn is_bias(&self, node: &Node) -> bool {
        let last = |id: ValueId| self.graph.value(id).shape.dims().last().copied();
        let is_vector = |id: &ValueId| {
            self.graph.constant(*id).is_some_and(|constant| {
                constant.shape().rank() == 1
                    && node.output(0).and_then(last) == Some(constant.shape().len())
            })
        };
        node.op == "Add" && node.inputs.iter().flatten().any(is_vector) && self.keeps_shape(node)
    }

    fn close(&self, anchor: NodeId, prologue: Vec<NodeId>, epilogue: Vec<NodeId>) -> Subgraph {
        let mut subgraph = Subgraph {
            anchor,
            prologue,
            epilogue,
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        let nodes = subgraph.nodes();
        let made: Vec<ValueId> = nodes
            .iter()
            .flat_map(|id| self.graph.node(*id).outputs.iter().flatten().copied())
            .collect();
        for id in nodes
            .iter()
            .flat_map(|id| self.graph.node(*id).inputs.iter().flatten())
        {
            let is_outer = !made.contains(id) && self.graph.constant(*id).is_none();
            if is_outer && !subgraph.inputs.contains(id) {
                subgraph.inputs.push(*id);
            }
        }
        for id in made {
            let is_read = self.consumers[id.0]
                .iter()
                .any(|reader| !nodes.contains(reader));
            if is_read || self.graph.outputs.contains(&id) {
                subgraph.outputs.push(id);
            }
        }
        subgraph
    }
}
