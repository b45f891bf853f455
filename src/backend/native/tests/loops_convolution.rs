//! Convolutions of any rank, against the definition.

use super::node::{NodeTest, f32s, tensor};
use crate::graph::{Attribute, Tensor, TensorData};

/// A convolution over spatial axes of one kind of extents.
struct Case {
    op: &'static str,
    groups: usize,
    x: Vec<usize>,
    w: Vec<usize>,
    y: Vec<usize>,
    stride: Vec<i64>,
    dilation: Vec<i64>,
    /// Padding before each axis.
    begin: Vec<i64>,
}

fn places(dims: &[usize]) -> Vec<Vec<usize>> {
    dims.iter().fold(vec![Vec::new()], |places, &extent| {
        places
            .iter()
            .flat_map(|place| {
                (0..extent).map(move |i| place.iter().copied().chain([i]).collect::<Vec<_>>())
            })
            .collect()
    })
}

fn at(dims: &[usize], place: &[usize]) -> usize {
    dims.iter().zip(place).fold(0, |at, (dim, i)| at * dim + i)
}

/// Small whole numbers, so that sums are exact in every type.
fn numbers(n: usize, seed: usize) -> Vec<f32> {
    (0..n)
        .map(|i| ((i * 7 + seed * 3 + i / 5) % 11) as f32 - 5.0)
        .collect()
}

impl Case {
    /// Adds every product of an input element and a weight where it belongs.
    fn expected(&self, x: &[f32], w: &[f32], b: &[f32]) -> Vec<f32> {
        let mut y = vec![0.0; self.y.iter().product()];
        let per_group = self.y[1] / self.groups;
        for place in places(&self.y) {
            y[at(&self.y, &place)] = b[place[1]];
        }
        let is_transposed = self.op == "ConvTranspose";
        for from in places(&self.x) {
            for tap in places(&self.w) {
                let group = from[1] / (self.x[1] / self.groups);
                let (c, m) = if is_transposed {
                    (tap[0], group * per_group + tap[1])
                } else {
                    (tap[1] + group * self.w[1], tap[0])
                };
                if c != from[1] || m / per_group != group {
                    continue;
                }
                let mut to = vec![from[0], m];
                for axis in 0..self.stride.len() {
                    let (i, k) = (from[axis + 2] as i64, tap[axis + 2] as i64);
                    let shift = k * self.dilation[axis] - self.begin[axis];
                    let o = match is_transposed {
                        true => i * self.stride[axis] + shift,
                        false if (i - shift) % self.stride[axis] == 0 => {
                            (i - shift) / self.stride[axis]
                        }
                        false => -1,
                    };
                    to.push(usize::try_from(o).unwrap_or(usize::MAX));
                }
                if to.iter().zip(&self.y).all(|(o, extent)| o < extent) {
                    y[at(&self.y, &to)] += x[at(&self.x, &from)] * w[at(&self.w, &tap)];
                }
            }
        }
        y
    }

    fn check(self, attributes: &[(&str, Attribute)], in_type: fn(Vec<f32>) -> TensorData) {
        let x = numbers(self.x.iter().product(), 1);
        let w = numbers(self.w.iter().product(), 2);
        let b = numbers(self.y[1], 3);
        let y = self.expected(&x, &w, &b);
        let of = |dims: &[usize], data| tensor(dims, in_type(data));
        let mut test = NodeTest::new(self.op)
            .attribute("group", Attribute::Int(self.groups as i64))
            .attribute("strides", Attribute::Ints(self.stride.clone()))
            .attribute("dilations", Attribute::Ints(self.dilation.clone()));
        for (name, value) in attributes {
            test = test.attribute(name, value.clone());
        }
        test.input(of(&self.x, x))
            .input(of(&self.w, w))
            .constant(of(&[b.len()], b))
            .gives(1e-6, &[of(&self.y, y)]);
    }
}

fn pads(pads: &[i64]) -> (&'static str, Attribute) {
    ("pads", Attribute::Ints(pads.to_vec()))
}

