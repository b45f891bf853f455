//! Pools that have no tuned kernel.

use super::node::{NodeTest, f32s, i64s, tensor};
use crate::graph::{Attribute, Tensor, TensorData};

fn doubles(dims: &[usize], data: &[f64]) -> Tensor {
    tensor(dims, TensorData::F64(data.to_vec()))
}

fn ints(values: &[i64]) -> Attribute {
    Attribute::Ints(values.to_vec())
}

#[test]
fn max_pool_says_where_it_found_the_greatest() {
    NodeTest::new("MaxPool")
        .attribute("kernel_shape", ints(&[2]))
        .attribute("strides", ints(&[2]))
        .attribute("ceil_mode", Attribute::Int(1))
        .input(f32s(
            &[1, 2, 5],
            &[1., 5., 2., 4., 3., 0., -1., -3., -2., -7.],
        ))
        .gives(
            0.0,
            &[
                f32s(&[1, 2, 3], &[5., 4., 3., 0., -2., -7.]),
                i64s(&[1, 2, 3], &[1, 3, 4, 5, 8, 9]),
            ],
        );
    NodeTest::new("MaxPool")
        .attribute("kernel_shape", ints(&[2, 2]))
        .attribute("storage_order", Attribute::Int(1))
        .input(f32s(&[1, 1, 2, 3], &[1., 2., 3., 4., 6., 5.]))
        .gives(
            0.0,
            &[f32s(&[1, 1, 1, 2], &[6., 6.]), i64s(&[1, 1, 1, 2], &[3, 3])],
        );
}

#[test]
fn max_pool_takes_bytes_of_any_rank() {
    let bytes: Vec<i8> = (0..27).map(|i| (i * 5 % 27) as i8 - 20).collect();
    NodeTest::new("MaxPool")
        .attribute("kernel_shape", ints(&[2, 2, 2]))
        .attribute("dilations", ints(&[2, 2, 2]))
        .attribute("pads", ints(&[0, 0, 1, 0, 0, 0]))
        .input(tensor(&[1, 1, 3, 3, 3], TensorData::I8(bytes)))
        // The corners of the cube in columns 1, and 0 and 2.
        .gives(
            0.0,
            &[tensor(&[1, 1, 1, 1, 2], TensorData::I8(vec![-3, 2]))],
        );
}

#[test]
fn average_pool_counts_padding_where_asked() {
    let test = || {
        NodeTest::new("AveragePool")
            .attribute("kernel_shape", ints(&[2]))
            .attribute("dilations", ints(&[2]))
            .attribute("pads", ints(&[1, 1]))
            .input(doubles(&[1, 1, 4], &[2., 4., 6., 8.]))
    };
    test().gives(0.0, &[doubles(&[1, 1, 4], &[4., 4., 6., 6.])]);
    test()
        .attribute("count_include_pad", Attribute::Int(1))
        .gives(0.0, &[doubles(&[1, 1, 4], &[2., 4., 6., 3.])]);
}

#[test]
fn norms_are_of_any_power() {
    for (p, norm) in [(1, 7.0), (2, 5.0), (3, 4.497_941_4)] {
        NodeTest::new("LpPool")
            .attribute("kernel_shape", ints(&[2]))
            .attribute("p", Attribute::Int(p))
            .input(f32s(&[1, 1, 2], &[3., -4.]))
            .gives(1e-6, &[f32s(&[1, 1, 1], &[norm])]);
    }
    NodeTest::new("GlobalLpPool")
        .input(f32s(&[1, 2, 1, 2, 1], &[3., -4., 6., 8.]))
        .gives(1e-6, &[f32s(&[1, 2, 1, 1, 1], &[5., 10.])]);
}

#[test]
fn global_pools_take_any_rank() {
    let x = || doubles(&[1, 2, 1, 1, 2], &[1., 4., -2., -4.]);
    NodeTest::new("GlobalAveragePool")
        .input(x())
        .gives(0.0, &[doubles(&[1, 2, 1, 1, 1], &[2.5, -3.0])]);
    NodeTest::new("GlobalMaxPool")
        .input(x())
        .gives(0.0, &[doubles(&[1, 2, 1, 1, 1], &[4.0, -2.0])]);
}

#[test]
fn unpooling_puts_elements_back() {
    NodeTest::new("MaxUnpool")
        .attribute("kernel_shape", ints(&[2, 2]))
        .attribute("strides", ints(&[2, 2]))
        .input(f32s(&[1, 1, 1, 2], &[5., 6.]))
        .input(i64s(&[1, 1, 1, 2], &[5, 2]))
        .constant(i64s(&[4], &[1, 1, 2, 5]))
        .gives(
            0.0,
            &[f32s(
                &[1, 1, 2, 5],
                &[0., 0., 6., 0., 0., 0., 5., 0., 0., 0.],
            )],
        );
}
