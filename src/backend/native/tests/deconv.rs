//! Transposed convolution by phases, and values joined along the channels.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::node::{NodeTest, f32s, i64s};
use crate::graph::{Attribute, Tensor};

fn random(rng: &mut ChaCha8Rng, dims: &[usize]) -> (Tensor, Vec<f32>) {
    let n = dims.iter().product();
    let data: Vec<f32> = (0..n).map(|_| rng.random_range(-1.0..1.0)).collect();
    (f32s(dims, &data), data)
}

/// `ConvTranspose` by its definition, scattering each input.
fn check(
    groups: usize,
    channels: [usize; 2],
    size: [usize; 2],
    kernel: usize,
    stride: usize,
    pads: [usize; 4],
) {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let ([ic, oc], [ih, iw]) = (channels, size);
    let (x, x_data) = random(&mut rng, &[2, ic, ih, iw]);
    let (w, w_data) = random(&mut rng, &[ic, oc / groups, kernel, kernel]);
    let (b, b_data) = random(&mut rng, &[oc]);
    let oh = (ih - 1) * stride + kernel - pads[0] - pads[2];
    let ow = (iw - 1) * stride + kernel - pads[1] - pads[3];
    let mut y = vec![0f64; 2 * oc * oh * ow];
    for (idx, sum) in y.iter_mut().enumerate() {
        *sum = b_data[idx / (oh * ow) % oc].into();
    }
    for (idx, &value) in x_data.iter().enumerate() {
        let (n, c, i, j) = (
            idx / (ic * ih * iw),
            idx / (ih * iw) % ic,
            idx / iw % ih,
            idx % iw,
        );
        for o in 0..oc / groups {
            for (ky, kx) in (0..kernel).flat_map(|ky| (0..kernel).map(move |kx| (ky, kx))) {
                let row = (i * stride + ky).wrapping_sub(pads[0]);
                let column = (j * stride + kx).wrapping_sub(pads[1]);
                if row < oh && column < ow {
                    let channel = c / (ic / groups) * (oc / groups) + o;
                    let weight = w_data[((c * (oc / groups) + o) * kernel + ky) * kernel + kx];
                    y[((n * oc + channel) * oh + row) * ow + column] +=
                        f64::from(value) * f64::from(weight);
                }
            }
        }
    }
    let y: Vec<f32> = y.into_iter().map(|v| v as f32).collect();
    NodeTest::new("ConvTranspose")
        .attribute("group", Attribute::Int(groups as i64))
        .attribute("strides", Attribute::Ints(vec![stride as i64; 2]))
        .attribute(
            "pads",
            Attribute::Ints(pads.iter().map(|&p| p as i64).collect()),
        )
        .input(x)
        .constant(w)
        .constant(b)
        .gives(1e-5, &[f32s(&[2, oc, oh, ow], &y)]);
}

#[test]
fn a_transposed_convolution_is_one_convolution_a_phase() {
    check(1, [6, 10], [4, 5], 2, 2, [0, 0, 0, 0]);
    check(1, [9, 3], [5, 4], 3, 2, [1, 1, 1, 1]);
    check(1, [3, 8], [4, 4], 4, 2, [1, 1, 1, 1]);
    check(1, [5, 4], [3, 6], 3, 1, [0, 1, 1, 0]);
    check(2, [8, 16], [4, 3], 2, 2, [0, 0, 0, 0]);
    check(1, [3, 4], [4, 4], 5, 3, [1, 0, 2, 1]);
}

#[test]
fn pixels_are_repeated_and_left_out() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for (channels, [oh, ow]) in [(8, [6, 8]), (5, [3, 2]), (19, [6, 12])] {
        let (x, data) = random(&mut rng, &[2, channels, 3, 4]);
        let pixel = |i: usize| {
            let (plane, h, w) = (i / (oh * ow), i / ow % oh, i % ow);
            data[(plane * 3 + h * 3 / oh) * 4 + w * 4 / ow]
        };
        let y: Vec<f32> = (0..2 * channels * oh * ow).map(pixel).collect();
        let text = |word: &str| Attribute::String(word.to_owned());
        NodeTest::new("Resize")
            .attribute("coordinate_transformation_mode", text("asymmetric"))
            .attribute("nearest_mode", text("floor"))
            .input(x)
            .nothing()
            .nothing()
            .constant(i64s(&[4], &[2, channels as i64, oh as i64, ow as i64]))
            .gives(0.0, &[f32s(&[2, channels, oh, ow], &y)]);
    }
}

#[test]
fn values_are_joined_wherever_their_channels_begin() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    for channels in [[16, 16, 8], [3, 10, 1], [8, 5, 24]] {
        let mut node = NodeTest::new("Concat").attribute("axis", Attribute::Int(1));
        let mut parts = Vec::new();
        for c in channels {
            let (tensor, data) = random(&mut rng, &[2, c, 3, 4]);
            node = node.input(tensor);
            parts.push((c * 12, data));
        }
        let rows = (0..2).flat_map(|n| {
            let part =
                move |(size, data): &(usize, Vec<f32>)| data[n * size..(n + 1) * size].to_vec();
            parts.iter().flat_map(part).collect::<Vec<_>>()
        });
        let expected = f32s(&[2, channels.iter().sum(), 3, 4], &rows.collect::<Vec<_>>());
        node.gives(0.0, &[expected]);
    }
}
