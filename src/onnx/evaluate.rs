//! Runs one node on its own, to fold constants.

use std::sync::{Arc, OnceLock};

use rten::ThreadPool;

use super::error::Problem;
use super::executor::{Executor, from_value, single_thread, value_dtype};
use crate::graph::{DType, Graph, Node, Shape, Tensor, TensorData, Value, ValueId};

/// Most bytes that a node may read or write to be run here.
pub(super) const MAX_BYTES: usize = 1 << 28;

/// Runs single nodes.
#[derive(Default)]
pub(super) struct Evaluator {
    threads: OnceLock<Arc<ThreadPool>>,
}

/// An input of a node that is to be run.
pub(super) struct Given {
    pub dtype: DType,
    pub shape: Shape,
    /// The elements; zeros are taken where they are not known.
    pub data: Option<Arc<Tensor>>,
}

impl Evaluator {
    /// Runs a node on constants; `facts` give the outputs' types.
    pub(super) fn fold(
        &self,
        node: &Node,
        opset: i64,
        inputs: &[Option<Given>],
        facts: &[Option<DType>],
    ) -> Result<Vec<Option<Tensor>>, Problem> {
        let (graph, names) = single_node(node, opset, inputs);
        let executor = Executor::new(&graph, self.threads())?;
        let wanted: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
        let open: Vec<(&str, Tensor)> = graph
            .inputs
            .iter()
            .filter_map(|&id| {
                let value = graph.value(id);
                Some((value.name.as_str(), zeros(value.dtype, &value.shape)?))
            })
            .collect();
        let open: Vec<(&str, &Tensor)> = open.iter().map(|(name, t)| (*name, t)).collect();
        let mut values = executor.run(&open, &wanted)?.into_iter();
        let widest = inputs
            .iter()
            .flatten()
            .any(|given| given.dtype == DType::I64);
        let mut outputs = Vec::new();
        for (idx, name) in names.iter().enumerate() {
            let value = name.as_ref().and_then(|_| values.next());
            outputs.push(match value {
                Some(value) => {
                    let natural = match value_dtype(&value) {
                        DType::I32 if widest => DType::I64,
                        dtype => dtype,
                    };
                    let dtype = facts.get(idx).copied().flatten().unwrap_or(natural);
                    Some(from_value(value, dtype)?)
                }
                None => None,
            });
        }
        Ok(outputs)
    }

    fn threads(&self) -> Arc<ThreadPool> {
        Arc::clone(self.threads.get_or_init(single_thread))
    }
}

/// Wraps a node into a graph of its own; returns the outputs' names.
fn single_node(node: &Node, opset: i64, inputs: &[Option<Given>]) -> (Graph, Vec<Option<String>>) {
    let mut graph = Graph {
        name: "node".to_owned(),
        opset,
        values: Vec::new(),
        nodes: Vec::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
    };
    let mut node = node.clone();
    node.inputs = inputs
        .iter()
        .enumerate()
        .map(|(idx, given)| {
            let given = given.as_ref()?;
            let id = ValueId(graph.values.len());
            graph.values.push(Value {
                name: format!("i{idx}"),
                dtype: given.dtype,
                shape: given.shape.clone(),
                data: given.data.clone(),
            });
            if given.data.is_none() {
                graph.inputs.push(id);
            }
            Some(id)
        })
        .collect();
    let mut names = Vec::new();
    let outputs = node.outputs.iter().enumerate().map(|(idx, output)| {
        let name = output.map(|_| format!("o{idx}"));
        names.push(name.clone());
        let id = ValueId(graph.values.len());
        graph.values.push(Value {
            name: name?,
            dtype: DType::F32,
            shape: Shape::default(),
            data: None,
        });
        Some(id)
    });
    node.outputs = outputs.collect();
    graph.nodes.push(node);
    (graph, names)
}

/// Makes a tensor of zeros, if the executor takes the type.
fn zeros(dtype: DType, shape: &Shape) -> Option<Tensor> {
    let len = shape.len();
    let data = match dtype {
        DType::F32 | DType::F16 | DType::F64 => TensorData::F32(vec![0.0; len]),
        DType::I8 => TensorData::I8(vec![0; len]),
        DType::U8 => TensorData::U8(vec![0; len]),
        _ => TensorData::I32(vec![0; len]),
    };
    Tensor::new(shape.clone(), data).ok()
}
