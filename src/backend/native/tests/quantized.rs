//! Chains between 8-bit integers: what is fused against the same nodes one by one.

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::kernels::isas;
use super::node::untuned_program;
use super::run::build_and_run_twice;
use crate::backend::native::lower::lower;
use crate::backend::native::spec::{Kind, Operation};
use crate::device::Isa;
use crate::graph::{
    Attribute, Graph, Node, NodeId, Partition, Subgraph, Tensor, TensorData, Value, ValueId,
    canonicalize, infer, partition,
};

const CHANNELS: usize = 20;

/// A graph of random numbers that ends in u8 values.
struct Model {
    graph: Graph,
    rng: ChaCha8Rng,
    input: Vec<u8>,
}

impl Model {
    /// Starts with `x`, an f32 image.
    fn new(seed: u64) -> (Self, ValueId) {
        let graph = Graph {
            name: "chains".to_owned(),
            opset: 21,
            values: Vec::new(),
            nodes: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        let mut model = Self {
            graph,
            rng: ChaCha8Rng::seed_from_u64(seed),
            input: Vec::new(),
        };
        let dims = [1, CHANNELS, 7, 9];
        let numbers = model.numbers(dims.iter().product(), 3.0);
        model.input = numbers.iter().flat_map(|v| v.to_le_bytes()).collect();
        let data = Tensor::new(dims.to_vec().into(), TensorData::F32(numbers)).unwrap();
        let x = model.value(&data, None);
        model.graph.inputs.push(x);
        (model, x)
    }

    fn numbers(&mut self, n: usize, largest: f32) -> Vec<f32> {
        (0..n)
            .map(|_| self.rng.random_range(-largest..largest))
            .collect()
    }

    fn value(&mut self, like: &Tensor, data: Option<Arc<Tensor>>) -> ValueId {
        let id = ValueId(self.graph.values.len());
        self.graph.values.push(Value {
            name: format!("v{}", id.0),
            dtype: like.dtype(),
            shape: like.shape().clone(),
            data,
        });
        id
    }

    fn constant(&mut self, dims: &[usize], data: TensorData) -> ValueId {
        let tensor = Tensor::new(dims.to_vec().into(), data).unwrap();
        self.value(&tensor.clone(), Some(Arc::new(tensor)))
    }

    fn node(&mut self, op: &str, inputs: &[ValueId], attributes: &[(&str, Attribute)]) -> ValueId {
        self.nodes(op, inputs, attributes, 1)[0]
    }

    /// Adds a node with so many outputs.
    fn nodes(
        &mut self,
        op: &str,
        inputs: &[ValueId],
        attributes: &[(&str, Attribute)],
        n_outputs: usize,
    ) -> Vec<ValueId> {
        let attributes = attributes.iter();
        let mut node = Node {
            name: String::new(),
            op: op.to_owned(),
            domain: String::new(),
            attributes: attributes
                .map(|(k, v)| ((*k).to_owned(), v.clone()))
                .collect(),
            inputs: inputs.iter().copied().map(Some).collect(),
            outputs: vec![Some(ValueId(0)); n_outputs],
        };
        let facts = infer(&node, self.graph.opset, &self.graph.operands(&node));
        let mut ids = Vec::new();
        for fact in facts.unwrap().unwrap().into_iter().take(n_outputs) {
            let id = ValueId(self.graph.values.len());
            self.graph.values.push(Value {
                name: format!("v{}", id.0),
                dtype: fact.dtype,
                shape: fact.shape,
                data: None,
            });
            ids.push(id);
        }
        node.outputs = ids.iter().copied().map(Some).collect();
        self.graph.nodes.push(node);
        ids
    }

    /// Rounds to u8 by a scale of its own; returns the u8 and its number.
    fn round(&mut self, x: ValueId, largest: f32) -> [ValueId; 2] {
        let scale = largest * self.rng.random_range(0.9..1.1) / 128.0;
        let scale = self.constant(&[], TensorData::F32(vec![scale]));
        let zero = self.rng.random_range(100..156u8);
        let zero = self.constant(&[], TensorData::U8(vec![zero]));
        let byte = self.node("QuantizeLinear", &[x, scale, zero], &[]);
        [
            byte,
            self.node("DequantizeLinear", &[byte, scale, zero], &[]),
        ]
    }

    /// Rounds to 16 bits around a zero point of its own; returns the integer and its number.
    fn round_wide(&mut self, x: ValueId, largest: f32, zero: TensorData) -> [ValueId; 2] {
        let scale = self.constant(&[], TensorData::F32(vec![largest / 32768.0]));
        let zero = self.constant(&[], zero);
        let integer = self.node("QuantizeLinear", &[x, scale, zero], &[]);
        [
            integer,
            self.node("DequantizeLinear", &[integer, scale, zero], &[]),
        ]
    }

    /// A convolution of integers, by channel or of all of them.
    fn conv(&mut self, x: ValueId, group: usize, kernel: usize, out: usize) -> ValueId {
        let dims = [out, CHANNELS / group, kernel, kernel];
        let n: usize = dims.iter().product();
        let weights = (0..n)
            .map(|_| self.rng.random_range(-127..=127i8))
            .collect();
        let weights = self.constant(&dims, TensorData::I8(weights));
        let scales = (0..out).map(|_| self.rng.random_range(0.5..1.5) / (n / out) as f32 / 60.0);
        let scales = TensorData::F32(scales.collect());
        let scales = self.constant(&[out], scales);
        let axis = [("axis", Attribute::Int(0))];
        let real = self.node("DequantizeLinear", &[weights, scales], &axis);
        let bias = TensorData::F32(self.numbers(out, 0.5));
        let bias = self.constant(&[out], bias);
        let around = (kernel / 2) as i64;
        let attributes = [
            ("group", Attribute::Int(group as i64)),
            ("pads", Attribute::Ints(vec![around; 4])),
        ];
        self.node("Conv", &[x, real, bias], &attributes)
    }

    /// Every kind of chain, each from the same image to an output.
    fn chains(&mut self, x: ValueId) {
        let [_, a] = self.round(x, 3.0);
        // A layer, then a function of its result.
        let b = self.conv(a, 1, 3, CHANNELS);
        let [_, b] = self.round(b, 2.0);
        let gate = self.node("HardSigmoid", &[b], &[]);
        let [_, gate] = self.round(gate, 1.0);
        let b = self.node("Mul", &[b, gate], &[]);
        let [b, _] = self.round(b, 2.0);
        // A layer and a residual.
        let c = self.conv(a, 1, 1, CHANNELS);
        let [_, c] = self.round(c, 2.0);
        let c = self.node("Add", &[a, c], &[]);
        let c = self.node("Relu", &[c], &[]);
        let [c, _] = self.round(c, 4.0);
        // By channel, then scaled by what is squeezed from it.
        let d = self.conv(a, CHANNELS, 3, CHANNELS);
        let [_, d] = self.round(d, 2.0);
        let means = self.node("GlobalAveragePool", &[d], &[]);
        let [_, means] = self.round(means, 1.0);
        let excited = self.conv(means, 1, 1, CHANNELS);
        let [_, excited] = self.round(excited, 1.0);
        let excited = self.node("Sigmoid", &[excited], &[]);
        let [means, excited] = self.round(excited, 1.0);
        let e = self.node("Mul", &[d, excited], &[]);
        let [e, real] = self.round(e, 2.0);
        // Pools and moves.
        let window = [
            ("kernel_shape", Attribute::Ints(vec![3, 3])),
            ("pads", Attribute::Ints(vec![1; 4])),
            ("strides", Attribute::Ints(vec![2, 2])),
        ];
        let f = self.node("AveragePool", &[real], &window);
        let [f, _] = self.round(f, 2.0);
        let g = self.node("Concat", &[f, f], &[("axis", Attribute::Int(1))]);
        let maximum = self.node("MaxPool", &[real], &window);
        let [maximum, _] = self.round(maximum, 2.0);
        self.graph.outputs.extend([b, c, e, f, g, maximum, means]);
    }

    fn run(
        &self,
        isa: Isa,
        graph: &Graph,
        partition: &Partition,
    ) -> (Vec<Operation>, Vec<Vec<u8>>) {
        let operations = lower(graph, partition).unwrap();
        let program = untuned_program(isa, graph, &operations, partition.subgraphs.len());
        let [first, second] = build_and_run_twice(&program, std::slice::from_ref(&self.input));
        assert_eq!(first, second, "a run leaves the borders as they are");
        (operations, first)
    }
}

/// Each node in a subgraph of its own.
fn single(graph: &Graph) -> Partition {
    let subgraph = |idx: usize| {
        let node = graph.node(NodeId(idx));
        let is_open = |id: &ValueId| graph.constant(*id).is_none();
        Subgraph {
            anchor: NodeId(idx),
            prologue: Vec::new(),
            epilogue: Vec::new(),
            inputs: node
                .inputs
                .iter()
                .flatten()
                .copied()
                .filter(is_open)
                .collect(),
            outputs: node.outputs.iter().flatten().copied().collect(),
        }
    };
    let subgraphs = (0..graph.nodes.len()).map(subgraph).collect();
    Partition { subgraphs }
}

#[test]
fn chains_of_integers_give_what_their_nodes_give_one_by_one() {
    let widest = isas().last().copied().unwrap_or(Isa::Portable);
    for (seed, isa) in [Isa::Portable, widest].into_iter().enumerate() {
        let (mut model, x) = Model::new(seed as u64);
        model.chains(x);
        let (_, expected) = model.run(Isa::Portable, &model.graph, &single(&model.graph));
        let graph = canonicalize(model.graph.clone());
        let partition = partition(&graph);
        let (operations, actual) = model.run(isa, &graph, &partition);
        let is_f32 = |id: ValueId| graph.value(id).dtype == crate::graph::DType::F32;
        let is_plain = |o: &&Operation| {
            matches!(o.kind, Kind::Loops(_)) || (is_f32(o.x) && o.x != graph.inputs[0])
        };
        let plain: Vec<&str> = operations
            .iter()
            .filter(is_plain)
            .map(|o| o.name.as_str())
            .collect();
        assert!(plain.is_empty(), "not of integers: {plain:?}");
        for (idx, (actual, expected)) in actual.iter().zip(&expected).enumerate() {
            let steps = actual.iter().zip(expected).map(|(a, b)| a.abs_diff(*b));
            let off = steps.clone().filter(|&step| step > 0).count();
            assert!(steps.max() <= Some(1), "output {idx} on {isa}");
            assert!(
                off * 50 <= actual.len() + 50,
                "{off} of {} of output {idx}",
                actual.len()
            );
        }
    }
}

#[test]
fn what_must_be_dense_is_converted_while_it_is_small() {
    let (mut model, x) = Model::new(3);
    let [_, a] = model.round(x, 3.0);
    let b = model.conv(a, 1, 3, CHANNELS);
    let [_, b] = model.round(b, 2.0);
    let y = model.node("Softmax", &[b], &[("axis", Attribute::Int(1))]);
    model.graph.outputs.push(y);
    let graph = canonicalize(model.graph.clone());
    let partition = partition(&graph);
    let operations = lower(&graph, &partition).unwrap();
    let program = untuned_program(Isa::X86V3, &graph, &operations, partition.subgraphs.len());
    let names: Vec<&str> = program.steps.iter().map(|s| s.name.as_str()).collect();
    let convolution = names.iter().position(|name| name.starts_with("conv 3x3"));
    let after = &names[convolution.unwrap() + 1..];
    assert_eq!(after, ["nchw8c→nchw 1x20x7x9", "conversion", "softmax"]);
}

/// A layer as onnxruntime's `quantize_dynamic` writes it, of rows of the image: the scale and the
/// zero point of the input follow from its numbers.
#[test]
fn dynamically_quantised_products_have_the_kernel_of_integers() {
    const N: usize = 48;
    const K: usize = 24;
    for (seed, isa) in isas().into_iter().enumerate() {
        let (mut model, x) = Model::new(seed as u64);
        model.input.truncate(7 * K * 5 * 4);
        model.graph.values[x.0].shape = vec![5, 7, K].into();
        let quantised = model.nodes("DynamicQuantizeLinear", &[x], &[], 3);
        let [bytes, scale, zero] = quantised[..] else {
            panic!("three outputs")
        };
        let w: Vec<i8> = (0..K * N).map(|_| model.rng.random()).collect();
        let weights = model.constant(&[K, N], TensorData::I8(w.clone()));
        let around = model.constant(&[], TensorData::I8(vec![0]));
        let step = model.constant(&[], TensorData::F32(vec![0.01]));
        let bias = model.numbers(N, 1.0);
        let added = model.constant(&[N], TensorData::F32(bias.clone()));
        let sums = model.node("MatMulInteger", &[bytes, weights, zero, around], &[]);
        let real = model.node("Cast", &[sums], &[("to", Attribute::Int(1))]);
        let factor = model.node("Mul", &[scale, step], &[]);
        let scaled = model.node("Mul", &[real, factor], &[]);
        let y = model.node("Add", &[scaled, added], &[]);
        let y = model.node("Tanh", &[y], &[]);
        model.graph.outputs.extend([sums, y]);
        let graph = canonicalize(model.graph.clone());
        let (operations, actual) = model.run(isa, &graph, &partition(&graph));
        let is_tuned = |o: &Operation| matches!(&o.kind, Kind::MatMul(m) if m.quantized.is_some());
        assert!(operations.iter().any(is_tuned));
        // Numbers of i32 have no vectors; what follows has.
        let names: Vec<&str> = operations.iter().map(|o| o.name.as_str()).collect();
        assert_eq!(names[names.len() - 2..], ["cast", "mul+add+tanh"]);

        let numbers = super::kernels::f32s(&model.input);
        let low = numbers.iter().copied().fold(0.0, f32::min);
        let high = numbers.iter().copied().fold(0.0, f32::max);
        let scale = (high - low) / 255.0;
        let zero = (-low / scale).round_ties_even();
        let bytes = numbers.iter().map(|v| (v / scale).round_ties_even() + zero);
        let bytes: Vec<i32> = bytes.map(|v| v.clamp(0.0, 255.0) as i32).collect();
        let found = super::kernels::f32s(&actual[1]);
        for (at, found) in found.into_iter().enumerate() {
            let (row, column) = (at / N, at % N);
            let factors = (0..K).map(|k| (bytes[row * K + k], w[k * N + column]));
            let sum: i32 = factors.map(|(x, w)| (x - zero as i32) * i32::from(w)).sum();
            let bytes = &actual[0][at * 4..at * 4 + 4];
            assert_eq!(bytes, sum.to_le_bytes(), "{isa} {row} {column}");
            let expected = sum as f32 * scale * 0.01 + bias[column];
            let expected = expected.tanh();
            assert!((found - expected).abs() < 1e-4, "{found} {expected}");
        }
    }
}

/// The integers of 16 bits that a convolution over `x` and `Relu` give, by their definition. The
/// constants of the convolution are the last four values before `conv`, which pads around an image.
fn wide_layer(graph: &Graph, conv: ValueId, x: &[f64], group: usize, zero: f64) -> Vec<f64> {
    let constant = |before: usize| graph.constant(ValueId(conv.0 - before)).unwrap();
    let TensorData::I8(weights) = constant(4).data() else {
        panic!("weights are i8");
    };
    let (scales, bias) = (constant(3).as_f32().unwrap(), constant(1).as_f32().unwrap());
    let &[out, per_group, kernel, _] = constant(4).shape().dims() else {
        panic!("weights have four axes");
    };
    let &[_, _, h, w] = graph.value(conv).shape.dims() else {
        panic!("images have four axes");
    };
    let around = kernel / 2;
    let mut integers = Vec::new();
    for (o, y, x0) in
        (0..out).flat_map(|o| (0..h).flat_map(move |y| (0..w).map(move |x| (o, y, x))))
    {
        let mut sum = f64::from(bias[o]);
        for (i, ky, kx) in (0..per_group)
            .flat_map(|i| (0..kernel).flat_map(move |y| (0..kernel).map(move |x| (i, y, x))))
        {
            let (sy, sx) = (
                (y + ky).wrapping_sub(around),
                (x0 + kx).wrapping_sub(around),
            );
            if sy < h && sx < w {
                let channel = o / (out / group) * per_group + i;
                let weight = weights[((o * per_group + i) * kernel + ky) * kernel + kx];
                sum += x[(channel * h + sy) * w + sx] * f64::from(weight) * f64::from(scales[o]);
            }
        }
        let rounded = (sum.max(0.0) * 32768.0 / 4.0).round_ties_even();
        integers.push((rounded + zero).clamp(-32768.0, 32767.0));
    }
    integers
}

#[test]
fn layers_between_integers_of_16_bits_follow_their_definition() {
    for isa in isas() {
        let (mut model, x) = Model::new(11);
        let middle = TensorData::U16(vec![30_000]);
        let [q, a] = model.round_wide(x, 3.0, middle);
        model.graph.outputs.push(q);
        let mut layers = Vec::new();
        for (group, kernel) in [(1, 3), (CHANNELS, 3), (1, 1)] {
            let conv = model.conv(a, group, kernel, CHANNELS);
            let real = model.node("Relu", &[conv], &[]);
            let [q, _] = model.round_wide(real, 4.0, TensorData::I16(vec![-20_000]));
            model.graph.outputs.push(q);
            layers.push((conv, group));
        }
        let graph = canonicalize(model.graph.clone());
        let (operations, outputs) = model.run(isa, &graph, &partition(&graph));
        let tuned = operations.iter();
        let tuned = tuned.filter(|o| matches!(o.kind, Kind::Conv(_) | Kind::Depthwise(_)));
        assert_eq!(tuned.count(), layers.len());
        let given = model.graph.constant(ValueId(1)).unwrap().as_f32().unwrap()[0];
        let numbers = model.input.chunks_exact(4);
        let numbers = numbers.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        let integers = outputs[0].chunks_exact(2);
        let integers = integers.map(|b| u16::from_le_bytes([b[0], b[1]]));
        let mut x = Vec::new();
        for (number, integer) in numbers.zip(integers) {
            let expected = ((number / given).round_ties_even() + 30_000.0).clamp(0.0, 65535.0);
            assert_eq!(f32::from(integer).to_bits(), expected.to_bits());
            x.push((f64::from(integer) - 30_000.0) * f64::from(given));
        }
        for ((conv, group), output) in layers.into_iter().zip(&outputs[1..]) {
            let expected = wide_layer(&model.graph, conv, &x, group, -20_000.0);
            let actual = output.chunks_exact(2);
            let actual = actual.map(|b| f64::from(i16::from_le_bytes([b[0], b[1]])));
            let apart: Vec<f64> = actual.zip(expected).map(|(a, b)| (a - b).abs()).collect();
            assert!(apart.iter().all(|&apart| apart <= 1.0), "{isa}: {apart:?}");
            let n_off = apart.iter().filter(|&&apart| apart > 0.0).count();
            assert!(n_off * 10 <= apart.len(), "{isa}: {n_off}");
        }
    }
}
