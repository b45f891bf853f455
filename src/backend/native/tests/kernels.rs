//! Kernels against a plain interpreter, over edge shapes, on every instruction set that runs here.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::run;
use crate::backend::native::build::{Builder, Toolchain};
use crate::backend::native::isa;
use crate::backend::native::kernels::{KernelCtx, Share};
use crate::backend::native::layout::dims4;
use crate::backend::native::program::{
    AssembleError, Choice, Program, Segments, assemble_for, neighbours, propose,
};
use crate::backend::native::render::Renderer;
use crate::backend::native::spec::{
    Conv, Dense, Epilogue, Kind, Map, MapStep, Operand, Operation, Pool, literal,
};
use crate::device::Isa;
use crate::graph::{DType, Graph, Shape, Value, ValueId};
use crate::space::{Candidate, Mapping};

/// A graph of independent operations, each with inputs and an output of its own.
pub(super) struct Bench {
    graph: Graph,
    operations: Vec<Operation>,
    candidates: Vec<Candidate>,
    pub(super) expected: Vec<(ValueId, Vec<f32>)>,
    data: BTreeMap<ValueId, Vec<f32>>,
    rng: ChaCha8Rng,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self {
            graph: Graph {
                name: "bench".to_owned(),
                opset: 17,
                values: Vec::new(),
                nodes: Vec::new(),
                inputs: Vec::new(),
                outputs: Vec::new(),
            },
            operations: Vec::new(),
            candidates: Vec::new(),
            expected: Vec::new(),
            data: BTreeMap::new(),
            rng: ChaCha8Rng::seed_from_u64(7),
        }
    }

    pub(super) fn numbers(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.rng.random_range(-1.0..1.0)).collect()
    }

    pub(super) fn value(&mut self, shape: impl Into<Shape>) -> ValueId {
        let id = ValueId(self.graph.values.len());
        let shape = shape.into();
        self.graph.values.push(Value {
            name: format!("v{}", id.0),
            dtype: DType::F32,
            shape,
            data: None,
        });
        id
    }

    pub(super) fn input(&mut self, shape: impl Into<Shape>) -> ValueId {
        let id = self.value(shape);
        let n = self.graph.value(id).shape.len();
        let data = self.numbers(n);
        self.data.insert(id, data);
        self.graph.inputs.push(id);
        id
    }

    /// Makes a value an output of the model.
    pub(super) fn publish(&mut self, id: ValueId) {
        self.graph.outputs.push(id);
    }

    /// Returns the numbers of a value that is known.
    pub(super) fn data(&self, id: ValueId) -> &[f32] {
        &self.data[&id]
    }

    /// Makes a value an output of the model that must be some numbers.
    pub(super) fn output(&mut self, id: ValueId, expected: Vec<f32>) {
        self.graph.outputs.push(id);
        self.expected.push((id, expected));
    }

    pub(super) fn push(&mut self, kind: Kind, x: ValueId, y: ValueId, mapping: Mapping) {
        let subgraph = self.candidates.len();
        self.candidates.push(Candidate {
            mapping,
            ..Candidate::default()
        });
        self.operations.push(Operation {
            subgraph,
            name: "test".to_owned(),
            kind,
            x,
            y,
        });
    }

    /// Adds a convolution with random weights, and what it must give.
    pub(super) fn conv(&mut self, conv: Conv, mapping: &Mapping) {
        let [ic, ih, iw] = conv.input;
        let conv = self.weighted(conv);
        let x = self.input([conv.n, ic, ih, iw]);
        self.conv_of(x, conv, mapping);
    }

    /// Gives a convolution random weights.
    pub(super) fn weighted(&mut self, mut conv: Conv) -> Conv {
        let per_group = conv.input[0] / conv.groups;
        let n = conv.output[0] * per_group * conv.kernel[0] * conv.kernel[1];
        (conv.weights, conv.bias) = (self.numbers(n), self.numbers(conv.output[0]));
        conv
    }

    /// Adds a convolution of a value that is there, and returns its results.
    pub(super) fn conv_of(&mut self, x: ValueId, mut conv: Conv, mapping: &Mapping) -> ValueId {
        let ic = conv.input[0];
        let [oc, oh, ow] = conv.output;
        let y = self.value([conv.n, oc, oh, ow]);
        conv.residual = conv.residual.map(|_| self.input([conv.n, oc, oh, ow]));
        conv.scale = conv.scale.map(|_| self.input([conv.n, ic, 1, 1]));
        conv.pooled = conv.pooled.map(|_| self.value([conv.n, oc, 1, 1]));
        let results = interpret(&conv, &self.data, x);
        if let Some(pooled) = conv.pooled {
            let plane = oh * ow;
            let means = results
                .chunks(plane)
                .map(|c| c.iter().sum::<f32>() / plane as f32);
            let means = means.collect();
            self.output(pooled, means);
        }
        if conv.stored {
            self.data.insert(y, results.clone());
            self.output(y, results);
        }
        let kind = if conv.is_depthwise() && conv.scale.is_none() {
            Kind::Depthwise(conv)
        } else {
            Kind::Conv(conv)
        };
        self.push(kind, x, y, mapping.clone());
        y
    }

    pub(super) fn inputs(&self) -> Vec<Vec<u8>> {
        let inputs = self.graph.inputs.iter();
        inputs.map(|id| le_bytes(&self.data[id])).collect()
    }

    pub(super) fn assemble(&self, isa: Isa) -> Result<Program, AssembleError> {
        self.assemble_shared(isa, Share::Whole)
    }

    pub(super) fn assemble_shared(&self, isa: Isa, share: Share) -> Result<Program, AssembleError> {
        self.assemble_segmented(isa, share, &Segments::default())
    }

    pub(super) fn assemble_segmented(
        &self,
        isa: Isa,
        share: Share,
        segments: &Segments,
    ) -> Result<Program, AssembleError> {
        self.assemble_with(1, isa, share, segments)
    }

    /// Assembles the program for some threads, which divide what it pays to divide.
    pub(super) fn assemble_for(&self, threads: usize, isa: Isa) -> Program {
        let whole = Segments::default();
        self.assemble_with(threads, isa, Share::Whole, &whole)
            .unwrap()
    }

    fn assemble_with(
        &self,
        threads: usize,
        isa: Isa,
        share: Share,
        segments: &Segments,
    ) -> Result<Program, AssembleError> {
        let renderer = Renderer::new(&BTreeMap::new()).unwrap();
        let ctx = KernelCtx {
            renderer: &renderer,
            isa,
            share,
        };
        let choice = Choice(&self.candidates);
        let (graph, operations) = (&self.graph, &self.operations);
        assemble_for(threads, ctx, graph, operations, &choice, segments)
    }

    /// Returns the segments that are proposed untuned, see [`propose`].
    pub(super) fn proposed(&self, isa: Isa, bytes: usize, rows: usize) -> Segments {
        let choice = Choice(&self.candidates);
        propose(&self.graph, isa, &self.operations, &choice, bytes, rows).unwrap()
    }

    /// Returns the neighbours of segments, see [`neighbours`].
    pub(super) fn neighbours(&self, isa: Isa, segments: &Segments) -> Vec<Segments> {
        let choice = Choice(&self.candidates);
        neighbours(&self.graph, isa, &self.operations, &choice, segments).unwrap()
    }

    /// Builds and runs the program twice, and compares every output both times: the second run
    /// finds the arena as the first left it.
    pub(super) fn check(&self, isa: Isa) {
        self.check_program(isa, &self.assemble(isa).unwrap());
    }

    /// Like [`Bench::check`] for a program that was made of these operations.
    pub(super) fn check_program(&self, isa: Isa, program: &Program) {
        let runs = run::build_and_run_twice(program, &self.inputs());
        for outputs in runs {
            for ((value, expected), actual) in self.expected.iter().zip(outputs) {
                let index = self.operations.iter().position(|o| o.y == *value);
                let what =
                    index.map(|i| (&self.candidates[i].mapping, self.operations[i].name.clone()));
                let error = distance(&f32s(&actual), expected);
                assert!(error < 1e-5, "{isa}: error {error} in {what:?}");
            }
        }
    }
}

