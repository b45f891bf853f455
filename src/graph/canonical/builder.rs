//! Adding nodes and values to a graph.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::graph::{DType, Graph, Node, Shape, Tensor, Value, ValueId};

/// Adds to a graph; names are made unique. Nodes are out of order until the graph is compacted.
pub(crate) struct Builder<'a> {
    pub(crate) graph: &'a mut Graph,
    names: BTreeSet<String>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(graph: &'a mut Graph) -> Self {
        let names = graph.values.iter().map(|value| value.name.clone());
        let names = names.collect();
        Self { graph, names }
    }

    /// Adds a value that a node is to make.
    pub(crate) fn value(&mut self, name: &str, dtype: DType, shape: Shape) -> ValueId {
        self.push(name, dtype, shape, None)
    }

    /// Adds a constant.
    pub(crate) fn constant(&mut self, name: &str, tensor: Tensor) -> ValueId {
        let (dtype, shape) = (tensor.dtype(), tensor.shape().clone());
        self.push(name, dtype, shape, Some(Arc::new(tensor)))
    }

    /// Adds a node `op` that makes `output`.
    pub(crate) fn node(&mut self, op: &str, inputs: &[ValueId], output: ValueId) {
        self.graph.nodes.push(Node {
            name: String::new(),
            op: op.to_owned(),
            domain: String::new(),
            attributes: BTreeMap::new(),
            inputs: inputs.iter().copied().map(Some).collect(),
            outputs: vec![Some(output)],
        });
    }

    fn push(
        &mut self,
        name: &str,
        dtype: DType,
        shape: Shape,
        data: Option<Arc<Tensor>>,
    ) -> ValueId {
        let name = super::rewrite::unique(name.to_owned(), &mut self.names);
        let id = ValueId(self.graph.values.len());
        self.graph.values.push(Value {
            name,
            dtype,
            shape,
            data,
        });
        id
    }
}
