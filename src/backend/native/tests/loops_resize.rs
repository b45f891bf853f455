//! Values that are resampled.

use super::node::{NodeTest, f32s, i64s, tensor};
use crate::graph::{Attribute, Tensor, TensorData};

fn text(value: &str) -> Attribute {
    Attribute::String(value.to_owned())
}

fn resize(mode: &str, coordinates: &str) -> NodeTest {
    NodeTest::new("Resize")
        .attribute("mode", text(mode))
        .attribute("coordinate_transformation_mode", text(coordinates))
}

fn bytes(dims: &[usize], data: &[u8]) -> Tensor {
    tensor(dims, TensorData::U8(data.to_vec()))
}

#[test]
fn nearest_neighbours_are_repeated_or_left_out() {
    resize("nearest", "asymmetric")
        .attribute("nearest_mode", text("floor"))
        .input(bytes(&[1, 2, 2], &[1, 2, 3, 4]))
        .nothing()
        .constant(f32s(&[3], &[1.0, 2.0, 2.0]))
        .gives(
            0.0,
            &[bytes(
                &[1, 4, 4],
                &[1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4],
            )],
        );
    resize("nearest", "half_pixel")
        .input(bytes(&[5], &[0, 1, 2, 3, 4]))
        .nothing()
        .nothing()
        .constant(i64s(&[1], &[3]))
        .gives(0.0, &[bytes(&[3], &[0, 2, 4])]);
    NodeTest::new("Upsample")
        .opset(9)
        .input(bytes(&[2, 1], &[1, 2]))
        .constant(f32s(&[2], &[1.5, 3.0]))
        .gives(0.0, &[bytes(&[3, 3], &[1, 1, 1, 1, 1, 1, 2, 2, 2])]);
}

#[test]
fn lines_are_drawn_between_neighbours_along_every_axis() {
    resize("linear", "half_pixel")
        .input(f32s(&[1, 2, 2], &[0.0, 4.0, 8.0, 12.0]))
        .nothing()
        .nothing()
        .constant(i64s(&[3], &[1, 4, 4]))
        .gives(
            1e-6,
            &[f32s(
                &[1, 4, 4],
                &[
                    0.0, 1.0, 3.0, 4.0, 2.0, 3.0, 5.0, 6.0, 6.0, 7.0, 9.0, 10.0, 8.0, 9.0, 11.0,
                    12.0,
                ],
            )],
        );
    resize("linear", "align_corners")
        .input(bytes(&[2, 2], &[0, 10, 20, 30]))
        .nothing()
        .nothing()
        .constant(i64s(&[2], &[3, 3]))
        .gives(0.0, &[bytes(&[3, 3], &[0, 5, 10, 10, 15, 20, 20, 25, 30])]);
}

#[test]
fn what_lies_outside_of_the_region_is_extrapolated() {
    for (mode, middle) in [("nearest", 2.0), ("linear", 1.5)] {
        resize(mode, "tf_crop_and_resize")
            .attribute("extrapolation_value", Attribute::Float(9.0))
            .attribute("nearest_mode", text("round_prefer_ceil"))
            .attribute("axes", Attribute::Ints(vec![1]))
            .input(f32s(&[2, 2], &[1.0, 2.0, 1.0, 2.0]))
            .constant(f32s(&[2], &[-0.5, 1.5]))
            .nothing()
            .constant(i64s(&[1], &[5]))
            .gives(
                1e-6,
                &[f32s(
                    &[2, 5],
                    &[9.0, 1.0, middle, 2.0, 9.0, 9.0, 1.0, middle, 2.0, 9.0],
                )],
            );
    }
}

#[test]
fn a_cubic_goes_through_lines() {
    let x: Vec<f32> = (0..8).map(|v| v as f32).collect();
    // Away from the ends, cubic interpolation after Keys with -0.5 reproduces a line.
    let expected: Vec<f32> = (0..16).map(|v| v as f32 * 0.5 - 0.25).collect();
    let cubic = resize("cubic", "half_pixel")
        .attribute("cubic_coeff_a", Attribute::Float(-0.5))
        .input(f32s(&[8], &x))
        .constant(f32s(&[2], &[0.0, 1.0]))
        .constant(f32s(&[1], &[2.0]));
    let ends = [
        (0, -0.070_312_5),
        (1, 0.179_687_5),
        (2, 0.726_562_5),
        (13, 6.273_437_5),
        (14, 6.820_312_5),
        (15, 7.070_312_5),
    ];
    let mut expected = expected;
    for (at, value) in ends {
        expected[at] = value;
    }
    cubic.gives(1e-6, &[f32s(&[16], &expected)]);
}

#[test]
fn grids_read_between_elements_and_beyond_borders() {
    let sample = |mode: &str, padding: &str, places: &[f32], expected: &[f32]| {
        let points: Vec<f32> = places.iter().flat_map(|&x| [x, 0.0]).collect();
        NodeTest::new("GridSample")
            .attribute("mode", text(mode))
            .attribute("padding_mode", text(padding))
            .attribute("align_corners", Attribute::Int(1))
            .input(f32s(&[1, 1, 1, 3], &[1.0, 2.0, 4.0]))
            .input(f32s(&[1, 1, places.len(), 2], &points))
            .gives(1e-6, &[f32s(&[1, 1, 1, places.len()], expected)]);
    };
    let places = [-1.0, 0.5, 1.5, f32::INFINITY];
    sample("linear", "zeros", &places[..3], &[1.0, 3.0, 2.0]);
    sample("linear", "border", &places, &[1.0, 3.0, 4.0, 4.0]);
    sample("linear", "reflection", &places[..3], &[1.0, 3.0, 3.0]);
    sample("nearest", "zeros", &places, &[1.0, 4.0, 4.0, 0.0]);
    sample("cubic", "border", &[-1.0, 0.0, 1.0], &[1.0, 2.0, 4.0]);
    // At 2.5 all four elements but the first are the last one; its weight there is -0.09375.
    sample("cubic", "border", &[1.5], &[4.0 - 0.093_75 * (2.0 - 4.0)]);
}