fn le_bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|v| v.to_le_bytes()).collect()
}

pub(super) fn f32s(bytes: &[u8]) -> Vec<f32> {
    let numbers = bytes.chunks_exact(4);
    numbers
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect()
}

pub(super) fn distance(actual: &[f32], expected: &[f32]) -> f64 {
    let square = |v: f32| f64::from(v) * f64::from(v);
    let difference: f64 = actual
        .iter()
        .zip(expected)
        .map(|(a, e)| square(a - e))
        .sum();
    let norm: f64 = expected.iter().map(|&e| square(e)).sum();
    if difference.is_nan() {
        f64::INFINITY
    } else {
        (difference / norm.max(1e-30)).sqrt()
    }
}

/// A convolution by its definition.
fn interpret(conv: &Conv, data: &BTreeMap<ValueId, Vec<f32>>, x: ValueId) -> Vec<f32> {
    let (x, [ic, ih, iw], [oc, oh, ow]) = (&data[&x], conv.input, conv.output);
    let [kh, kw] = conv.kernel;
    let (gi, go) = (ic / conv.groups, oc / conv.groups);
    let mut y = Vec::new();
    for n in 0..conv.n {
        for o in 0..oc {
            for (py, px) in (0..oh).flat_map(|py| (0..ow).map(move |px| (py, px))) {
                let mut sum = f64::from(conv.bias[o]);
                for (i, ky, kx) in (0..gi)
                    .flat_map(|i| (0..kh).flat_map(move |ky| (0..kw).map(move |kx| (i, ky, kx))))
                {
                    let sy =
                        (py * conv.stride[0] + ky * conv.dilation[0]).wrapping_sub(conv.pad[0]);
                    let sx =
                        (px * conv.stride[1] + kx * conv.dilation[1]).wrapping_sub(conv.pad[1]);
                    if sy < ih && sx < iw {
                        let channel = o / go * gi + i;
                        let factor = conv.scale.map_or(1.0, |s| data[&s][n * ic + channel]);
                        let value = x[((n * ic + channel) * ih + sy) * iw + sx] * factor;
                        let weight = conv.weights[((o * gi + i) * kh + ky) * kw + kx];
                        sum += f64::from(value) * f64::from(weight);
                    }
                }
                let residual = conv.residual.map(|r| data[&r][y.len()]);
                y.push(
                    conv.epilogue
                        .iter()
                        .fold(sum as f32, |v, e| apply(e, v, residual)),
                );
            }
        }
    }
    y
}

