//! How sums of products of integers become results: scaled, added to, rounded.
//!
//! Zero points go into what sums begin with, which keeps them exact. Where every operator of an
//! epilogue grows with its operand, the scale of the result goes into the factors and its zero
//! point into the biases: most results then take one multiply-add before they are rounded.

use minijinja::value::Serde;
use minijinja::{Value, context};
use serde::Serialize;

use super::source::KernelError;
use crate::backend::native::spec::{Epilogue, Quantized, literal};

/// Products of one output channel.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    /// Sum of the weights.
    pub weights: i64,
    /// Sum of their magnitudes.
    pub magnitudes: i64,
}

/// What each output channel begins with and is scaled by, and the operators on results.
#[derive(Debug)]
pub(super) struct Results {
    starts: Vec<i32>,
    factors: Vec<f32>,
    biases: Vec<f32>,
    /// What templates read as `c.results`.
    pub facts: Value,
}

/// An operator on results; fields are f32 literals.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
enum Op {
    Given(Epilogue),
    Made(Made),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Made {
    /// The residual as it is stored, less its zero point if that is not in the bias, times a factor.
    AddScaled { zero: String, factor: String },
    /// `HardSwish` of something scaled, plus a number.
    ScaledHardSwish {
        limit: String,
        slope: String,
        zero: String,
    },
    /// At least a number.
    Least { value: String },
    /// At most a number.
    Most { value: String },
    /// A multiply-add.
    Scale { factor: String, zero: String },
    /// Added.
    Add { value: String },
}

/// Results beyond this are far outside of u8, and are clamped before they become i32.
const LARGE: f32 = 1e9;

impl Results {
    /// Folds scales and zero points together; `sums` has an element for each output channel.
    ///
    /// # Errors
    /// [`KernelError::Unsupported`] if a scale has no inverse.
    pub(super) fn new(
        quantized: &Quantized,
        bias: &[f32],
        epilogue: &[Epilogue],
        sums: &[Sums],
    ) -> Result<Self, KernelError> {
        let zero_point = i64::from(quantized.x.zero_point);
        // Sums wrap around in between; what they end with fits.
        let starts = sums.iter().map(|s| (-zero_point * s.weights) as i32);
        let factors = quantized.weight_scales.iter();
        let mut results = Self {
            starts: starts.collect(),
            factors: factors.map(|scale| scale * quantized.x.scale).collect(),
            biases: bias.to_vec(),
            facts: Value::UNDEFINED,
        };
        let residual = quantized.residual.map(|r| (r.scale, r.zero_point));
        let mut ops: Vec<Op> = epilogue.iter().cloned().map(Op::Given).collect();
        let mut scaled = 1.0;
        if let Some(y) = quantized.y {
            let inverse = 1.0 / y.scale;
            if !inverse.is_normal() {
                return Err(KernelError::Unsupported(
                    "the scale of the result has no inverse".to_owned(),
                ));
            }
            let zero = y.zero_point as f32;
            if let Some(made) = results.fold(epilogue, residual, inverse, zero) {
                ops = made;
            } else {
                scaled = inverse;
                ops.push(Op::Made(Made::Scale {
                    factor: literal(inverse),
                    zero: literal(zero),
                }));
            }
            let is_bounded = epilogue.iter().all(|op| {
                matches!(
                    op,
                    Epilogue::Relu | Epilogue::Clip { .. } | Epilogue::HardSwish
                )
            });
            if !is_bounded || results.largest(sums) * scaled >= LARGE {
                ops.push(Op::Made(Made::Most {
                    value: literal(LARGE),
                }));
            }
        }
        let (residual_scale, residual_zero) = residual.unwrap_or((1.0, 0));
        results.facts = context! {
            ops => Value::from(Serde(&ops)), rounds => quantized.y.is_some(),
            residual => context! {
                rounded => residual.is_some(), scale => literal(residual_scale),
                zero => (residual_zero != 0).then(|| literal(residual_zero as f32)),
            },
            scale => literal(quantized.y.map_or(1.0, |y| y.scale)),
            zero => quantized.y.map_or(0, |y| y.zero_point),
        };
        Ok(results)
    }

