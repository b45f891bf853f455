//! Weights that are stored in half precision and computed with in single precision.

use super::source::{KernelError, unsupported};
use crate::graph::{f16_to_f32, f64_to_f16};

/// The largest relative L2 distance that rounding to half precision may make. Numbers of all sizes
/// that it holds in full move by 2e-4 together; those below 6e-5 have fewer digits.
const MOST_LOST: f64 = 2.5e-4;

/// Returns whether half precision holds each of these numbers as it is.
pub fn are_halves(numbers: &[f32]) -> bool {
    let is_half = |number: &f32| {
        let half = f16_to_f32(f64_to_f16((*number).into()));
        half.to_bits() == number.to_bits()
    };
    numbers.iter().all(is_half)
}

/// Returns the bits of the nearest numbers of half precision.
///
/// # Errors
/// [`KernelError::Unsupported`] if a number is too large for it, or too much gets lost.
pub(super) fn halved(numbers: &[f32]) -> Result<Vec<u16>, KernelError> {
    let halves: Vec<u16> = numbers.iter().map(|&v| f64_to_f16(v.into())).collect();
    let (mut lost, mut norm) = (0.0, 0.0);
    for (&number, &half) in numbers.iter().zip(&halves) {
        let half = f16_to_f32(half);
        if !half.is_finite() {
            return Err(unsupported("a weight is too large for half precision"));
        }
        lost += f64::from(number - half).powi(2);
        norm += f64::from(number).powi(2);
    }
    if lost > norm * MOST_LOST.powi(2) {
        return Err(unsupported("weights lose too much in half precision"));
    }
    Ok(halves)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is left of numbers, or why they are refused.
    fn check(numbers: &[f32]) -> Result<Vec<f32>, String> {
        let halves = halved(numbers).map_err(|error| error.to_string())?;
        Ok(halves.into_iter().map(f16_to_f32).collect())
    }

    #[test]
    fn numbers_of_ordinary_sizes_are_rounded() {
        let numbers: Vec<f32> = (1..1000).map(|i| (i as f32).sqrt() / 37.0).collect();
        assert!(!are_halves(&numbers));
        let rounded = check(&numbers).unwrap();
        assert!(are_halves(&rounded));
        for (number, half) in numbers.iter().zip(&rounded) {
            assert!((number - half).abs() <= number * 2f32.powi(-11));
        }
        assert_eq!(check(&[0.0, -0.0, 1.0]).unwrap(), [0.0, -0.0, 1.0]);
        assert!(are_halves(&[0.0, -0.0, 65504.0, 2f32.powi(-24)]));
    }

    #[test]
    fn what_half_precision_does_not_hold_is_refused() {
        assert!(check(&[1.0, 65520.0]).unwrap_err().contains("too large"));
        let tiny: Vec<f32> = (1..100).map(|i| i as f32 * 1.3e-7).collect();
        assert!(check(&tiny).unwrap_err().contains("lose too much"));
        assert!(!are_halves(&[65520.0]) && !are_halves(&[1e-8]));
    }
}
