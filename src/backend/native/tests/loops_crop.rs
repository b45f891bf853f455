//! Values that are cut, padded and arranged.

use super::node::{NodeTest, f32s, i64s, tensor};
use crate::graph::{Attribute, Tensor, TensorData};

fn bytes(dims: &[usize], data: &[u8]) -> Tensor {
    tensor(dims, TensorData::U8(data.to_vec()))
}

#[test]
fn slices_step_backwards_and_stop_at_the_ends() {
    NodeTest::new("Slice")
        .input(bytes(&[2, 4], &[0, 1, 2, 3, 4, 5, 6, 7]))
        .constant(i64s(&[2], &[100, -1]))
        .constant(i64s(&[2], &[-100, 0]))
        .constant(i64s(&[2], &[-1, 0]))
        .constant(i64s(&[2], &[-2, i64::MIN]))
        .gives(0.0, &[bytes(&[1, 2], &[7, 5])]);
    NodeTest::new("Slice")
        .opset(9)
        .attribute("starts", Attribute::Ints(vec![1]))
        .attribute("ends", Attribute::Ints(vec![i64::MAX]))
        .attribute("axes", Attribute::Ints(vec![1]))
        .input(bytes(&[2, 3], &[0, 1, 2, 3, 4, 5]))
        .gives(0.0, &[bytes(&[2, 2], &[1, 2, 4, 5])]);
}

#[test]
fn borders_are_numbers_or_what_is_inside() {
    let pad = |mode: &str, pads: [i64; 4], expected: Tensor| {
        NodeTest::new("Pad")
            .attribute("mode", Attribute::String(mode.to_owned()))
            .input(bytes(&[2, 3], &[0, 1, 2, 3, 4, 5]))
            .constant(i64s(&[4], &pads))
            .gives(0.0, &[expected]);
    };
    pad(
        "reflect",
        [1, 2, 0, 0],
        bytes(&[3, 5], &[5, 4, 3, 4, 5, 2, 1, 0, 1, 2, 5, 4, 3, 4, 5]),
    );
    pad(
        "edge",
        [0, 1, 1, -1],
        bytes(&[3, 3], &[0, 0, 1, 3, 3, 4, 3, 3, 4]),
    );
    pad("wrap", [0, 2, 0, -2], bytes(&[2, 3], &[0, 0, 0, 3, 3, 3]));
    NodeTest::new("Pad")
        .input(f32s(&[1, 2], &[1.0, 2.0]))
        .constant(i64s(&[2], &[-1, 2]))
        .input(f32s(&[], &[9.0]))
        .constant(i64s(&[1], &[-1]))
        .gives(0.0, &[f32s(&[1, 3], &[2.0, 9.0, 9.0])]);
    NodeTest::new("Pad")
        .opset(10)
        .attribute("pads", Attribute::Ints(vec![1, 0]))
        .attribute("value", Attribute::Float(0.5))
        .input(tensor(&[1], TensorData::F16(vec![0x3c00])))
        .gives(0.0, &[tensor(&[2], TensorData::F16(vec![0x3800, 0x3c00]))]);
}

#[test]
fn the_odd_one_is_cut_and_padded_at_the_end() {
    NodeTest::new("CenterCropPad")
        .input(bytes(&[1, 4], &[1, 2, 3, 4]))
        .constant(i64s(&[2], &[4, 1]))
        .gives(0.0, &[bytes(&[4, 1], &[0, 2, 0, 0])]);
}

#[test]
fn blocks_and_channels_change_places() {
    let x: Vec<u8> = (0..16).collect();
    let mode = |mode: &str, expected: &[u8]| {
        NodeTest::new("DepthToSpace")
            .attribute("blocksize", Attribute::Int(2))
            .attribute("mode", Attribute::String(mode.to_owned()))
            .input(bytes(&[1, 8, 1, 2], &x))
            .gives(0.0, &[bytes(&[1, 2, 2, 4], expected)]);
    };
    mode(
        "DCR",
        &[0, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10, 14, 11, 15],
    );
    mode(
        "CRD",
        &[0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15],
    );
    NodeTest::new("SpaceToDepth")
        .attribute("blocksize", Attribute::Int(2))
        .input(bytes(&[1, 2, 2, 4], &x))
        .gives(
            0.0,
            &[bytes(
                &[1, 8, 1, 2],
                &[0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15],
            )],
        );
}

#[test]
fn channels_come_first_in_depth_where_the_mode_says_so() {
    let x: Vec<u8> = (0..16).collect();
    NodeTest::new("SpaceToDepth")
        .attribute("blocksize", Attribute::Int(2))
        .attribute("mode", Attribute::String("CRD".to_owned()))
        .input(bytes(&[1, 2, 2, 4], &x))
        .gives(
            0.0,
            &[bytes(
                &[1, 8, 1, 2],
                &[0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15],
            )],
        );
}

#[test]
fn tiles_repeat_every_axis() {
    NodeTest::new("Tile")
        .input(bytes(&[2, 2], &[1, 2, 3, 4]))
        .constant(i64s(&[2], &[2, 2]))
        .gives(
            0.0,
            &[bytes(
                &[4, 4],
                &[1, 2, 1, 2, 3, 4, 3, 4, 1, 2, 1, 2, 3, 4, 3, 4],
            )],
        );
}
