//! Well-formed models of any wiring are rewritten once and for all: bytes choose operators and what
//! they read.
#![no_main]

use std::collections::BTreeMap;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use metainfer::graph::{
    Attribute, DType, Graph, Node, Shape, Tensor, TensorData, Value, ValueId,
};
use metainfer::onnx::{LoadOptions, encode, survives};

/// Operators that rewriting knows, and how many inputs they read.
const OPERATORS: [(&str, usize); 20] = [
    ("Add", 2),
    ("Sub", 2),
    ("Mul", 2),
    ("Div", 2),
    ("Pow", 2),
    ("Relu", 1),
    ("Sigmoid", 1),
    ("HardSigmoid", 1),
    ("Erf", 1),
    ("Tanh", 1),
    ("Sqrt", 1),
    ("Clip", 1),
    ("Identity", 1),
    ("Transpose", 1),
    ("ReduceMean", 1),
    ("Softmax", 1),
    ("MatMul", 2),
    ("Conv", 2),
    ("BatchNormalization", 5),
    ("Concat", 2),
];

/// Shapes of the constants.
const SHAPES: [&[usize]; 5] = [&[], &[4], &[4, 4, 1, 1], &[4, 1, 1], &[1, 4, 4, 4]];

fuzz_target!(|bytes: &[u8]| {
    let graph = graph(bytes);
    // A model of which a node does not fit its inputs is not written or not read: both are fine.
    if let Ok(bytes) = encode(&graph)
        && let Err(fault) = survives(&bytes, &LoadOptions::default())
    {
        panic!("{fault}");
    }
});

/// Builds a graph: the first byte of a step chooses the operator, the others what it reads.
fn graph(mut bytes: &[u8]) -> Graph {
    let mut graph = Graph {
        name: "fuzzed".to_owned(),
        opset: 17,
        values: vec![value("x", &[1, 4, 4, 4], None)],
        nodes: Vec::new(),
        inputs: vec![ValueId(0)],
        outputs: Vec::new(),
    };
    for (idx, dims) in SHAPES.iter().enumerate() {
        let shape = Shape(dims.to_vec());
        let data = (0..shape.len()).map(|i| i as f32 / 8.0 + idx as f32);
        let data = TensorData::F32(data.collect());
        let tensor = Tensor::new(shape, data).expect("as many elements as the shape has");
        let name = format!("c{idx}");
        graph.values.push(value(&name, dims, Some(tensor)));
    }
    while let Some((&choice, rest)) = bytes.split_first() {
        let (op, n_inputs) = OPERATORS[usize::from(choice) % OPERATORS.len()];
        let Some((inputs, rest)) = rest.split_at_checked(n_inputs) else {
            break;
        };
        bytes = rest;
        let n_values = graph.values.len();
        let input = |&byte: &u8| Some(ValueId(usize::from(byte) % n_values));
        let mut attributes = BTreeMap::new();
        if op == "Concat" {
            attributes.insert("axis".to_owned(), Attribute::Int((choice / 64).into()));
        }
        graph.nodes.push(Node {
            name: String::new(),
            op: op.to_owned(),
            domain: String::new(),
            attributes,
            inputs: inputs.iter().map(input).collect(),
            outputs: vec![Some(ValueId(n_values))],
        });
        graph.values.push(value(&format!("v{n_values}"), &[], None));
    }
    graph.outputs.push(ValueId(graph.values.len() - 1));
    graph
}

fn value(name: &str, dims: &[usize], data: Option<Tensor>) -> Value {
    Value {
        name: name.to_owned(),
        dtype: DType::F32,
        shape: Shape(dims.to_vec()),
        data: data.map(Arc::new),
    }
}
