//! Cutting a graph into subgraphs.
//!
//! Convolutions and matrix products take in what follows them element by element, a residual
//! addition, a global pool and the channel scale before them. Conversions from 8-bit integers belong
//! to what reads them, and those to integers to what they follow. A subgraph reads only values of
//! subgraphs whose anchors come before its own in the canonical node order, so no cycle between
//! subgraphs can arise.

use super::operator::{is_activation, is_arithmetic, is_elementwise, is_view};
use super::{
    DType, Graph, Node, NodeId, Partition, Subgraph, ValueId, affine, is_symmetric, table,
};

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
    let prologues: Vec<Vec<NodeId>> = (0..graph.nodes.len())
        .map(|idx| cutter.prologue(NodeId(idx)))
        .collect();
    for id in prologues.iter().flatten() {
        cutter.is_taken[id.0] = true;
    }
    let mut subgraphs = Vec::new();
    for (idx, prologue) in prologues.into_iter().enumerate() {
        let id = NodeId(idx);
        if cutter.is_taken[idx] {
            continue;
        }
        if let Some(subgraph) = cutter.function(id) {
            subgraphs.push(subgraph);
        } else if !cutter.waits(id) {
            subgraphs.push(cutter.grow(id, prologue));
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
    /// Returns what is computed within a layer before it.
    fn prologue(&self, id: NodeId) -> Vec<NodeId> {
        match self.channel_scale(id) {
            Some(scale) => vec![scale],
            None => self.dequantized_layer(id).unwrap_or_default(),
        }
    }

    /// Returns the conversions of the input and the weights of a layer that nothing else reads.
    fn dequantized_layer(&self, id: NodeId) -> Option<Vec<NodeId>> {
        let node = self.graph.node(id);
        if !matches!(node.op.as_str(), "Conv" | "Gemm" | "MatMul") {
            return None;
        }
        let x = self.dequantizer(node.input(0)?)?;
        let weights = node.input(1)?;
        let source = self.producers[weights.0]?;
        self.only_reader(weights)?;
        is_symmetric(self.graph, self.graph.node(source)).then(|| vec![x, source])
    }

    /// Returns the `DequantizeLinear` of an 8-bit activation that makes a value which one node reads.
    fn dequantizer(&self, real: ValueId) -> Option<NodeId> {
        self.only_reader(real)?;
        let id = self.producers[real.0].filter(|id| !self.is_taken[id.0])?;
        let node = self.graph.node(id);
        (node.op == "DequantizeLinear" && affine(self.graph, node).is_some()).then_some(id)
    }

    /// Returns whether a node is a conversion that belongs to the node after it.
    fn waits(&self, id: NodeId) -> bool {
        let node = self.graph.node(id);
        let real = node.output(0);
        let reader = real.filter(|&real| self.dequantizer(real) == Some(id));
        let reader = reader.and_then(|real| self.only_reader(real));
        reader.is_some_and(|reader| takes_integers(self.graph.node(reader)))
    }

    /// Returns the subgraph of a function of one 8-bit value that a node begins.
    fn function(&mut self, id: NodeId) -> Option<Subgraph> {
        let from = self.graph.node(id).input(0)?;
        let nodes = self.table(from).filter(|nodes| nodes[0] == id)?;
        for id in &nodes {
            self.is_taken[id.0] = true;
        }
        Some(self.close(id, Vec::new(), nodes[1..].to_vec()))
    }

    /// Returns the nodes of a function of an 8-bit value, if they are free.
    fn table(&self, from: ValueId) -> Option<Vec<NodeId>> {
        let nodes = table(self.graph, &self.consumers, from)?.nodes;
        let is_free = nodes.iter().all(|id| !self.is_taken[id.0]);
        is_free.then_some(nodes)
    }

    /// Returns what goes on with an 8-bit value that a subgraph made: a function of it alone, or
    /// arithmetic with something that is there already.
    fn go_on(&self, current: ValueId, anchor: NodeId, may_add: bool) -> Option<Vec<NodeId>> {
        if let Some(nodes) = self.table(current) {
            return Some(nodes);
        }
        let own = self.only_reader(current)?;
        let real = self.graph.node(own).output(0)?;
        if self.dequantizer(real) != Some(own) {
            return None;
        }
        let id = self.only_reader(real).filter(|id| !self.is_taken[id.0])?;
        let reader = self.graph.node(id);
        let other = match reader.inputs.as_slice() {
            [Some(lhs), Some(rhs)] if *lhs == real => *rhs,
            [Some(lhs), Some(rhs)] if *rhs == real => *lhs,
            _ => return None,
        };
        let is_ready = |id: ValueId| self.producers[id.0].is_none_or(|node| node < anchor);
        let fits = reader.domain.is_empty()
            && self.keeps_shape(reader)
            && (is_elementwise(&self.graph.node(anchor).op) || (may_add && reader.op == "Add"));
        let mut nodes = vec![own];
        let source = match self.dequantizer(other) {
            Some(other) => {
                nodes.push(other);
                self.graph.node(other).input(0)?
            }
            None => other,
        };
        nodes.push(id);
        (fits && is_arithmetic(&reader.op) && is_ready(source)).then_some(nodes)
    }

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

    fn grow(&mut self, anchor: NodeId, mut prologue: Vec<NodeId>) -> Subgraph {
        self.is_taken[anchor.0] = true;
        let node = self.graph.node(anchor);
        if takes_integers(node) {
            let operands = node.inputs.iter().flatten();
            prologue.extend(operands.filter_map(|&operand| self.dequantizer(operand)));
            for id in &prologue {
                self.is_taken[id.0] = true;
            }
        }
        let mut epilogue = Vec::new();
        let mut value = node.output(0);
        let is_product = matches!(
            node.op.as_str(),
            "Conv" | "ConvTranspose" | "Gemm" | "MatMul"
        );
        let mut may_add = is_product;
        let is_open = node.outputs.len() == 1 && !is_view(&node.op);
        let goes_on = is_product || takes_integers(node);
        while let Some(current) = value.filter(|_| is_open) {
            if goes_on
                && self.graph.value(current).dtype == DType::U8
                && let Some(nodes) = self.go_on(current, anchor, may_add)
            {
                for id in &nodes {
                    self.is_taken[id.0] = true;
                }
                may_add &= self.graph.node(nodes[nodes.len() - 1]).op == "QuantizeLinear";
                value = nodes.last().and_then(|id| self.graph.node(*id).output(0));
                epilogue.extend(nodes);
                continue;
            }
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
                || self.is_quantizing(reader)
                || is_residual
                || is_bias
                || (is_elementwise(&node.op) && self.is_ready(reader, current, anchor));
            if !joins {
                break;
            }
            may_add &= !is_residual;
            // The other operand may be kept as integers.
            let operands = reader.inputs.iter().flatten();
            let mut operands = operands.filter(|id| is_residual && **id != current);
            let conversion = operands.find_map(|&id| self.dequantizer(id));
            for id in conversion.into_iter().chain([next]) {
                self.is_taken[id.0] = true;
                epilogue.push(id);
            }
            value = reader.output(0);
        }
        if let Some(current) = value.filter(|_| is_open) {
            self.finish(node, current, &mut epilogue);
        }
        self.close(anchor, prologue, epilogue)
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

    /// Returns whether a node rounds to 8-bit integers by one scale.
    fn is_quantizing(&self, node: &Node) -> bool {
        node.op == "QuantizeLinear" && affine(self.graph, node).is_some()
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

/// Returns whether a node's operands may be 8-bit integers that it converts itself.
fn takes_integers(node: &Node) -> bool {
    node.domain.is_empty()
        && (is_elementwise(&node.op)
            || matches!(
                node.op.as_str(),
                "AveragePool" | "GlobalAveragePool" | "MaxPool" | "GlobalMaxPool"
            ))
}