pub(super) fn apply(step: &Epilogue, v: f32, residual: Option<f32>) -> f32 {
    let number = |text: &str| text.trim_end_matches("f32").parse::<f32>().unwrap();
    match step {
        Epilogue::Relu => v.max(0.0),
        Epilogue::LeakyRelu { alpha } => {
            if v < 0.0 {
                v * number(alpha)
            } else {
                v
            }
        }
        Epilogue::Clip { low, high } => v.clamp(number(low), number(high)),
        Epilogue::HardSigmoid { alpha, beta } => (v * number(alpha) + number(beta)).clamp(0.0, 1.0),
        Epilogue::HardSwish => v * (v / 6.0 + 0.5).clamp(0.0, 1.0),
        Epilogue::Sigmoid => 1.0 / (1.0 + (-v).exp()),
        Epilogue::Silu => v / (1.0 + (-v).exp()),
        Epilogue::Tanh => v.tanh(),
        Epilogue::Exp => v.exp(),
        Epilogue::Neg => -v,
        Epilogue::GeluErf => {
            // erf by its series; converges well for the arguments of these tests.
            let x = f64::from(v) / std::f64::consts::SQRT_2;
            let mut term = x;
            let mut sum = x;
            for n in 1..60 {
                term *= -x * x / f64::from(n);
                sum += term / f64::from(2 * n + 1);
            }
            (f64::from(v) * 0.5 * (1.0 + sum * std::f64::consts::FRAC_2_SQRT_PI)) as f32
        }
        Epilogue::GeluTanh => 0.5 * v * (1.0 + (0.797_884_6 * (v + 0.044_715 * v * v * v)).tanh()),
        Epilogue::Elu { alpha } => {
            if v < 0.0 {
                number(alpha) * v.exp_m1()
            } else {
                v
            }
        }
        Epilogue::AddConst { value } => v + number(value),
        Epilogue::MulConst { value } => v * number(value),
        Epilogue::RsubConst { value } => number(value) - v,
        Epilogue::DivConst { value } => v / number(value),
        Epilogue::RdivConst { value } => number(value) / v,
        Epilogue::AddTensor => v + residual.unwrap(),
        Epilogue::MulTensor => v * residual.unwrap(),
        Epilogue::Requantize {
            per_step,
            low,
            high,
            step,
        } => {
            (v * number(per_step))
                .round_ties_even()
                .clamp(number(low), number(high))
                * number(step)
        }
    }
}

