//! Products of matrices.

use super::node::{NodeTest, f32s, tensor};
use crate::graph::{Attribute, Tensor, TensorData};

/// Small numbers that differ from element to element, exact in every type.
fn numbers(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7 + seed) % 11) as f32 - 5.0).collect()
}

fn value(dims: &[usize], seed: usize) -> Tensor {
    f32s(dims, &numbers(dims.iter().product(), seed))
}

/// Multiplies `[m, k]` by `[k, n]`.
fn product(a: &[f32], b: &[f32], [m, k, n]: [usize; 3]) -> Vec<f32> {
    let at = |i: usize, j: usize| (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum();
    (0..m * n).map(|at_| at(at_ / n, at_ % n)).collect()
}

#[test]
fn any_extents_fill_tiles_and_what_remains() {
    for [m, k, n] in [[1, 1, 1], [1, 40, 37], [13, 5, 8], [7, 3, 33], [50, 9, 20]] {
        let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
        let y = f32s(&[m, n], &product(&a, &b, [m, k, n]));
        NodeTest::new("MatMul")
            .input(f32s(&[m, k], &a))
            .input(f32s(&[k, n], &b))
            .gives(1e-6, std::slice::from_ref(&y));
        NodeTest::new("MatMul")
            .input(f32s(&[m, k], &a))
            .constant(f32s(&[k, n], &b))
            .gives(1e-6, &[y]);
    }
}

#[test]
fn batches_broadcast_on_both_sides() {
    let (a, b) = (value(&[2, 1, 3, 4], 3), value(&[3, 4, 5], 4));
    let mut expected = Vec::new();
    for i in 0..2 {
        for j in 0..3 {
            let a = &a.as_f32().unwrap()[i * 12..][..12];
            let b = &b.as_f32().unwrap()[j * 20..][..20];
            expected.extend(product(a, b, [3, 4, 5]));
        }
    }
    NodeTest::new("MatMul")
        .input(a)
        .input(b)
        .gives(1e-6, &[f32s(&[2, 3, 3, 5], &expected)]);
    // A vector on each side.
    NodeTest::new("MatMul")
        .input(f32s(&[3], &[1.0, 2.0, 3.0]))
        .input(value(&[2, 3, 2], 0))
        .gives(
            1e-6,
            &[f32s(&[2, 2], &{
                let b = numbers(12, 0);
                [0, 1]
                    .map(|i| product(&[1.0, 2.0, 3.0], &b[i * 6..][..6], [1, 3, 2]))
                    .concat()
            })],
        );
}

#[test]
fn gemm_transposes_scales_and_adds() {
    let (m, k, n) = (9, 6, 10);
    let (a, b) = (numbers(m * k, 5), numbers(k * n, 6));
    let transposed = |data: &[f32], rows: usize| {
        let columns = data.len() / rows;
        (0..data.len())
            .map(|i| data[i % rows * columns + i / rows])
            .collect::<Vec<f32>>()
    };
    let plain = product(&a, &b, [m, k, n]);
    for (dims, column) in [(vec![n], false), (vec![m, 1], true), (vec![], false)] {
        let c = numbers(dims.iter().product(), 7);
        let expected: Vec<f32> = (0..m * n)
            .map(|i| {
                let at = if column { i / n } else { i % n };
                0.5 * plain[i] + 2.0 * c[at % c.len()]
            })
            .collect();
        NodeTest::new("Gemm")
            .attribute("transA", Attribute::Int(1))
            .attribute("transB", Attribute::Int(1))
            .attribute("alpha", Attribute::Float(0.5))
            .attribute("beta", Attribute::Float(2.0))
            .input(f32s(&[k, m], &transposed(&a, m)))
            .input(f32s(&[n, k], &transposed(&b, k)))
            .input(f32s(&dims, &c))
            .gives(1e-6, &[f32s(&[m, n], &expected)]);
    }
}

#[test]
fn integers_and_doubles_multiply_in_their_own_type() {
    let product = |a: &[i64], b: &[i64]| {
        (0..4)
            .map(|i| {
                a[i / 2 * 2]
                    .wrapping_mul(b[i % 2])
                    .wrapping_add(a[i / 2 * 2 + 1].wrapping_mul(b[2 + i % 2]))
            })
            .collect::<Vec<i64>>()
    };
    let (a, b) = ([i64::MAX, 2, 3, -4], [2, 6, -7, 8]);
    let of = |data: Vec<i64>| tensor(&[2, 2], TensorData::I64(data));
    NodeTest::new("MatMul")
        .input(of(a.to_vec()))
        .input(of(b.to_vec()))
        .gives(0.0, &[of(product(&a, &b))]);
    NodeTest::new("Gemm")
        .input(tensor(&[1, 2], TensorData::F64(vec![1.0, 1e-12])))
        .input(tensor(&[2, 1], TensorData::F64(vec![1.0, 1.0])))
        .gives(0.0, &[tensor(&[1, 1], TensorData::F64(vec![1.0 + 1e-12]))]);
    // 2048 + 1 is no half-precision number, 2048 + 1 + 1 is: sums are of f32.
    NodeTest::new("MatMul")
        .input(tensor(
            &[1, 3],
            TensorData::F16(vec![0x6800, 0x3c00, 0x3c00]),
        ))
        .input(tensor(&[3, 1], TensorData::F16(vec![0x3c00; 3])))
        .gives(0.0, &[tensor(&[1, 1], TensorData::F16(vec![0x6801]))]);
}
