//! Numbers of half precision: weights that are stored so, and conversions.

use std::collections::BTreeMap;

use super::kernels::{Bench, dense, distance, isas};
use super::node::{NodeTest, f32s, tensor, untuned_program};
use super::run::build_and_run_twice;
use crate::backend::native::isa;
use crate::backend::native::lower::lower;
use crate::backend::native::program::AssembleError;
use crate::backend::native::space::{Spaces, default_mapping};
use crate::backend::native::spec::{Dense, Kind, Operation};
use crate::device::Isa;
use crate::graph::{
    Attribute, DType, Graph, Node, Shape, TensorData, Value, ValueId, canonicalize, f16_to_f32,
    f64_to_f16, partition, widen_halves,
};
use crate::space::Mapping;

fn half(number: f32) -> f32 {
    f16_to_f32(f64_to_f16(number.into()))
}

fn mapping(lanes: usize, oc_vectors: i64, unroll: i64) -> Mapping {
    Mapping::default()
        .with("lanes", lanes as i64)
        .with("oc_vectors", oc_vectors)
        .with("unroll", unroll)
        .with("weights", "f16")
}

#[test]
fn dense_layers_read_weights_of_half_precision() {
    for isa in isas() {
        let mut bench = Bench::new();
        for table in isa::tables(isa) {
            for (shape, r, unroll) in [
                ([1, 37, 10], 1, 4),
                ([3, 64, 48], 1, 1),
                ([1, 1, 1], 1, 2),
                ([2, 17, 4 * table.lanes - 3], 2, 2),
            ] {
                dense(&mut bench, shape, &mapping(table.lanes, r, unroll), half);
            }
        }
        if isa::widest(isa).converts_halves() {
            bench.check(isa);
        } else {
            let refusal = bench.assemble(isa).unwrap_err();
            let AssembleError::Kernel { source, .. } = refusal else {
                panic!("{refusal}");
            };
            assert!(source.to_string().contains("half precision"), "{source}");
        }
    }
}

#[test]
fn weights_are_of_half_precision_untuned_if_nothing_gets_lost() {
    let spaces = Spaces::new(&BTreeMap::new(), 1).unwrap();
    let check = |isa: Isa, k: usize, weight: f32, expected: Option<&str>| {
        let dense = Dense {
            n: 1,
            k,
            m: 128,
            epilogue: Vec::new(),
            weights: vec![weight; k * 128],
            bias: vec![0.1; 128],
            residual: None,
            quantized: None,
        };
        let operation = Operation {
            subgraph: 0,
            name: String::new(),
            kind: Kind::Dense(dense),
            x: ValueId(0),
            y: ValueId(1),
        };
        let mapping = default_mapping(isa, &operation);
        assert_eq!(mapping.word("weights"), expected);
        let space = spaces.of(isa, &operation).unwrap().unwrap();
        assert!(space.is_valid(&mapping).is_ok());
        for (word, rival) in [("f16", "f16"), ("rounded", "f32")] {
            let other = mapping.clone().with("weights", word);
            let is_there = expected == Some(rival);
            assert_eq!(space.is_valid(&other).is_ok(), is_there, "{word}");
        }
    };
    for isa in [Isa::X86V3, Isa::X86V4, Isa::X86V4Vnni] {
        check(isa, 128, 0.5, Some("f16"));
        check(isa, 128, 0.1, Some("f32"));
        check(isa, 64, 0.5, None);
    }
    for isa in [Isa::Portable, Isa::X86V2, Isa::Neon] {
        check(isa, 128, 0.5, None);
    }
}

#[test]
fn conversions_round_alike_on_every_instruction_set() {
    // Ties, subnormal and tiny numbers, the largest and what is beyond, in vectors and what is left.
    let mut numbers = vec![
        1.000_488_3,
        1.001_464_8,
        65519.0,
        65520.0,
        -1e9,
        0.0,
        -0.0,
        -0.1,
    ];
    numbers.extend((20..40).map(|e| 2f32.powi(-e) * 1.5));
    numbers.extend((0..9).map(|i| (i as f32).sqrt() - 1.7));
    assert_eq!(numbers.len() % 16, 5);
    let halves: Vec<u16> = numbers.iter().map(|&v| f64_to_f16(v.into())).collect();
    let dims = [numbers.len()];
    let singles: Vec<f32> = halves.iter().map(|&half| f16_to_f32(half)).collect();
    let halves = tensor(&dims, TensorData::F16(halves));
    NodeTest::new("Cast")
        .attribute("to", Attribute::Int(10))
        .input(f32s(&dims, &numbers))
        .gives_on(&isas(), 0.0, std::slice::from_ref(&halves));
    NodeTest::new("Cast")
        .attribute("to", Attribute::Int(1))
        .input(halves)
        .gives_on(&isas(), 0.0, &[f32s(&dims, &singles)]);
}