pub(super) fn base(input: [usize; 3], oc: usize, kernel: usize, stride: usize, pad: usize) -> Conv {
    let out = |n: usize| (n + 2 * pad - kernel) / stride + 1;
    Conv {
        n: 1,
        groups: 1,
        input,
        output: [oc, out(input[1]), out(input[2])],
        kernel: [kernel; 2],
        stride: [stride; 2],
        dilation: [1; 2],
        pad: [pad; 2],
        epilogue: vec![Epilogue::Relu],
        weights: Vec::new(),
        bias: Vec::new(),
        residual: None,
        scale: None,
        pooled: None,
        stored: true,
        quantized: None,
    }
}

/// Placeholder for "has one"; [`Bench::conv`] makes the value.
pub(super) const SOME: Option<ValueId> = Some(ValueId(0));

fn cases() -> Vec<Conv> {
    let same = |c: Conv| c;
    vec![
        same(base([3, 13, 17], 16, 3, 2, 1)),
        base([16, 7, 7], 32, 1, 1, 0),
        base([24, 5, 9], 40, 1, 1, 0),
        base([19, 6, 11], 24, 3, 1, 1),
        Conv {
            dilation: [2, 2],
            pad: [2, 2],
            ..base([16, 9, 9], 16, 3, 1, 1)
        },
        Conv {
            kernel: [1, 5],
            pad: [0, 2],
            output: [8, 4, 12],
            ..base([8, 4, 12], 8, 3, 1, 1)
        },
        Conv {
            n: 2,
            residual: SOME,
            epilogue: vec![Epilogue::AddTensor, Epilogue::Relu],
            ..base([32, 6, 6], 32, 3, 1, 1)
        },
        Conv {
            scale: SOME,
            epilogue: vec![Epilogue::HardSwish],
            ..base([32, 4, 10], 48, 1, 1, 0)
        },
        Conv {
            pooled: SOME,
            epilogue: vec![Epilogue::HardSwish],
            ..base([16, 8, 8], 32, 1, 1, 0)
        },
        Conv {
            pooled: SOME,
            stored: false,
            ..base([16, 8, 7], 64, 3, 1, 1)
        },
        Conv {
            groups: 4,
            ..base([64, 7, 7], 64, 3, 1, 1)
        },
        Conv {
            groups: 16,
            ..base([128, 4, 4], 128, 3, 1, 1)
        },
        Conv {
            groups: 16,
            ..base([16, 12, 12], 16, 3, 1, 1)
        },
        Conv {
            groups: 40,
            n: 2,
            pooled: SOME,
            ..base([40, 9, 7], 40, 5, 2, 2)
        },
        Conv {
            groups: 24,
            residual: SOME,
            epilogue: vec![Epilogue::Silu, Epilogue::AddTensor],
            ..base([24, 7, 7], 24, 3, 1, 1)
        },
        Conv {
            groups: 32,
            stored: false,
            pooled: SOME,
            ..base([32, 6, 6], 32, 3, 1, 1)
        },
    ]
}

fn random_mapping(rng: &mut ChaCha8Rng, isa: Isa) -> Mapping {
    fn pick<T: Clone>(rng: &mut ChaCha8Rng, items: &[T]) -> T {
        items[rng.random_range(0..items.len())].clone()
    }
    let lanes: Vec<i64> = isa::tables(isa).iter().map(|t| t.lanes as i64).collect();
    let layouts = ["nchw", "nhwc", "nchw8c", "nchw16c", "nchw32c"];
    Mapping::default()
        .with("layout_in", pick(rng, &layouts))
        .with("layout_out", pick(rng, &layouts[1..]))
        .with("lanes", pick(rng, &lanes))
        .with("oc_vectors", pick(rng, &[1i64, 2, 3, 4]))
        .with("tile_w", pick(rng, &[1i64, 2, 3, 4, 5, 7, 9, 14]))
        .with("tile_h", pick(rng, &[1i64, 1, 2, 3]))
        .with("ic_block", pick(rng, &[0i64, 0, 8, 16]))
        .with("unroll", pick(rng, &[1i64, 2, 3, 4, 8]))
        .with("order", pick(rng, &["oc", "px", "row"]))
        .with("taps", pick(rng, &["loop", "kw", "all"]))
        .with("padding", pick(rng, &["border", "edge"]))
        .with("scale", pick(rng, &["weights", "input"]))
        .with("hold", pick(rng, &["weights", "inputs"]))
}

pub(super) fn isas() -> Vec<Isa> {
    let host = crate::device::probe::host().isa;
    Isa::ALL.into_iter().filter(|&isa| host.runs(isa)).collect()
}