    /// Returns the operators on results that are multiplied by `factor` and then have `zero` added,
    /// and scales factors and biases; `None` if an operator does not grow with its operand.
    fn fold(
        &mut self,
        epilogue: &[Epilogue],
        residual: Option<(f32, i32)>,
        factor: f32,
        zero: f32,
    ) -> Option<Vec<Op>> {
        let number = |text: &str| text.trim_end_matches("f32").parse::<f32>().ok();
        // What is added as long as all operators before only add; the zero point is, too, if none
        // but the last does anything else, or that clamps.
        let mut shift = 0.0;
        let clamps = |op: &Epilogue| matches!(op, Epilogue::Relu | Epilogue::Clip { .. });
        let adds = |op: &Epilogue| matches!(op, Epilogue::AddTensor | Epilogue::AddConst { .. });
        let n_adds = epilogue.iter().take_while(|op| adds(op)).count();
        let clamped = n_adds + 1 == epilogue.len() && clamps(&epilogue[n_adds]);
        let early = n_adds == epilogue.len() || clamped;
        if early {
            shift = zero;
        }
        let mut ops = Vec::new();
        for (idx, op) in epilogue.iter().enumerate() {
            let is_last = idx + 1 == epilogue.len();
            match op {
                Epilogue::AddTensor => {
                    let (scale, zero_point) = residual.unwrap_or((1.0, 0));
                    let early = idx < n_adds;
                    let offset = zero_point as f32;
                    if early {
                        shift -= offset * scale * factor;
                    }
                    ops.push(Made::AddScaled {
                        zero: if early || zero_point == 0 {
                            String::new()
                        } else {
                            literal(offset)
                        },
                        factor: literal(scale * factor),
                    });
                }
                Epilogue::AddConst { value } if idx < n_adds => shift += number(value)? * factor,
                Epilogue::AddConst { value } => ops.push(Made::Add {
                    value: literal(number(value)? * factor),
                }),
                Epilogue::Relu if early => {
                    if zero > 0.0 {
                        ops.push(Made::Least {
                            value: literal(zero),
                        });
                    }
                }
                Epilogue::Relu => ops.push(Made::Least {
                    value: literal(0.0),
                }),
                Epilogue::Clip { low, high } => {
                    let shift = if early { zero } else { 0.0 };
                    let [low, high] = [number(low)?, number(high)?].map(|v| v * factor + shift);
                    // Rounding clamps to the range of u8 anyway.
                    if !early || low > 0.0 {
                        ops.push(Made::Least {
                            value: literal(low),
                        });
                    }
                    if !early || high < 255.0 {
                        ops.push(Made::Most {
                            value: literal(high),
                        });
                    }
                }
                Epilogue::HardSwish => ops.push(Made::ScaledHardSwish {
                    limit: literal(3.0 * factor),
                    slope: literal(1.0 / (6.0 * factor)),
                    zero: literal(if is_last { zero } else { 0.0 }),
                }),
                _ => return None,
            }
        }
        let ends_with_gate = matches!(epilogue.last(), Some(Epilogue::HardSwish));
        if !early && !ends_with_gate && zero > 0.0 {
            ops.push(Made::Add {
                value: literal(zero),
            });
        }
        for value in &mut self.factors {
            *value *= factor;
        }
        for value in &mut self.biases {
            *value = *value * factor + shift;
        }
        Some(ops.into_iter().map(Op::Made).collect())
    }

    /// Returns the largest magnitude that a result can have before the epilogue.
    fn largest(&self, sums: &[Sums]) -> f32 {
        let magnitudes = sums.iter().map(|s| s.magnitudes as f32 * 255.0);
        let scaled = magnitudes.zip(&self.factors).zip(&self.biases);
        let results = scaled.map(|((sum, factor), bias)| sum * factor.abs() + bias.abs());
        let known = results.map(|v| if v.is_nan() { f32::INFINITY } else { v });
        known.fold(0.0, f32::max)
    }

    /// Appends three numbers a channel, each array with room for `padded` of them: what sums begin
    /// with, factors and biases; `place` says where a channel stands.
    pub(super) fn pack(&self, padded: usize, place: impl Fn(usize) -> usize) -> Vec<u8> {
        let mut packed = vec![0; 3 * 4 * padded];
        let channels = self.starts.iter().zip(&self.factors).zip(&self.biases);
        for (channel, ((start, factor), bias)) in channels.enumerate() {
            let numbers = [
                start.to_le_bytes(),
                factor.to_le_bytes(),
                bias.to_le_bytes(),
            ];
            for (idx, bytes) in numbers.iter().enumerate() {
                let at = (idx * padded + place(channel)) * 4;
                packed[at..at + 4].copy_from_slice(bytes);
            }
        }
        packed
    }
}

/// Sums up the weights of each output channel, which lie together.
pub(super) fn sums_of_rows(weights: &[i8], per_channel: usize) -> Vec<Sums> {
    let rows = weights.chunks_exact(per_channel.max(1));
    rows.map(|row| row.iter().fold(Sums::default(), |sums, &w| sums.and(w)))
        .collect()
}

impl Sums {
    /// Returns the sums with one more weight.
    #[must_use]
    pub(super) fn and(self, weight: i8) -> Self {
        Self {
            weights: self.weights + i64::from(weight),
            magnitudes: self.magnitudes + i64::from(weight).abs(),
        }
    }
}

/// Puts the weight of tap `tap` (of four) and output `lane` of a vector where the instruction set
/// expects it; returns its place within the `4 · lanes` bytes.
pub(super) fn place_of(halves: bool, lanes: usize, lane: usize, tap: usize) -> usize {
    if halves {
        tap % 2 * 2 * lanes + lane * 2 + tap / 2
    } else {
        lane * 4 + tap
    }
}
