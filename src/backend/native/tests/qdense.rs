//! Dense layers and products of integers.

use std::collections::BTreeMap;

use rand::RngExt;

use super::kernels::isas;
use super::qbench::{QBench, quantize};
use super::qconv::{SHARES, pick};
use crate::backend::native::isa;
use crate::backend::native::space::{Spaces, default_mapping};
use crate::backend::native::spec::{
    Conv, Dense, Epilogue, Kind, MatMul, Matrix, Operation, Source,
};
use crate::graph::{Tensor, ValueId};
use crate::space::Mapping;

/// The convolution that computes the same.
fn pointwise(k: usize, m: usize, rows: [usize; 2], epilogue: Vec<Epilogue>) -> Conv {
    Conv {
        n: rows[0],
        groups: 1,
        input: [k, 1, rows[1]],
        output: [m, 1, rows[1]],
        kernel: [1, 1],
        stride: [1, 1],
        dilation: [1, 1],
        pad: [0, 0],
        residual: epilogue
            .contains(&Epilogue::AddTensor)
            .then_some(ValueId(0)),
        epilogue,
        weights: Vec::new(),
        bias: Vec::new(),
        scale: None,
        pooled: None,
        stored: true,
        quantized: None,
    }
}

#[test]
fn dense_layers_of_integers_follow_their_formula() {
    for isa in isas() {
        let table = isa::widest(isa);
        let mut bench = QBench::new(isa);
        for (n, k, m, r) in [
            (1, 37, 10, 1),
            (3, 64, 64, 1),
            (4, 130, 128, 4),
            (6, 33, 96, 2),
            (1, 9, 256, 8),
        ] {
            for epilogue in [vec![], vec![Epilogue::HardSwish], vec![Epilogue::AddTensor]] {
                let mut conv = pointwise(k, m, [n, 1], epilogue);
                bench.share = pick(&mut bench.rng, &SHARES);
                let mut weights = bench.rng.clone();
                quantize(&mut conv, [128, 3, 9], |_| weights.random(), &mut bench.rng);
                let dense = Dense {
                    n,
                    k,
                    m,
                    epilogue: conv.epilogue.clone(),
                    weights: Vec::new(),
                    bias: conv.bias.clone(),
                    residual: conv.residual,
                    quantized: conv.quantized.clone(),
                };
                let mapping = Mapping::default()
                    .with("lanes", table.lanes as i64)
                    .with("oc_vectors", r)
                    .with("unroll", pick(&mut bench.rng, &[1i64, 2, 4]));
                bench.dense(&conv, &dense, &mapping);
            }
        }
        bench.check();
    }
}

#[test]
fn products_of_integers_follow_their_formula() {
    let spaces = Spaces::new(&BTreeMap::new(), 1).unwrap();
    for isa in isas() {
        let mut bench = QBench::new(isa);
        for (batch, m, k, n) in [
            (1, 1, 8, 16),
            (2, 5, 24, 48),
            (3, 17, 64, 32),
            (1, 40, 40, 80),
        ] {
            for epilogue in [vec![], vec![Epilogue::AddTensor, Epilogue::GeluTanh]] {
                let mut conv = pointwise(k, n, [1, batch * m], epilogue);
                bench.share = pick(&mut bench.rng, &SHARES);
                let mut weights = bench.rng.clone();
                quantize(&mut conv, [128, 3, 9], |_| weights.random(), &mut bench.rng);
                let rows = |columns: usize| Matrix {
                    row: columns,
                    column: 1,
                    batch: vec![m * columns],
                };
                let mut quantized = conv.quantized.clone().unwrap();
                let transposed = (0..k).flat_map(|i| (0..n).map(move |o| o * k + i));
                quantized.weights = transposed.map(|at| quantized.weights[at]).collect();
                // Half of what is added, doubled.
                let half: Vec<f32> = conv.bias.iter().map(|b| b / 2.0).collect();
                let addend = Matrix {
                    row: 0,
                    column: 1,
                    batch: vec![0],
                };
                let mut operands = vec![Source::Value(ValueId(0))];
                operands.push(Source::Constant(Tensor::from_f32(half).into()));
                operands.extend(conv.residual.map(Source::Value));
                let matmul = MatMul {
                    extents: [m, k, n],
                    batch: vec![batch],
                    lhs: rows(k),
                    rhs: rows(n),
                    result: rows(n),
                    addend: Some((addend, 2.0)),
                    alpha: 1.0,
                    epilogue: conv.epilogue.clone(),
                    operands,
                    output: ValueId(1),
                    quantized: Some(quantized),
                };
                let operation = Operation {
                    subgraph: 0,
                    name: String::new(),
                    kind: Kind::MatMul(matmul.clone()),
                    x: ValueId(0),
                    y: ValueId(1),
                };
                let space = spaces.of(isa, &operation).unwrap().unwrap();
                let untuned = default_mapping(isa, &operation);
                assert_eq!(space.is_valid(&untuned), Ok(()));
                let other = space.sample(&mut bench.rng).unwrap();
                for mapping in [Mapping::default(), untuned, other] {
                    bench.matmul(&conv, &matmul, &mapping);
                }
            }
        }
        bench.check();
    }
}