/// A graph of f16: a convolution, what is fused with it, a depthwise convolution and a layer that is
/// fully connected, on which the untuned program of the widest instruction set runs.
fn network() -> Graph {
    let mut graph = Graph {
        name: "halves".to_owned(),
        opset: 17,
        values: Vec::new(),
        nodes: Vec::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
    };
    let mut value = |dims: &[usize], is_constant: bool| {
        let id = ValueId(graph.values.len());
        let shape: Shape = dims.to_vec().into();
        let number = |i: usize| ((i * 37 + id.0 * 11) % 23) as f32 / 23.0 - 0.4;
        let bits = (0..shape.len()).map(|i| f64_to_f16(number(i).into()));
        let data = is_constant.then(|| tensor(dims, TensorData::F16(bits.collect())).into());
        graph.values.push(Value {
            name: format!("v{}", id.0),
            dtype: DType::F16,
            shape,
            data,
        });
        id
    };
    let x = value(&[1, 3, 9, 9], false);
    let (w, b, conv) = (
        value(&[16, 3, 3, 3], true),
        value(&[16], true),
        value(&[1, 16, 7, 7], false),
    );
    let (relu, w2, depthwise) = (
        value(&[1, 16, 7, 7], false),
        value(&[16, 1, 3, 3], true),
        value(&[1, 16, 5, 5], false),
    );
    let (sum, pooled, flat) = (
        value(&[1, 16, 5, 5], false),
        value(&[1, 16, 1, 1], false),
        value(&[1, 16], false),
    );
    let (m, y) = (value(&[16, 10], true), value(&[1, 10], false));
    let ints = |name: &str, ints: &[i64]| (name.to_owned(), Attribute::Ints(ints.to_vec()));
    let window = || [ints("kernel_shape", &[3, 3]), ints("strides", &[1, 1])];
    let group = ("group".to_owned(), Attribute::Int(16));
    let mut node = |op: &str, inputs: &[ValueId], output: ValueId, attributes| {
        graph.nodes.push(Node {
            name: String::new(),
            op: op.to_owned(),
            domain: String::new(),
            attributes,
            inputs: inputs.iter().copied().map(Some).collect(),
            outputs: vec![Some(output)],
        });
    };
    node("Conv", &[x, w, b], conv, window().into());
    node("Relu", &[conv], relu, BTreeMap::new());
    let attributes = window().into_iter().chain([group]).collect();
    node("Conv", &[relu, w2], depthwise, attributes);
    node("Add", &[depthwise, depthwise], sum, BTreeMap::new());
    node("GlobalAveragePool", &[sum], pooled, BTreeMap::new());
    node("Flatten", &[pooled], flat, BTreeMap::new());
    node("MatMul", &[flat, m], y, BTreeMap::new());
    graph.inputs.push(x);
    graph.outputs.push(y);
    graph
}

/// Runs the untuned program of a graph of one input and output of f16.
fn run(isa: Isa, graph: &Graph, x: &[u16]) -> (Vec<String>, Vec<f32>) {
    let partition = partition(graph);
    let operations = lower(graph, &partition).unwrap();
    let program = untuned_program(isa, graph, &operations, partition.subgraphs.len());
    let x = x.iter().flat_map(|half| half.to_le_bytes()).collect();
    let [outputs, _] = build_and_run_twice(&program, &[x]);
    let halves = outputs[0].chunks_exact(2);
    let numbers = halves.map(|b| f16_to_f32(u16::from_le_bytes([b[0], b[1]])));
    let names = operations.iter().map(|o| o.name.clone());
    (names.collect(), numbers.collect())
}

#[test]
fn models_of_half_precision_take_the_kernels_of_single_precision() {
    let graph = network();
    let mut wide = graph.clone();
    widen_halves(&mut wide);
    let wide = canonicalize(wide);
    let bits = |i: usize| f64_to_f16(((i * 29 % 31) as f64) / 31.0 - 0.3);
    let x: Vec<u16> = (0..243).map(bits).collect();
    let (loops, expected) = run(Isa::Portable, &graph, &x);
    assert!(!loops.iter().any(|name| name.starts_with("conv 3x3")));
    for isa in isas() {
        let (names, actual) = run(isa, &wide, &x);
        for tuned in ["conv 3x3 3→16 g1", "conv 3x3 16→16 g16", "dense 16→10"] {
            assert!(
                names.iter().any(|name| name == tuned),
                "{tuned} in {names:?}"
            );
        }
        let error = distance(&actual, &expected);
        assert!(error < 2e-3, "{isa}: {error}");
    }
}
