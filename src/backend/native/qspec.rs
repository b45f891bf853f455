//! How kernels compute with 8-bit integers.

use super::spec::{Epilogue, literal};

/// How integers stand for numbers: `scale · (q − zero_point)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Affine {
    /// The number of one step.
    pub scale: f32,
    /// The u8 that stands for zero.
    pub zero_point: i32,
}

/// What makes a convolution, dense layer or matrix product one of integers.
///
/// `acc = Σ (x − x.zero_point) · w` is exact. `v = acc · x.scale · weight_scales[oc] + bias[oc]`
/// and the epilogue are f32, and the result is `round(v / y.scale) + y.zero_point`, ties to even,
/// clamped to `[0, 255]`. Kernels fold factors together, so that results next to a tie may differ
/// by one.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantized {
    /// The main input, u8.
    pub x: Affine,
    /// Weights of zero point 0 in the order of the f32 ones, which are left out then.
    pub weights: Vec<i8>,
    /// Scale of the weights by output channel.
    pub weight_scales: Vec<f32>,
    /// The result is rounded to u8 with this; `None`: it stays f32.
    pub y: Option<Affine>,
    /// How the residual is read, if it is u8; `None`: it is f32.
    pub residual: Option<Affine>,
    /// Whether the results are the sums themselves, i32, and the zero point of the input is not
    /// known before: it is an operand, and scales stand for nothing.
    pub sums: bool,
}

/// A function of 8 bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The result by what the bits are as an unsigned number: 256 of them.
    pub entries: Vec<u8>,
}

impl Affine {
    /// Returns what rounding to u8 and back does to a number.
    pub fn requantize(&self) -> Epilogue {
        let zero = self.zero_point as f32;
        Epilogue::Requantize {
            per_step: literal(1.0 / self.scale),
            low: literal(-zero),
            high: literal(255.0 - zero),
            step: literal(self.scale),
        }
    }
}
