//! Small models built by hand, and what they become.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::graph::{Attribute, DType, Graph, Node, Shape, Tensor, TensorData, Value, ValueId};
use crate::onnx::error::Problem;
use crate::onnx::load::decode;
use crate::onnx::{LoadOptions, LoadedModel, Reference, encode, random_inputs};

/// A model under construction; values are known by name.
pub(super) struct Net {
    pub(super) graph: Graph,
    ids: BTreeMap<String, ValueId>,
}

impl Net {
    /// Starts a model with one f32 input `x`.
    pub(super) fn new(opset: i64, x: &[usize]) -> Self {
        let mut net = Self {
            graph: Graph {
                name: "net".to_owned(),
                opset,
                values: Vec::new(),
                nodes: Vec::new(),
                inputs: Vec::new(),
                outputs: Vec::new(),
            },
            ids: BTreeMap::new(),
        };
        net.input("x", DType::F32, x);
        net
    }

    pub(super) fn input(&mut self, name: &str, dtype: DType, dims: &[usize]) {
        let id = self.value(name, dtype, dims);
        self.graph.inputs.push(id);
    }

    fn value(&mut self, name: &str, dtype: DType, dims: &[usize]) -> ValueId {
        let id = ValueId(self.graph.values.len());
        self.graph.values.push(Value {
            name: name.to_owned(),
            dtype,
            shape: Shape(dims.to_vec()),
            data: None,
        });
        self.ids.insert(name.to_owned(), id);
        id
    }

    /// Adds a constant.
    pub(super) fn constant(&mut self, name: &str, tensor: Tensor) -> &mut Self {
        let id = self.value(name, tensor.dtype(), tensor.shape().dims());
        self.graph.values[id.0].data = Some(Arc::new(tensor));
        self
    }

    /// Adds an f32 scalar.
    pub(super) fn scalar(&mut self, name: &str, value: f32) -> &mut Self {
        let data = TensorData::F32(vec![value]);
        self.constant(name, Tensor::new(Shape::default(), data).unwrap())
    }

    /// Adds an f32 constant with plausible elements.
    pub(super) fn weights(&mut self, name: &str, dims: &[usize]) -> &mut Self {
        let shape = Shape(dims.to_vec());
        let seed = name.bytes().map(usize::from).sum::<usize>();
        let data = (0..shape.len()).map(|i| ((i * 37 + seed * 11) % 23) as f32 / 23.0 - 0.4);
        let data = TensorData::F32(data.collect());
        self.constant(name, Tensor::new(shape, data).unwrap())
    }

    /// Adds positive weights.
    pub(super) fn positive(&mut self, name: &str, dims: &[usize]) -> &mut Self {
        let shape = Shape(dims.to_vec());
        let data = (0..shape.len()).map(|i| 0.5 + (i % 7) as f32 / 7.0);
        let data = TensorData::F32(data.collect());
        self.constant(name, Tensor::new(shape, data).unwrap())
    }

    /// Adds integers.
    pub(super) fn ints(&mut self, name: &str, values: &[i64]) -> &mut Self {
        self.constant(name, Tensor::from_i64(values.to_vec()))
    }

    /// Adds a node `output = op(inputs)`; inputs are separated by spaces, `_` leaves one out.
    pub(super) fn node(&mut self, output: &str, op: &str, inputs: &str) -> &mut Self {
        self.with(output, op, inputs, &[])
    }

    /// Adds a node with attributes; several outputs are separated by spaces.
    pub(super) fn with(
        &mut self,
        outputs: &str,
        op: &str,
        inputs: &str,
        attributes: &[(&str, Attribute)],
    ) -> &mut Self {
        let inputs = inputs
            .split_whitespace()
            .map(|name| (name != "_").then(|| self.ids[name]))
            .collect();
        let outputs = outputs
            .split_whitespace()
            .map(|name| Some(self.value(name, DType::F32, &[])))
            .collect();
        self.graph.nodes.push(Node {
            name: String::new(),
            op: op.to_owned(),
            domain: String::new(),
            attributes: attributes
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
            inputs,
            outputs,
        });
        self
    }

    /// Makes a value an output.
    pub(super) fn output(&mut self, name: &str) -> &mut Self {
        self.graph.outputs.push(self.ids[name]);
        self
    }

    /// Loads the model as if it came from a file.
    pub(super) fn load(&self) -> Result<LoadedModel, Problem> {
        let bytes = encode(&self.graph).unwrap();
        decode(&bytes, Path::new("net.onnx"), &LoadOptions::default())
    }
}

/// Loads a model whose last value is `y`, checks what operators are left, and that every value that
/// is left has the numbers it had.
#[track_caller]
pub(super) fn check(net: &mut Net, expected: &[&str]) -> LoadedModel {
    net.output("y");
    let model = net.load().unwrap();
    let ops: Vec<&str> = model
        .graph
        .nodes
        .iter()
        .map(|node| node.op.as_str())
        .collect();
    assert_eq!(ops, expected);
    check_values(&model);
    model
}

/// Compares the canonical graph with the source, value by value.
#[track_caller]
pub(super) fn check_values(model: &LoadedModel) {
    let inputs = random_inputs(&model.graph, 7);
    let expected = Reference::new(model.clone())
        .unwrap()
        .trace(&inputs)
        .unwrap();
    let rewritten = LoadedModel {
        source: model.graph.clone(),
        ..model.clone()
    };
    let actual = Reference::new(rewritten).unwrap().trace(&inputs).unwrap();
    assert_eq!(actual.len(), expected.len());
    for (name, expected) in &expected {
        let actual = &actual[name];
        assert_eq!(actual.shape(), expected.shape(), "{name}");
        assert_eq!(actual.dtype(), expected.dtype(), "{name}");
        let value = model.graph.values.iter().find(|value| value.name == *name);
        assert_eq!(value.unwrap().shape, *expected.shape(), "{name}");
        let distance = distance(actual, expected);
        assert!(distance < 2e-6, "{name} differs by {distance}");
    }
}

/// Returns the relative L2 distance; integers must be equal.
pub(super) fn distance(actual: &Tensor, expected: &Tensor) -> f64 {
    let (Some(a), Some(b)) = (actual.as_f32(), expected.as_f32()) else {
        return if actual == expected {
            0.0
        } else {
            f64::INFINITY
        };
    };
    let square = |v: f64| v * v;
    let difference: f64 = a.iter().zip(b).map(|(a, b)| square(f64::from(a - b))).sum();
    let norm: f64 = b.iter().map(|&b| square(b.into())).sum();
    (difference / norm.max(1e-30)).sqrt()
}