fn halves(data: Vec<f32>) -> TensorData {
    // Whole numbers below 2048 are exact: shift the fraction, change the exponent's bias.
    let half = |v: f32| match v.to_bits() {
        bits if v == 0.0 => (bits >> 16) as u16,
        bits => {
            let exponent = (bits >> 23 & 0xff) as u16 - 112;
            (bits >> 16 & 0x8000) as u16 | exponent << 10 | (bits >> 13 & 0x3ff) as u16
        }
    };
    TensorData::F16(data.into_iter().map(half).collect())
}

fn doubles(data: Vec<f32>) -> TensorData {
    TensorData::F64(data.into_iter().map(f64::from).collect())
}

#[test]
fn weights_may_be_computed() {
    Case {
        op: "Conv",
        groups: 2,
        x: vec![2, 4, 5, 21],
        w: vec![10, 2, 3, 3],
        y: vec![2, 10, 3, 21],
        stride: vec![2, 1],
        dilation: vec![1, 2],
        begin: vec![1, 2],
    }
    .check(&[pads(&[1, 2, 1, 2])], TensorData::F32);
}

#[test]
fn rows_with_strides_are_sums_of_runs() {
    Case {
        op: "Conv",
        groups: 1,
        x: vec![1, 2, 9],
        w: vec![3, 2, 4],
        y: vec![1, 3, 4],
        stride: vec![3],
        dilation: vec![1],
        begin: vec![2],
    }
    .check(&[pads(&[2, 3])], TensorData::F32);
}

#[test]
fn three_axes_and_other_floats_convolve() {
    let case = || Case {
        op: "Conv",
        groups: 1,
        x: vec![1, 2, 4, 3, 6],
        w: vec![3, 2, 2, 3, 3],
        y: vec![1, 3, 3, 3, 3],
        stride: vec![1, 1, 2],
        dilation: vec![1, 1, 1],
        begin: vec![0, 1, 1],
    };
    let same = [pads(&[0, 1, 1, 0, 1, 0])];
    case().check(&same, TensorData::F32);
    case().check(&same, halves);
    case().check(&same, doubles);
}

#[test]
fn windows_may_move_over_the_output() {
    Case {
        op: "ConvTranspose",
        groups: 1,
        x: vec![1, 3, 4, 32],
        w: vec![3, 6, 2, 2],
        y: vec![1, 6, 8, 64],
        stride: vec![2, 2],
        dilation: vec![1, 1],
        begin: vec![0, 0],
    }
    .check(&[], TensorData::F32);
    let odd = || Case {
        op: "ConvTranspose",
        groups: 2,
        x: vec![2, 4, 3, 9],
        w: vec![4, 3, 3, 4],
        y: vec![2, 6, 6, 28],
        stride: vec![2, 3],
        dilation: vec![1, 2],
        begin: vec![1, 2],
    };
    let attributes = [
        pads(&[1, 2, 0, 2]),
        ("output_padding", Attribute::Ints(vec![0, 1])),
    ];
    odd().check(&attributes, TensorData::F32);
    odd().check(&attributes, doubles);
}

#[test]
fn the_output_may_say_the_padding() {
    let case = |begin| Case {
        op: "ConvTranspose",
        groups: 1,
        x: vec![1, 2, 5],
        w: vec![2, 2, 4],
        y: vec![1, 2, 11],
        stride: vec![2],
        dilation: vec![1],
        begin: vec![begin],
    };
    let stated = ("output_shape", Attribute::Ints(vec![11]));
    let mode = |mode: &str| ("auto_pad", Attribute::String(mode.to_owned()));
    case(1).check(std::slice::from_ref(&stated), TensorData::F32);
    case(0).check(&[stated, mode("SAME_UPPER")], TensorData::F32);
}

#[test]
fn a_bias_is_optional() {
    let data: &[f32] = &[1.0, 2.0, 3.0];
    let x: Tensor = f32s(&[1, 1, 3], data);
    NodeTest::new("ConvTranspose")
        .input(x)
        .constant(f32s(&[1, 1, 2], &[1.0, 10.0]))
        .gives(0.0, &[f32s(&[1, 1, 4], &[1.0, 12.0, 23.0, 30.0])]);
}
