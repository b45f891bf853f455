//! Sums of products over named axes, and of blocks.

use super::node::{NodeTest, f32s, i64s};
use crate::graph::{Attribute, Tensor};

fn check(equation: &str, inputs: &[Tensor], expected: Tensor) {
    let test =
        NodeTest::new("Einsum").attribute("equation", Attribute::String(equation.to_owned()));
    let test = inputs
        .iter()
        .fold(test, |test, input| test.input(input.clone()));
    test.gives(1e-6, &[expected]);
}

#[test]
fn products_are_summed_over_what_the_output_lacks() {
    let n = 37;
    let a: Vec<f32> = (0..2 * n).map(|v| (v % 7) as f32 - 3.0).collect();
    let b: Vec<f32> = (0..n * 5).map(|v| (v % 5) as f32 - 1.0).collect();
    let mut product = vec![0.0; 10];
    for i in 0..2 {
        for j in 0..5 {
            product[i * 5 + j] = (0..n).map(|k| a[i * n + k] * b[k * 5 + j]).sum();
        }
    }
    let transposed: Vec<f32> = (0..5 * n).map(|v| b[v % n * 5 + v / n]).collect();
    let (a, b) = (f32s(&[2, n], &a), f32s(&[n, 5], &b));
    check("ik,kj->ij", &[a.clone(), b], f32s(&[2, 5], &product));
    // Both operands have the summed axis in one piece.
    check(
        "ik, jk -> ij",
        &[a, f32s(&[5, n], &transposed)],
        f32s(&[2, 5], &product),
    );
}

#[test]
fn diagonals_ellipses_and_implied_outputs() {
    check(
        "...ii->...i",
        &[i64s(&[2, 2, 2], &[1, 2, 3, 4, 5, 6, 7, 8])],
        i64s(&[2, 2], &[1, 4, 5, 8]),
    );
    check(
        "ba",
        &[i64s(&[2, 2], &[1, 2, 3, 4])],
        i64s(&[2, 2], &[1, 3, 2, 4]),
    );
    check(
        "i...,i,j->j",
        &[
            i64s(&[2, 1], &[1, 2]),
            i64s(&[2], &[3, 4]),
            i64s(&[2], &[1, -1]),
        ],
        i64s(&[2], &[11, -11]),
    );
}

#[test]
fn overlapping_blocks_are_summed() {
    let x: Vec<f32> = (1..=12).map(|v| v as f32).collect();
    NodeTest::new("Col2Im")
        .attribute("pads", Attribute::Ints(vec![0, 1, 0, 0]))
        .input(f32s(&[1, 4, 3], &x))
        .constant(i64s(&[2], &[2, 3]))
        .constant(i64s(&[2], &[2, 2]))
        .gives(
            0.0,
            &[f32s(&[1, 1, 2, 3], &[6.0, 8.0, 6.0, 18.0, 20.0, 12.0])],
        );
}
