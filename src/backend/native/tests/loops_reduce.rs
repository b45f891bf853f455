//! Reductions, softmax and normalisations.

use super::node::{NodeTest, f32s, i64s, tensor};
use crate::graph::{Attribute, Tensor, TensorData};

fn numbers(n: usize) -> Vec<f32> {
    (0..n)
        .map(|i| ((i * 37 + 11) % 23) as f32 / 4.0 - 2.5)
        .collect()
}

fn value(dims: &[usize]) -> Tensor {
    f32s(dims, &numbers(dims.iter().product()))
}

/// Applies `row` to the elements along `axis` of `dims`, which it changes in place.
fn along(dims: &[usize], axis: usize, row: impl Fn(&mut [f32])) -> Vec<f32> {
    let mut data = numbers(dims.iter().product());
    let inner: usize = dims[axis + 1..].iter().product();
    for start in (0..data.len()).filter(|i| (i / inner).is_multiple_of(dims[axis])) {
        let mut elements: Vec<f32> = (0..dims[axis]).map(|k| data[start + k * inner]).collect();
        row(&mut elements);
        for (k, element) in elements.into_iter().enumerate() {
            data[start + k * inner] = element;
        }
    }
    data
}

fn softmax(row: &mut [f32]) {
    let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = row.iter().map(|v| (v - most).exp()).sum();
    for v in row.iter_mut() {
        *v = (*v - most).exp() / sum;
    }
}

#[test]
fn axes_are_reduced_wherever_they_lie() {
    let dims = [3, 5, 37];
    let data = numbers(3 * 5 * 37);
    let at = |i: usize, j: usize, k: usize| data[(i * 5 + j) * 37 + k];
    let sums: Vec<f32> = (0..15).map(|i| data[i * 37..][..37].iter().sum()).collect();
    NodeTest::new("ReduceSum")
        .attribute("keepdims", Attribute::Int(0))
        .input(value(&dims))
        .constant(i64s(&[1], &[-1]))
        .gives(1e-6, &[f32s(&[3, 5], &sums)]);
    let maxima = (0..3 * 37).map(|n| (0..5).map(|j| at(n / 37, j, n % 37)).fold(-9.0, f32::max));
    NodeTest::new("ReduceMax")
        .input(value(&dims))
        .constant(i64s(&[1], &[1]))
        .gives(0.0, &[f32s(&[3, 1, 37], &maxima.collect::<Vec<f32>>())]);
    let middle = (0..5).map(|j| {
        let all = (0..3 * 37).map(|n| at(n / 37, j, n % 37).exp());
        all.sum::<f32>().ln()
    });
    NodeTest::new("ReduceLogSumExp")
        .attribute("keepdims", Attribute::Int(0))
        .input(value(&dims))
        .constant(i64s(&[2], &[0, 2]))
        .gives(1e-6, &[f32s(&[5], &middle.collect::<Vec<f32>>())]);
}

#[test]
fn narrow_integers_do_not_overflow_while_they_are_averaged() {
    NodeTest::new("ReduceMean")
        .attribute("keepdims", Attribute::Int(0))
        .input(tensor(
            &[2, 3],
            TensorData::U8(vec![250, 251, 255, 1, 2, 6]),
        ))
        .constant(i64s(&[1], &[1]))
        .gives(0.0, &[tensor(&[2], TensorData::U8(vec![252, 3]))]);
    NodeTest::new("ReduceL2")
        .input(i64s(&[2], &[3, -4]))
        .gives(0.0, &[i64s(&[1], &[5])]);
}

#[test]
fn the_first_or_the_last_of_equal_elements_is_named() {
    let x = f32s(&[2, 3], &[1.0, 7.0, 7.0, 5.0, 5.0, 2.0]);
    for (last, expected) in [(0, [1, 0]), (1, [2, 1])] {
        NodeTest::new("ArgMax")
            .attribute("axis", Attribute::Int(1))
            .attribute("keepdims", Attribute::Int(0))
            .attribute("select_last_index", Attribute::Int(last))
            .input(x.clone())
            .gives(0.0, &[i64s(&[2], &expected)]);
    }
}

