//! How numbers are rounded to 8-bit integers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::graph::ValueId;

/// What values were seen to lie between.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// The smallest.
    pub min: f32,
    /// The largest.
    pub max: f32,
}

/// An integer `q` stands for `scale · (q − zero)`, `q` from 0 to 255.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Affine {
    /// What one step is worth; positive and normal.
    pub scale: f32,
    /// What stands for zero.
    pub zero: u8,
}

/// How the values of a model are rounded.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Roundings {
    /// By value, for all who read it.
    pub affine: BTreeMap<ValueId, Affine>,
    /// By value, for the layers that multiply it: where channels differ too much for one scale.
    pub equal: BTreeMap<ValueId, Equal>,
}

/// What makes the channels of a value alike before it is rounded; weights make up for it (Xiao et al.,
/// `SmoothQuant`, ICML 2023).
#[derive(Debug, Clone, PartialEq)]
pub struct Equal {
    /// What each channel, along the last axis, is divided by; positive.
    pub factors: Vec<f32>,
    /// How the quotients are rounded.
    pub affine: Affine,
}

/// Shares of a range that are tried: a narrower one clips what is rare and has finer steps.
pub const SHARES: [f32; 8] = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3];

/// How many times as large as the middle one the largest channel is at least for channels to be made
/// alike.
const UNEQUAL: f32 = 4.0;

/// Squared errors of rounding with each of [`SHARES`] of a range.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Spread {
    /// By share.
    pub squared: [f64; SHARES.len()],
}

impl Default for Range {
    fn default() -> Self {
        Self {
            min: f32::INFINITY,
            max: f32::NEG_INFINITY,
        }
    }
}

impl Range {
    /// Takes in some values.
    pub fn widen(&mut self, values: &[f32]) {
        for &value in values {
            self.min = self.min.min(value);
            self.max = self.max.max(value);
        }
    }

    /// Returns the smallest range that holds both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    /// Returns a share of the range, from zero on.
    #[must_use]
    pub fn share(self, share: f32) -> Self {
        Self {
            min: self.min * share,
            max: self.max * share,
        }
    }
}

impl Equal {
    /// Returns what divides the channels of a value so that neither it nor the weights that multiply it
    /// have far larger channels than others: `x` are the ranges of its channels, and `weights` the
    /// largest magnitudes of what multiplies each. `None` if they are much alike already.
    pub fn of(x: &[Range], weights: &[f32]) -> Option<Self> {
        let magnitudes: Vec<f32> = x
            .iter()
            .map(|range| range.max.abs().max(range.min.abs()))
            .collect();
        let mut sorted = magnitudes.clone();
        sorted.sort_by(f32::total_cmp);
        let (middle, largest) = (sorted.get(sorted.len() / 2)?, sorted.last()?);
        if !largest.is_normal() || *largest < UNEQUAL * middle {
            return None;
        }
        let factor = |(x, w): (&f32, &f32)| {
            // A channel of nothing but zeros is as good as any.
            let factor = (x.max(largest * 1e-4) / w.max(f32::MIN_POSITIVE)).sqrt();
            if factor.is_normal() { factor } else { 1.0 }
        };
        let factors: Vec<f32> = magnitudes.iter().zip(weights).map(factor).collect();
        let quotients = x
            .iter()
            .zip(&factors)
            .map(|(range, factor)| range.share(1.0 / factor));
        Some(Self {
            affine: Affine::of(quotients.fold(Range::default(), Range::union)),
            factors,
        })
    }
}

impl Affine {
    /// Returns what spreads the integers over a range and over zero, which has an integer of its own:
    /// borders are filled with it.
    pub fn of(range: Range) -> Self {
        let (min, max) = (range.min.min(0.0), range.max.max(0.0));
        let scale = (max - min) / 255.0;
        if !scale.is_normal() {
            // Nothing but zeros, or nothing was seen.
            return Self {
                scale: 1.0,
                zero: 0,
            };
        }
        Self {
            scale,
            zero: (-min / scale).round_ties_even().clamp(0.0, 255.0) as u8,
        }
    }

