//! Operators that only move elements.

use super::node::{NodeTest, i64s, tensor};
use crate::graph::{Attribute, TensorData};

fn bytes(dims: &[usize]) -> crate::graph::Tensor {
    let n = dims.iter().product::<usize>();
    tensor(dims, TensorData::U8((0..n as u8).collect()))
}

#[test]
fn axes_change_places() {
    NodeTest::new("Transpose")
        .attribute("perm", Attribute::Ints(vec![0, 2, 1]))
        .input(bytes(&[2, 2, 3]))
        .gives(
            0.0,
            &[tensor(
                &[2, 3, 2],
                TensorData::U8(vec![0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]),
            )],
        );
}

#[test]
fn large_matrices_change_places_in_tiles() {
    let (rows, columns) = (19, 33);
    let at = |row: usize, column: usize| (row * columns + column) as u16;
    let x: Vec<u16> = (0..rows * columns).map(|idx| idx as u16).collect();
    let expected: Vec<u16> = (0..rows * columns)
        .map(|idx| at(idx % rows, idx / rows))
        .collect();
    NodeTest::new("Transpose")
        .input(tensor(&[rows, columns], TensorData::U16(x)))
        .gives(0.0, &[tensor(&[columns, rows], TensorData::U16(expected))]);
}

#[test]
fn values_are_joined_and_cut_along_an_axis() {
    NodeTest::new("Concat")
        .attribute("axis", Attribute::Int(-1))
        .input(bytes(&[2, 1]))
        .input(bytes(&[2, 2]))
        .gives(
            0.0,
            &[tensor(&[2, 3], TensorData::U8(vec![0, 0, 1, 1, 2, 3]))],
        );
    NodeTest::new("Split")
        .attribute("axis", Attribute::Int(1))
        .input(bytes(&[2, 3]))
        .constant(i64s(&[2], &[1, 2]))
        .gives(
            0.0,
            &[
                tensor(&[2, 1], TensorData::U8(vec![0, 3])),
                tensor(&[2, 2], TensorData::U8(vec![1, 2, 4, 5])),
            ],
        );
}

#[test]
fn parts_that_nobody_wants_are_left_out() {
    NodeTest::new("Split")
        .without_output(0)
        .input(bytes(&[5]))
        .constant(i64s(&[3], &[2, 1, 2]))
        .gives(
            0.0,
            &[
                tensor(&[1], TensorData::U8(vec![2])),
                tensor(&[2], TensorData::U8(vec![3, 4])),
            ],
        );
}

#[test]
fn axes_of_one_are_repeated() {
    NodeTest::new("Expand")
        .input(bytes(&[2, 1]))
        .constant(i64s(&[3], &[2, 1, 2]))
        .gives(
            0.0,
            &[tensor(
                &[2, 2, 2],
                TensorData::U8(vec![0, 0, 1, 1, 0, 0, 1, 1]),
            )],
        );
}
