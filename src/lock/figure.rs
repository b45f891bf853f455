//! Measured figures: rounded, and sticky within the noise.

use std::fmt;

/// A measured figure, not negative, of three significant digits.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Figure(f64);

impl Figure {
    /// Rounds a value; `None` if it is negative, infinite or not a number.
    pub fn new(value: f64) -> Option<Self> {
        if !value.is_finite() || value < 0.0 {
            return None;
        }
        // Through text, so that the value is the one nearest to what a reader sees.
        let rounded: f64 = format!("{value:.2e}").parse().ok()?;
        rounded.is_finite().then_some(Self(rounded + 0.0))
    }

    /// Returns the old figure if the new value is within `noise` (a fraction of the old one) of
    /// it, the new value rounded otherwise; `None` if that is no figure.
    pub fn settle(old: Option<Self>, new: f64, noise: f64) -> Option<Self> {
        match old {
            Some(old) if (new - old.0).abs() <= noise * old.0 => Some(old),
            _ => Self::new(new),
        }
    }

    /// Returns the value.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Figure {
    /// Formats as a TOML float: `1.83`, `12.0`, `3.1e-7`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0;
        if value == 0.0 || (1e-3..1e6).contains(&value) {
            write!(f, "{value:?}")
        } else {
            write!(f, "{value:e}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: f64, expected: &str) {
        assert_eq!(Figure::new(value).unwrap().to_string(), expected);
    }

    #[test]
    fn figures_have_three_digits_and_read_well() {
        check(0.0, "0.0");
        check(-0.0, "0.0");
        check(1.0, "1.0");
        check(1.8349, "1.83");
        check(1.835_1, "1.84");
        check(12_345.6, "12300.0");
        check(0.009_999_9, "0.01");
        check(3.1415e-7, "3.14e-7");
        check(1.5e9, "1.5e9");
    }

    #[test]
    fn what_is_not_a_figure_is_refused() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0] {
            assert_eq!(Figure::new(value), None);
        }
        assert_eq!(Figure::settle(Figure::new(1.0), f64::NAN, 0.1), None);
    }

    #[test]
    fn settle_moves_only_out_of_the_noise() {
        let old = Figure::new(2.0);
        assert_eq!(Figure::settle(old, 2.05, 0.03), old);
        assert_eq!(Figure::settle(old, 1.95, 0.03), old);
        assert_eq!(Figure::settle(old, 2.07, 0.03), Figure::new(2.07));
        assert_eq!(Figure::settle(None, 2.0, 0.03), old);
        assert_eq!(
            Figure::settle(Figure::new(0.0), 0.0, 0.03),
            Figure::new(0.0)
        );
    }
}