    /// Returns the number that stands for the integer next to `value`.
    pub fn round(self, value: f32) -> f32 {
        let zero = f32::from(self.zero);
        let q = ((value / self.scale).round_ties_even() + zero).clamp(0.0, 255.0);
        (q - zero) * self.scale
    }
}

impl Spread {
    /// Adds the squared errors of some values that lie in `range`; every `stride`-th is looked at.
    pub fn add(&mut self, range: Range, values: &[f32], stride: usize) {
        for (squared, share) in self.squared.iter_mut().zip(SHARES) {
            let affine = Affine::of(range.share(share));
            let errors = values.iter().step_by(stride.max(1)).map(|&value| {
                let error = f64::from(affine.round(value) - value);
                error * error
            });
            *squared += errors.sum::<f64>();
        }
    }

    /// Adds what was found elsewhere for the same range.
    pub fn merge(&mut self, other: &Self) {
        for (own, other) in self.squared.iter_mut().zip(&other.squared) {
            *own += other;
        }
    }

    /// Returns the share of the range with the least error here, if `held_out` confirms that it is
    /// better than all of the range; else 1.
    pub fn best_share(&self, held_out: &Self) -> f32 {
        let best =
            (0..SHARES.len()).min_by(|&lhs, &rhs| self.squared[lhs].total_cmp(&self.squared[rhs]));
        match best {
            Some(best) if held_out.squared[best] < held_out.squared[0] => SHARES[best],
            _ => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_that_are_alike_stay_as_they_are_and_others_meet_the_weights_half_way() {
        let range = |max: f32| Range { min: -max, max };
        assert_eq!(
            Equal::of(&[range(1.0), range(2.0), range(3.0)], &[1.0; 3]),
            None
        );
        let x = [range(1.0), range(1.0), range(16.0)];
        let equal = Equal::of(&x, &[1.0, 0.25, 1.0]).unwrap();
        assert!(
            equal
                .factors
                .iter()
                .zip([1.0, 2.0, 4.0])
                .all(|(f, e)| (f - e).abs() < 1e-6)
        );
        assert!((equal.affine.scale - 8.0 / 255.0).abs() < 1e-6);
    }

    #[test]
    fn zero_has_an_integer_of_its_own() {
        for (min, max) in [(-1.0, 3.0), (0.5, 2.0), (-4.0, -1.0), (0.0, 0.0)] {
            let affine = Affine::of(Range { min, max });
            assert!(affine.round(0.0).abs() <= 0.0, "{min} to {max}");
        }
    }

    #[test]
    fn rounding_is_off_by_half_a_step_at_most() {
        let range = Range {
            min: -1.5,
            max: 6.0,
        };
        let affine = Affine::of(range);
        for idx in 0..=1000 {
            let value = -1.5 + 7.5 * idx as f32 / 1000.0;
            assert!((affine.round(value) - value).abs() <= affine.scale * 0.500_1);
        }
    }

    #[test]
    fn outliers_narrow_the_range_only_if_held_out_values_agree() {
        let mut values: Vec<f32> = (0..4000)
            .map(|idx| (idx % 200) as f32 / 100.0 - 1.0)
            .collect();
        values.push(4.0);
        let range = Range {
            min: -1.0,
            max: 4.0,
        };
        let mut seen = Spread::default();
        seen.add(range, &values, 1);
        // One far value costs more than the finer steps of all others bring.
        assert!(seen.best_share(&seen) >= 1.0);
        let near = &values[..4000];
        let mut held_out = Spread::default();
        held_out.add(
            Range {
                min: -1.0,
                max: 4.0,
            },
            near,
            1,
        );
        let mut fitted = Spread::default();
        fitted.add(
            Range {
                min: -4.0,
                max: 4.0,
            },
            near,
            1,
        );
        assert!(fitted.best_share(&held_out) >= 1.0);
        assert!(fitted.best_share(&fitted) < 1.0);
    }
}
