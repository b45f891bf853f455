//! Which elements of the input an element of the output is made of, and with which weights.
//!
//! Linear and cubic interpolation, the latter after Keys (1981); with `antialias` their kernels
//! are stretched by the scale where it makes the value smaller.

use super::axis::Axis;
use super::coordinate::Transformation;

/// How to interpolate along an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Interpolation {
    /// Keys' coefficient if it is cubic, else it is linear.
    pub(super) cubic: Option<f32>,
    /// Whether kernels are stretched.
    pub(super) antialias: bool,
    /// Whether elements outside of the input have no weight; else they are those at the edge.
    pub(super) exclude_outside: bool,
}

/// What the outputs along an axis are made of: `n` elements each.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Taps {
    pub(super) n: usize,
    /// Indices into the input, output by output.
    pub(super) indices: Vec<usize>,
    /// Their weights.
    pub(super) weights: Vec<f64>,
}

/// Returns the taps of an axis.
pub(super) fn taps(axis: &Axis, transformation: Transformation, how: Interpolation) -> Taps {
    let reach = if how.cubic.is_some() { 2.0 } else { 1.0 };
    let stretch = if how.antialias {
        f64::from(axis.scale).min(1.0)
    } else {
        1.0
    };
    // The first tap, counted from the element on the left, and as many on the other side. Scales
    // are positive; what is far beyond the input has no weight or that of the edge.
    let widest = axis.old as f64 + 4.0;
    let first = ((-reach / stretch).max(-widest).floor()) as i64 + 1;
    let n = 2 - 2 * first;
    let mut taps = Taps {
        n: n as usize,
        indices: Vec::new(),
        weights: Vec::new(),
    };
    for at in 0..axis.new {
        let place = f64::from(transformation.place(axis, at));
        let place = if place.is_finite() { place } else { 0.0 };
        let left = place.ceil() - 1.0;
        let ratio = place - left;
        let mut weights: Vec<f64> = (first..first + n)
            .map(|tap| kernel((tap as f64 - ratio) * stretch, how.cubic))
            .collect();
        let limit = axis.old as i64;
        let indices = (first..first + n).map(|tap| (left as i64).saturating_add(tap));
        let indices: Vec<i64> = indices.collect();
        if how.exclude_outside {
            for (weight, idx) in weights.iter_mut().zip(&indices) {
                if !(0..limit).contains(idx) {
                    *weight = 0.0;
                }
            }
        }
        let sum: f64 = weights.iter().sum();
        if (how.exclude_outside || how.antialias) && sum != 0.0 {
            for weight in &mut weights {
                *weight /= sum;
            }
        }
        taps.weights.extend(weights);
        taps.indices
            .extend(indices.iter().map(|&idx| idx.clamp(0, limit - 1) as usize));
    }
    taps
}

/// Returns the weight of an element at a distance.
fn kernel(distance: f64, cubic: Option<f32>) -> f64 {
    let x = distance.abs();
    let Some(a) = cubic.map(f64::from) else {
        return (1.0 - x).max(0.0);
    };
    if x <= 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    } else {
        0.0
    }
}

impl Taps {
    /// Returns whether every output is the input at the same place.
    pub(super) fn is_identity(&self, axis: &Axis) -> bool {
        axis.old == axis.new
            && (0..axis.new).all(|at| {
                (at * self.n..(at + 1) * self.n)
                    .all(|tap| self.indices[tap] == at || self.weights[tap] == 0.0)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: usize, new: usize, how: Interpolation, expected: &[&[(usize, f64)]]) {
        let axis = Axis {
            old,
            new,
            scale: new as f32 / old as f32,
            region: [0.0, 1.0],
        };
        let taps = taps(&axis, Transformation::HalfPixel, how);
        for (at, expected) in expected.iter().enumerate() {
            let mut sums = vec![0.0; old];
            for tap in at * taps.n..(at + 1) * taps.n {
                sums[taps.indices[tap]] += taps.weights[tap];
            }
            for (idx, sum) in sums.into_iter().enumerate() {
                let of = expected
                    .iter()
                    .find(|(i, _)| *i == idx)
                    .map_or(0.0, |e| e.1);
                assert!((sum - of).abs() < 1e-9, "{at}: {idx} has {sum}, not {of}");
            }
        }
    }

    const LINEAR: Interpolation = Interpolation {
        cubic: None,
        antialias: false,
        exclude_outside: false,
    };

    #[test]
    fn linear_taps_are_the_two_neighbours_or_the_edge() {
        check(
            2,
            4,
            LINEAR,
            &[
                &[(0, 1.0)],
                &[(0, 0.75), (1, 0.25)],
                &[(0, 0.25), (1, 0.75)],
                &[(1, 1.0)],
            ],
        );
    }

    #[test]
    fn antialias_stretches_the_kernel_by_the_scale() {
        let how = Interpolation {
            antialias: true,
            ..LINEAR
        };
        let eighth = 0.125;
        check(
            4,
            2,
            how,
            &[
                &[(0, 4.0 * eighth), (1, 3.0 * eighth), (2, eighth)],
                &[(1, eighth), (2, 3.0 * eighth), (3, 4.0 * eighth)],
            ],
        );
    }

    #[test]
    fn what_lies_outside_has_no_weight_where_it_is_excluded() {
        let how = Interpolation {
            exclude_outside: true,
            cubic: Some(-0.5),
            ..LINEAR
        };
        // At -0.25: weights of the elements at -2, -1, 0 and 1 are 0 (excluded), excluded, and two.
        let (zero, one) = (kernel(0.25, Some(-0.5)), kernel(1.25, Some(-0.5)));
        let sum = zero + one;
        check(2, 4, how, &[&[(0, zero / sum), (1, one / sum)]]);
    }
}
