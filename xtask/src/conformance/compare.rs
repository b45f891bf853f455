//! Comparing outputs with the expected ones, as the ONNX project's own runner does.

use metainfer::graph::{DType, f16_to_f32};

use super::values::Values;

/// How far a number may be from the expected one: `atol + rtol · |expected|`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tolerance {
    /// Relative part.
    pub(super) rtol: f64,
    /// Absolute part.
    pub(super) atol: f64,
}

/// Says how an output is not as expected. Types and shapes must be equal, floating-point numbers
/// within the tolerance (NaN equals NaN), integers and Booleans equal.
pub(super) fn difference(
    actual: &Values,
    expected: &Values,
    tolerance: Tolerance,
) -> Option<String> {
    if actual.dtype != expected.dtype {
        return Some(format!("is {}, not {}", actual.dtype, expected.dtype));
    }
    if actual.shape != expected.shape {
        return Some(format!("is {:?}, not {:?}", actual.shape, expected.shape));
    }
    let size = expected.dtype.bytes();
    let n_elements = expected.bytes.len() / size;
    let pairs = actual.bytes.chunks(size).zip(expected.bytes.chunks(size));
    let wrong = pairs
        .enumerate()
        .filter_map(|(idx, (actual, expected_bytes))| {
            if actual == expected_bytes {
                return None;
            }
            let dtype = expected.dtype;
            let (actual, expected) = (number(dtype, actual), number(dtype, expected_bytes));
            let excess = excess(dtype, actual, expected, tolerance)?;
            Some((excess, idx, actual, expected))
        });
    let wrong: Vec<_> = wrong.collect();
    let worst = wrong.iter().max_by(|lhs, rhs| lhs.0.total_cmp(&rhs.0))?;
    let (_, idx, actual, expected) = worst;
    Some(format!(
        "is wrong in {} of {n_elements} elements, most at {idx}: {actual}, not {expected}",
        wrong.len()
    ))
}

/// Returns by how much a number of other bits than expected is too far off; `None` if it is not.
fn excess(dtype: DType, actual: f64, expected: f64, tolerance: Tolerance) -> Option<f64> {
    let distance = (actual - expected).abs();
    if !matches!(dtype, DType::F16 | DType::F32 | DType::F64) {
        return Some(distance);
    }
    let allowed = tolerance.rtol.mul_add(expected.abs(), tolerance.atol);
    if (actual.is_nan() && expected.is_nan()) || (allowed.is_finite() && distance <= allowed) {
        return None;
    }
    // Two numbers without a distance, or an infinite one where another number is expected.
    let is_far = !distance.is_finite() || !allowed.is_finite();
    Some(if is_far {
        f64::INFINITY
    } else {
        distance - allowed
    })
}

/// Returns one element; integers beyond 2⁵³ are rounded, which only shows in messages.
fn number(dtype: DType, bytes: &[u8]) -> f64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let word = u64::from_le_bytes(wide);
    match dtype {
        DType::F32 => f32::from_bits(word as u32).into(),
        DType::F64 => f64::from_bits(word),
        DType::F16 => f16_to_f32(word as u16).into(),
        DType::I8 => f64::from(word as i8),
        DType::I16 => f64::from(word as i16),
        DType::I32 => f64::from(word as i32),
        DType::I64 => word as i64 as f64,
        DType::U8 | DType::U16 | DType::U32 | DType::U64 | DType::Bool => word as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLERANCE: Tolerance = Tolerance {
        rtol: 1e-3,
        atol: 1e-7,
    };

    fn f32s(numbers: &[f32]) -> Values {
        Values {
            dtype: DType::F32,
            shape: vec![numbers.len()],
            bytes: numbers.iter().flat_map(|n| n.to_le_bytes()).collect(),
        }
    }

    fn check(actual: &[f32], expected: &[f32], is_right: bool) {
        let difference = difference(&f32s(actual), &f32s(expected), TOLERANCE);
        assert_eq!(difference.is_none(), is_right, "{difference:?}");
    }

    #[test]
    fn numbers_are_right_within_the_tolerance() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        check(&[1.0, 2.0], &[1.0009, 2.0], true);
        check(&[1.0, 2.0], &[1.0, 2.003], false);
        check(&[9e-8], &[0.0], true);
        check(&[2e-7], &[0.0], false);
        check(&[nan, inf, -inf, -0.0], &[nan, inf, -inf, 0.0], true);
        for (actual, expected) in [(nan, 1.0), (1.0, nan), (inf, -inf), (1.0, inf), (inf, 1.0)] {
            check(&[actual], &[expected], false);
        }
        check(&[], &[], true);
    }

    #[test]
    fn the_worst_element_is_named() {
        let difference = difference(&f32s(&[1.0, 5.0, 3.5]), &f32s(&[1.0, 2.0, 3.0]), TOLERANCE);
        let expected = "is wrong in 2 of 3 elements, most at 1: 5, not 2";
        assert_eq!(difference.unwrap(), expected);
    }

    #[test]
    fn types_and_shapes_must_be_equal() {
        let column = Values {
            shape: vec![2, 1],
            ..f32s(&[1.0, 2.0])
        };
        let row = f32s(&[1.0, 2.0]);
        assert_eq!(
            difference(&column, &row, TOLERANCE).unwrap(),
            "is [2, 1], not [2]"
        );
        let ints = Values {
            dtype: DType::I32,
            ..row.clone()
        };
        assert_eq!(
            difference(&ints, &row, TOLERANCE).unwrap(),
            "is i32, not f32"
        );
    }

    #[test]
    fn integers_must_be_equal() {
        let ints = |numbers: &[i64]| Values {
            dtype: DType::I64,
            shape: vec![numbers.len()],
            bytes: numbers.iter().flat_map(|n| n.to_le_bytes()).collect(),
        };
        // Tolerances would allow both, and an f64 holds neither.
        let (lhs, rhs) = (ints(&[1 << 60, -5]), ints(&[(1 << 60) + 1, -5]));
        assert!(difference(&lhs, &rhs, TOLERANCE).is_some());
        assert!(difference(&lhs, &lhs, TOLERANCE).is_none());
    }

    #[test]
    fn halves_are_widened() {
        let close =
            |bits, expected: f64| assert!((f64::from(f16_to_f32(bits)) - expected).abs() < 1e-12);
        close(0x3c00, 1.0);
        close(0xc000, -2.0);
        close(0x0001, 2f64.powi(-24));
        close(0x7bff, 65504.0);
        assert!(f64::from(f16_to_f32(0xfc00)) < f64::MIN && f16_to_f32(0x7e00).is_nan());
    }
}