#[test]
fn softmax_runs_along_any_axis_and_over_all_after_it_in_old_sets() {
    for (dims, axis) in [
        (vec![3, 70], 1),
        (vec![2, 3], 1),
        (vec![2, 5, 35], 1),
        (vec![7, 3], 0),
    ] {
        NodeTest::new("Softmax")
            .attribute("axis", Attribute::Int(axis as i64))
            .input(value(&dims))
            .gives(1e-6, &[f32s(&dims, &along(&dims, axis, softmax))]);
        let log = |row: &mut [f32]| {
            softmax(row);
            for v in row.iter_mut() {
                *v = v.ln();
            }
        };
        NodeTest::new("LogSoftmax")
            .attribute("axis", Attribute::Int(axis as i64))
            .input(value(&dims))
            .gives(1e-5, &[f32s(&dims, &along(&dims, axis, log))]);
    }
    let joint = along(&[2, 12], 1, softmax);
    NodeTest::new("Softmax")
        .opset(12)
        .input(value(&[2, 3, 4]))
        .gives(1e-6, &[f32s(&[2, 3, 4], &joint)]);
    NodeTest::new("Softmax")
        .input(tensor(&[1, 2], TensorData::F64(vec![0.0, 0.0])))
        .gives(0.0, &[tensor(&[1, 2], TensorData::F64(vec![0.5, 0.5]))]);
}

#[test]
fn softmax_leaves_nothing_of_what_a_mask_takes_out() {
    // A tolerance of 0 tells a subnormal number from zero.
    for (dims, axis) in [([2, 32], 1), ([32, 2], 0)] {
        let is_masked = |idx: usize| if axis == 1 { idx % 32 >= 16 } else { idx >= 32 };
        let x: Vec<f32> = (0..64)
            .map(|idx| if is_masked(idx) { -1e4 } else { 0.0 })
            .collect();
        let y: Vec<f32> = (0..64)
            .map(|idx| if is_masked(idx) { 0.0 } else { 0.0625 })
            .collect();
        NodeTest::new("Softmax")
            .attribute("axis", Attribute::Int(axis))
            .input(f32s(&dims, &x))
            .gives(0.0, &[f32s(&dims, &y)]);
    }
}

fn normalized(row: &mut [f32]) {
    let n = row.len() as f32;
    let mean = row.iter().sum::<f32>() / n;
    let variance = row.iter().map(|v| (v - mean) * (v - mean)).sum::<f32>() / n;
    for v in row.iter_mut() {
        *v = (*v - mean) / (variance + 1e-5).sqrt();
    }
}

#[test]
fn rows_are_normalised_then_scaled() {
    for n in [5, 16, 70] {
        let (scale, bias) = (numbers(n), numbers(n + 3)[3..].to_vec());
        let mut expected = along(&[4, n], 1, normalized);
        for (i, v) in expected.iter_mut().enumerate() {
            *v = *v * scale[i % n] + bias[i % n];
        }
        NodeTest::new("LayerNormalization")
            .input(value(&[4, n]))
            .constant(f32s(&[n], &scale))
            .constant(f32s(&[n], &bias))
            .gives(1e-5, &[f32s(&[4, n], &expected)]);
    }
    // Means and factors are outputs as well.
    NodeTest::new("LayerNormalization")
        .attribute("epsilon", Attribute::Float(0.0))
        .input(f32s(&[1, 2], &[1.0, 5.0]))
        .constant(f32s(&[2], &[1.0, 2.0]))
        .gives(
            1e-6,
            &[
                f32s(&[1, 2], &[-1.0, 2.0]),
                f32s(&[1, 1], &[3.0]),
                f32s(&[1, 1], &[0.5]),
            ],
        );
}

#[test]
fn channels_are_normalised_in_groups() {
    let dims = [2, 4, 9];
    let (scale, bias) = ([1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 0.5, -1.0]);
    let affine = |mut data: Vec<f32>, of: &dyn Fn(usize) -> usize| {
        for (i, v) in data.iter_mut().enumerate() {
            let channel = of(i / 9 % 4);
            *v = *v * scale[channel] + bias[channel];
        }
        f32s(&dims, &data)
    };
    NodeTest::new("InstanceNormalization")
        .input(value(&dims))
        .constant(f32s(&[4], &scale))
        .constant(f32s(&[4], &bias))
        .gives(1e-5, &[affine(along(&[8, 9], 1, normalized), &|c| c)]);
    let grouped = || along(&[4, 18], 1, normalized);
    NodeTest::new("GroupNormalization")
        .attribute("num_groups", Attribute::Int(2))
        .input(value(&dims))
        .constant(f32s(&[4], &scale))
        .constant(f32s(&[4], &bias))
        .gives(1e-5, &[affine(grouped(), &|c| c)]);
    NodeTest::new("GroupNormalization")
        .opset(18)
        .attribute("num_groups", Attribute::Int(2))
        .input(value(&dims))
        .constant(f32s(&[2], &scale[..2]))
        .constant(f32s(&[2], &bias[..2]))
        .gives(1e-5, &[affine(grouped(), &|c| c / 2)]);
}
