//! Elements that follow from their place, and running sums.

use super::node::{NodeTest, f32s, i64s, tensor};
use crate::graph::{Attribute, TensorData};

#[test]
fn indices_become_rows_with_a_single_one() {
    NodeTest::new("OneHot")
        .input(i64s(&[3], &[1, -1, 5]))
        .constant(i64s(&[], &[2]))
        .input(f32s(&[2], &[0.5, 2.0]))
        .gives(0.0, &[f32s(&[3, 2], &[0.5, 2.0, 0.5, 2.0, 0.5, 0.5])]);
}

#[test]
fn triangles_are_kept_beside_a_diagonal_that_is_given() {
    let triangle = |upper: i64, k: i64, expected: &[i64]| {
        NodeTest::new("Trilu")
            .attribute("upper", Attribute::Int(upper))
            .input(i64s(&[2, 3], &[1, 2, 3, 4, 5, 6]))
            .input(i64s(&[], &[k]))
            .gives(0.0, &[i64s(&[2, 3], expected)]);
    };
    triangle(1, 1, &[0, 2, 3, 0, 0, 6]);
    triangle(0, i64::MIN, &[0; 6]);
}

#[test]
fn ones_lie_on_a_diagonal() {
    NodeTest::new("EyeLike")
        .attribute("k", Attribute::Int(-1))
        .attribute("dtype", Attribute::Int(10))
        .input(i64s(&[2, 3], &[0; 6]))
        .gives(
            0.0,
            &[tensor(
                &[2, 3],
                TensorData::F16(vec![0, 0, 0, 0x3c00, 0, 0]),
            )],
        );
}

#[test]
fn sums_run_along_an_axis_in_both_directions() {
    let sum = |exclusive: i64, reverse: i64, expected: &[f32]| {
        NodeTest::new("CumSum")
            .attribute("exclusive", Attribute::Int(exclusive))
            .attribute("reverse", Attribute::Int(reverse))
            .input(f32s(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
            .constant(i64s(&[], &[-2]))
            .gives(0.0, &[f32s(&[3, 2], expected)]);
    };
    sum(0, 0, &[1.0, 2.0, 4.0, 6.0, 9.0, 12.0]);
    sum(1, 1, &[8.0, 10.0, 5.0, 6.0, 0.0, 0.0]);
}