/// Makes operations of `n` random mappings of each case on one instruction set.
pub(super) fn convolutions(isa: Isa, n: usize) -> Bench {
    let mut rng = ChaCha8Rng::seed_from_u64(isa as u64 + 1);
    let mut bench = Bench::new();
    let mut refusals = 0;
    for case in cases() {
        let mut found = 0;
        for _ in 0..4000 {
            if found == n {
                break;
            }
            let mapping = random_mapping(&mut rng, isa);
            // A mapping that does not apply is refused with a reason, and tried on its own first.
            let mut alone = Bench::new();
            alone.conv(case.clone(), &mapping);
            match alone.assemble(isa) {
                Ok(_) => {
                    bench.conv(case.clone(), &mapping);
                    found += 1;
                }
                Err(AssembleError::Kernel { .. }) => refusals += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(found, n, "{isa} has too few mappings for {case:?}");
    }
    assert!(
        refusals > 0,
        "random mappings include some that do not apply"
    );
    bench
}

#[test]
fn convolutions_agree_with_the_definition_on_every_instruction_set() {
    for isa in isas() {
        convolutions(isa, 2).check(isa);
    }
}

#[test]
fn every_epilogue_agrees_with_its_formula() {
    let steps = vec![
        Epilogue::LeakyRelu {
            alpha: literal(0.1),
        },
        Epilogue::Clip {
            low: literal(-0.25),
            high: literal(0.75),
        },
        Epilogue::HardSigmoid {
            alpha: literal(0.2),
            beta: literal(0.5),
        },
        Epilogue::HardSwish,
        Epilogue::Sigmoid,
        Epilogue::Silu,
        Epilogue::Tanh,
        Epilogue::Exp,
        Epilogue::Neg,
        Epilogue::GeluErf,
        Epilogue::GeluTanh,
        Epilogue::Elu {
            alpha: literal(1.5),
        },
        Epilogue::AddConst {
            value: literal(0.3),
        },
        Epilogue::MulConst {
            value: literal(-2.0),
        },
        Epilogue::RsubConst {
            value: literal(1.0),
        },
        Epilogue::DivConst {
            value: literal(3.0),
        },
        Epilogue::RdivConst {
            value: literal(5.0),
        },
        Epilogue::MulTensor,
    ];
    for isa in isas() {
        let lanes = isa::widest(isa).lanes as i64;
        let mapping = Mapping::default()
            .with("layout_in", "nhwc")
            .with("layout_out", "nchw16c")
            .with("lanes", lanes)
            .with("oc_vectors", 1i64)
            .with("tile_w", 3i64)
            .with("tile_h", 1i64)
            .with("ic_block", 0i64)
            .with("unroll", 1i64);
        let mut bench = Bench::new();
        for step in &steps {
            let needs_residual = matches!(step, Epilogue::MulTensor);
            let conv = Conv {
                epilogue: vec![step.clone()],
                residual: needs_residual.then_some(ValueId(0)),
                ..base([5, 4, 6], 16, 1, 1, 0)
            };
            bench.conv(conv, &mapping);
        }
        bench.check(isa);
    }
}

#[test]
fn other_kernels_agree_with_their_definitions() {
    for isa in isas() {
        others(isa).check(isa);
    }
}

/// Makes operations other than convolutions.
pub(super) fn others(isa: Isa) -> Bench {
    let lanes = isa::widest(isa).lanes as i64;
    let mut bench = Bench::new();
    for (n, k, m, unroll) in [(1, 37, 10, 4i64), (3, 64, 48, 1), (1, 1, 1, 2)] {
        dense(
            &mut bench,
            [n, k, m],
            &Mapping::default()
                .with("lanes", lanes)
                .with("oc_vectors", 1i64)
                .with("unroll", unroll),
            |weight| weight,
        );
    }
    for average in [false, true] {
        for count_pad in [false, true] {
            pool(&mut bench, average, count_pad);
        }
    }
    map(&mut bench);
    bench
}

/// Adds a fully connected layer with random weights, which are read as `stored` has them.
pub(super) fn dense(
    bench: &mut Bench,
    [n, k, m]: [usize; 3],
    mapping: &Mapping,
    stored: impl Fn(f32) -> f32,
) {
    let x = bench.input([n, k]);
    let y = bench.value([n, m]);
    let (weights, bias) = (bench.numbers(m * k), bench.numbers(m));
    let read: Vec<f32> = weights.iter().map(|&weight| stored(weight)).collect();
    let row = |row: &[f32], o: usize| {
        let sum: f32 = row.iter().zip(&read[o * k..]).map(|(a, b)| a * b).sum();
        sum + bias[o]
    };
    let expected = bench.data[&x]
        .chunks(k)
        .flat_map(|r| (0..m).map(move |o| (r, o)));
    let expected = expected.map(|(r, o)| row(r, o)).collect();
    bench.output(y, expected);
    let dense = Dense {
        n,
        k,
        m,
        epilogue: Vec::new(),
        weights,
        bias,
        residual: None,
        quantized: None,
    };
    bench.push(Kind::Dense(dense), x, y, mapping.clone());
}

fn pool(bench: &mut Bench, average: bool, count_pad: bool) {
    let (c, h, w) = (9, 7, 6);
    let x = bench.input([1, c, h, w]);
    let y = bench.value([1, c, 4, 3]);
    let mut expected = Vec::new();
    for (channel, py, px) in
        (0..c).flat_map(|c| (0..4).flat_map(move |y| (0..3).map(move |x| (c, y, x))))
    {
        let mut taps = Vec::new();
        for (ky, kx) in (0..3).flat_map(|y| (0..3).map(move |x| (y, x))) {
            let (sy, sx) = (
                (py * 2 + ky as usize).wrapping_sub(1),
                (px * 2 + kx as usize).wrapping_sub(1),
            );
            if sy < h && sx < w {
                taps.push(bench.data[&x][(channel * h + sy) * w + sx]);
            }
        }
        let count = if count_pad { 9.0 } else { taps.len() as f32 };
        expected.push(if average {
            taps.iter().sum::<f32>() / count
        } else {
            taps.iter().copied().fold(f32::NEG_INFINITY, f32::max)
        });
    }
    bench.output(y, expected);
    let pool = Pool {
        average,
        count_pad,
        kernel: [3, 3],
        stride: [2, 2],
        dilation: [1, 1],
        pad: [1, 1, 1, 1],
        epilogue: Vec::new(),
        bytes: [None, None],
    };
    bench.push(Kind::Pool(pool), x, y, Mapping::default());
}

fn map(bench: &mut Bench) {
    let shape = [1, 5, 3, 7];
    let (x, same, channel) = (
        bench.input(shape),
        bench.input(shape),
        bench.input([1, 5, 1, 1]),
    );
    let y = bench.value(shape);
    let constants = bench.numbers(5);
    let expected = bench.data[&x].iter().enumerate().map(|(i, v)| {
        let c = i / 21;
        (bench.data[&same][i] - v) * bench.data[&channel][c] + constants[c]
    });
    let expected = expected.map(|v| v.max(0.0)).collect();
    bench.output(y, expected);
    let map = Map {
        chain: vec![
            MapStep::Binary {
                op: "rsub",
                operand: 0,
            },
            MapStep::Binary {
                op: "mul",
                operand: 1,
            },
            MapStep::Binary {
                op: "add",
                operand: 2,
            },
            MapStep::Unary(Epilogue::Relu),
        ],
        operands: vec![
            Operand::Same(same),
            Operand::Channel(channel),
            Operand::Constant(constants),
        ],
        reads: Vec::new(),
        writes: None,
    };
    assert_eq!(dims4(&bench.graph.value(x).shape), shape);
    bench.push(Kind::Map(map), x, y, Mapping::default());
}

/// Builds that run side by side must not meet in each other's files.
#[test]
fn kernels_compiled_side_by_side_stay_apart() {
    let isa = Isa::Portable;
    let dir = tempfile::tempdir().unwrap();
    let toolchain = Toolchain::discover(&PathBuf::from("rustc")).unwrap();
    let builder = Builder::open(toolchain, dir.path(), 1, Duration::from_mins(5)).unwrap();
    let benches: Vec<Bench> = (0..12)
        .map(|i| {
            let mut bench = Bench::new();
            let mapping = Mapping::default().with("lanes", 4i64).with("unroll", 1i64);
            let mapping = mapping.with("oc_vectors", 1i64);
            dense(&mut bench, [1, 8 + i, 4], &mapping, |weight| weight);
            bench
        })
        .collect();
    std::thread::scope(|scope| {
        for bench in &benches {
            let builder = &builder;
            scope.spawn(move || {
                let program = bench.assemble(isa).unwrap();
                let packed = builder.pack(program.clone()).unwrap();
                let artifact = builder.build(packed, 1).unwrap().unwrap();
                for outputs in run::run_twice(&program, &artifact, &bench.inputs()) {
                    assert!(distance(&f32s(&outputs[0]), &bench.expected[0].1) < 1e-5);
                }
            });
        }
    });
}
