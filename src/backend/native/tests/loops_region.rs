//! Operators that read at computed places, and determinants.

use super::node::{NodeTest, f32s, i64s};
use crate::graph::{Attribute, Tensor};

fn nine() -> Tensor {
    f32s(&[1, 1, 3, 3], &[1., 2., 3., 4., 5., 6., 7., 8., 9.])
}

#[test]
fn regions_are_sampled_between_elements() {
    let test = |opset, mode: &str| {
        NodeTest::new("RoiAlign")
            .opset(opset)
            .attribute("mode", Attribute::String(mode.to_owned()))
            .attribute("sampling_ratio", Attribute::Int(1))
            .input(f32s(&[1, 1, 2, 2], &[1., 2., 3., 4.]))
            .input(f32s(&[1, 4], &[0., 0., 1., 1.]))
            .input(i64s(&[1], &[0]))
    };
    let one = |value| [f32s(&[1, 1, 1, 1], &[value])];
    test(10, "avg").gives(1e-6, &one(2.5));
    test(10, "max").gives(1e-6, &one(1.0));
    test(16, "avg").gives(1e-6, &one(1.0));
}

#[test]
fn regions_have_their_greatest_elements() {
    let test = |size: i64| {
        NodeTest::new("MaxRoiPool")
            .attribute("pooled_shape", Attribute::Ints(vec![size, size]))
            .attribute("spatial_scale", Attribute::Float(0.5))
            .input(nine())
            .input(f32s(&[1, 5], &[0., 2., 0., 4., 2.]))
    };
    // Columns 1 and 2, rows 0 and 1.
    test(1).gives(0.0, &[f32s(&[1, 1, 1, 1], &[6.])]);
    test(2).gives(0.0, &[f32s(&[1, 1, 2, 2], &[2., 3., 5., 6.])]);
}

#[test]
fn taps_move_by_their_offsets() {
    let test = |dx: f32| {
        let offsets: Vec<f32> = (0..32)
            .map(|i| if i / 4 % 2 == 1 { dx } else { 0.0 })
            .collect();
        NodeTest::new("DeformConv")
            .input(nine())
            .constant(f32s(&[1, 1, 2, 2], &[1.; 4]))
            .input(f32s(&[1, 8, 2, 2], &offsets))
    };
    test(0.0).gives(0.0, &[f32s(&[1, 1, 2, 2], &[12., 16., 24., 28.])]);
    test(0.5).gives(0.0, &[f32s(&[1, 1, 2, 2], &[14., 12.5, 26., 21.5])]);
    test(0.0)
        .constant(f32s(&[1], &[1.]))
        .input(f32s(&[1, 4, 2, 2], &[0.5; 16]))
        .gives(0.0, &[f32s(&[1, 1, 2, 2], &[7., 9., 13., 15.])]);
}

#[test]
fn determinants_need_pivots() {
    NodeTest::new("Det")
        .input(f32s(
            &[3, 2, 2],
            &[1., 2., 3., 4., 0., 1., 1., 0., 1., 2., 2., 4.],
        ))
        .gives(1e-6, &[f32s(&[3], &[-2., -1., 0.])]);
}
