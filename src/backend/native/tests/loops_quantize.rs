//! Quantised numbers.

use super::node::{NodeTest, f32s, tensor};
use crate::graph::{Attribute, Tensor, TensorData};

fn u8s(dims: &[usize], data: &[u8]) -> Tensor {
    tensor(dims, TensorData::U8(data.to_vec()))
}

fn i8s(dims: &[usize], data: &[i8]) -> Tensor {
    tensor(dims, TensorData::I8(data.to_vec()))
}

#[test]
fn numbers_are_rounded_to_even_and_saturated() {
    NodeTest::new("QuantizeLinear")
        .input(f32s(&[6], &[0.5, 1.5, 2.5, -1e9, 1e9, 3.0]))
        .constant(f32s(&[], &[1.0]))
        .constant(u8s(&[], &[10]))
        .gives(0.0, &[u8s(&[6], &[10, 12, 12, 0, 255, 13])]);
    NodeTest::new("QuantizeLinear")
        .attribute("axis", Attribute::Int(0))
        .input(f32s(&[2, 2], &[1.0, -1.0, 1.0, -1.0]))
        .constant(f32s(&[2], &[0.5, 0.25]))
        .constant(i8s(&[2], &[0, 1]))
        .gives(0.0, &[i8s(&[2, 2], &[2, -2, 5, -3])]);
}

#[test]
fn scales_belong_to_tensors_axes_and_blocks() {
    NodeTest::new("DequantizeLinear")
        .attribute("axis", Attribute::Int(-1))
        .input(u8s(&[2, 2], &[1, 2, 3, 4]))
        .constant(f32s(&[2], &[2.0, 0.5]))
        .constant(u8s(&[2], &[1, 0]))
        .gives(0.0, &[f32s(&[2, 2], &[0.0, 1.0, 4.0, 2.0])]);
    NodeTest::new("DequantizeLinear")
        .attribute("axis", Attribute::Int(0))
        .attribute("block_size", Attribute::Int(2))
        .input(i8s(&[3, 2], &[1, 2, 3, 4, 5, -6]))
        .constant(f32s(&[2, 2], &[1.0, 10.0, 100.0, 1000.0]))
        .gives(
            0.0,
            &[f32s(&[3, 2], &[1.0, 20.0, 3.0, 40.0, 500.0, -6000.0])],
        );
}

#[test]
fn the_range_follows_from_the_numbers() {
    NodeTest::new("DynamicQuantizeLinear")
        .input(f32s(&[3], &[-1.0, 0.0, 254.0]))
        .gives(
            0.0,
            &[u8s(&[3], &[0, 1, 255]), f32s(&[], &[1.0]), u8s(&[], &[1])],
        );
}

#[test]
fn sums_of_products_are_exact_and_zero_points_count() {
    NodeTest::new("MatMulInteger")
        .input(u8s(&[2, 2], &[255, 255, 1, 2]))
        .constant(i8s(&[2, 2], &[-128, 1, -128, 2]))
        .constant(u8s(&[1], &[1]))
        .constant(i8s(&[2], &[0, 1]))
        .gives(
            0.0,
            &[tensor(&[2, 2], TensorData::I32(vec![-65024, 254, -128, 1]))],
        );
    // Padding is the zero point.
    NodeTest::new("ConvInteger")
        .attribute("pads", Attribute::Ints(vec![1, 0]))
        .attribute("strides", Attribute::Ints(vec![2]))
        .input(u8s(&[1, 1, 4], &[2, 3, 4, 5]))
        .constant(u8s(&[1, 1, 2], &[1, 10]))
        .constant(u8s(&[], &[1]))
        .gives(0.0, &[tensor(&[1, 1, 2], TensorData::I32(vec![10, 32]))]);
}

#[test]
fn quantised_layers_scale_their_sums() {
    NodeTest::new("QLinearMatMul")
        .input(u8s(&[1, 2], &[3, 5]))
        .constant(f32s(&[], &[0.5]))
        .constant(u8s(&[], &[1]))
        .constant(u8s(&[2, 2], &[2, 4, 6, 8]))
        .constant(f32s(&[], &[0.5]))
        .constant(u8s(&[], &[0]))
        .constant(f32s(&[], &[0.25]))
        .constant(u8s(&[], &[7]))
        .gives(0.0, &[u8s(&[1, 2], &[35, 47])]);
    NodeTest::new("QLinearConv")
        .attribute("group", Attribute::Int(2))
        .input(u8s(&[1, 2, 1, 2], &[10, 20, 30, 40]))
        .constant(f32s(&[], &[1.0]))
        .constant(u8s(&[], &[10]))
        .constant(i8s(&[2, 1, 1, 1], &[1, 2]))
        .constant(f32s(&[2], &[1.0, 0.5]))
        .constant(i8s(&[2], &[0, 0]))
        .constant(f32s(&[], &[2.0]))
        .constant(u8s(&[], &[0]))
        .constant(tensor(&[2], TensorData::I32(vec![2, 4])))
        .gives(0.0, &[u8s(&[1, 2, 1, 2], &[1, 6, 11, 16])]);
}
