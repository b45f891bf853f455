//! Elements that are picked and written by index, of which some are out of range.

use super::node::{NodeTest, f32s, i64s, tensor};
use crate::graph::{Attribute, TensorData};

/// Beyond both ends of anything.
const FAR: [i64; 2] = [i64::MAX, i64::MIN];

#[test]
fn rows_are_gathered_and_indices_stay_inside() {
    NodeTest::new("Gather")
        .input(f32s(&[3, 2], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]))
        .input(i64s(&[2, 2], &[-1, 1, FAR[0], FAR[1]]))
        .gives(
            0.0,
            &[f32s(&[2, 2, 2], &[4.0, 5.0, 2.0, 3.0, 4.0, 5.0, 0.0, 1.0])],
        );
    NodeTest::new("Gather")
        .attribute("axis", Attribute::Int(-1))
        .input(f32s(&[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]))
        .input(tensor(&[], TensorData::I32(vec![-2])))
        .gives(0.0, &[f32s(&[2], &[1.0, 4.0])]);
}

#[test]
fn elements_are_gathered_along_an_axis_and_by_place() {
    NodeTest::new("GatherElements")
        .attribute("axis", Attribute::Int(1))
        .input(i64s(&[2, 2], &[1, 2, 3, 4]))
        .input(i64s(&[2, 3], &[0, -1, 0, 1, FAR[0], FAR[1]]))
        .gives(0.0, &[i64s(&[2, 3], &[1, 2, 1, 4, 4, 3])]);
    NodeTest::new("GatherND")
        .attribute("batch_dims", Attribute::Int(1))
        .input(i64s(&[2, 2, 2], &[0, 1, 2, 3, 4, 5, 6, 7]))
        .input(i64s(&[2, 1], &[1, -2]))
        .gives(0.0, &[i64s(&[2, 2], &[2, 3, 4, 5])]);
}

#[test]
fn updates_are_written_or_combined_in_their_order() {
    NodeTest::new("ScatterElements")
        .input(f32s(&[3, 1], &[1.0, 2.0, 3.0]))
        .input(i64s(&[3, 1], &[-1, 1, FAR[0]]))
        .input(f32s(&[3, 1], &[10.0, 20.0, 30.0]))
        .gives(0.0, &[f32s(&[3, 1], &[1.0, 20.0, 30.0])]);
    let nd = |reduction: &str, expected: &[i64]| {
        NodeTest::new("ScatterND")
            .attribute("reduction", Attribute::String(reduction.to_owned()))
            .input(i64s(&[2, 2], &[1, 2, 3, 4]))
            .input(i64s(&[3, 1], &[0, 0, FAR[1]]))
            .input(i64s(&[3, 2], &[5, -1, 2, 2, 0, 3]))
            .gives(0.0, &[i64s(&[2, 2], expected)]);
    };
    nd("add", &[8, 6, 3, 4]);
    nd("mul", &[0, -12, 3, 4]);
    nd("max", &[5, 3, 3, 4]);
    nd("min", &[0, -1, 3, 4]);
    nd("none", &[0, 3, 3, 4]);
}

#[test]
fn rows_go_into_a_cache_and_around_its_end() {
    let write = |mode: &str, expected: &[f32]| {
        NodeTest::new("TensorScatter")
            .opset(24)
            .attribute("mode", Attribute::String(mode.to_owned()))
            .input(f32s(&[2, 3, 1], &[0.0; 6]))
            .input(f32s(&[2, 2, 1], &[1.0, 2.0, 3.0, 4.0]))
            .input(i64s(&[2], &[0, 2]))
            .gives(0.0, &[f32s(&[2, 3, 1], expected)]);
    };
    write("circular", &[1.0, 2.0, 0.0, 4.0, 0.0, 3.0]);
    write("linear", &[1.0, 2.0, 0.0, 0.0, 0.0, 4.0]);
}

#[test]
fn sequences_are_reversed_up_to_their_length() {
    NodeTest::new("ReverseSequence")
        .attribute("time_axis", Attribute::Int(1))
        .attribute("batch_axis", Attribute::Int(0))
        .input(i64s(&[3, 3], &[0, 1, 2, 3, 4, 5, 6, 7, 8]))
        .input(i64s(&[3], &[2, -5, 99]))
        .gives(0.0, &[i64s(&[3, 3], &[1, 0, 2, 3, 4, 5, 8, 7, 6])]);
}

#[test]
fn the_best_elements_come_in_order_and_the_first_of_equal_ones_first() {
    NodeTest::new("TopK")
        .input(f32s(
            &[2, 5],
            &[1.0, 3.0, 3.0, -1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        ))
        .constant(i64s(&[1], &[3]))
        .gives(
            0.0,
            &[
                f32s(&[2, 3], &[3.0, 3.0, 2.0, 0.0, 0.0, 0.0]),
                i64s(&[2, 3], &[1, 2, 4, 0, 1, 2]),
            ],
        );
    let numbers = |data: &[u8]| tensor(&[data.len(), 1], TensorData::U8(data.to_vec()));
    NodeTest::new("TopK")
        .attribute("axis", Attribute::Int(0))
        .attribute("largest", Attribute::Int(0))
        .input(numbers(&[5, 9, 1, 7, 1, 255, 0]))
        .constant(i64s(&[1], &[7]))
        .gives(
            0.0,
            &[
                numbers(&[0, 1, 1, 5, 7, 9, 255]),
                i64s(&[7, 1], &[6, 2, 4, 0, 3, 1, 5]),
            ],
        );
}
