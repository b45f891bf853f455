//! Sizes as people write them.

use std::fmt;
use std::str::FromStr;

/// A number of bytes, written as `512 MiB` or `1.5 GiB`: a number, and a unit of B, KiB, MiB, GiB or
/// TiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// What a size looks like, for messages.
pub const SIZE: &str = "a size such as `512 MiB` or `4 GiB`";

/// A text that is no size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected {SIZE}")]
pub struct ParseSizeError;

/// Units and the exponents of two that they stand for, the largest first.
const UNITS: [(&str, u32); 5] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];

impl FromStr for Size {
    type Err = ParseSizeError;

    fn from_str(text: &str) -> Result<Self, ParseSizeError> {
        let at = text.find(|c: char| c.is_ascii_alphabetic());
        let (number, unit) = text.split_at(at.ok_or(ParseSizeError)?);
        let unit = UNITS.iter().find(|(name, _)| *name == unit);
        let &(_, exponent) = unit.ok_or(ParseSizeError)?;
        let number = number.trim();
        let is_plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
        let value: f64 = number.parse().map_err(|_| ParseSizeError)?;
        let bytes = value * 2f64.powi(exponent as i32);
        // As far as numbers with a point are exact.
        if !is_plain || bytes < 1.0 || bytes >= 2f64.powi(53) {
            return Err(ParseSizeError);
        }
        Ok(Self(bytes as u64))
    }
}

impl fmt::Display for Size {
    /// Writes the largest unit of which it is a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_whole = |exponent: u32| self.0.trailing_zeros() >= exponent && self.0 > 0;
        let unit = UNITS.iter().find(|&&(_, exponent)| is_whole(exponent));
        let &(name, exponent) = unit.unwrap_or(&UNITS[UNITS.len() - 1]);
        write!(f, "{} {name}", self.0 >> exponent)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_a_number_and_a_binary_unit() {
        for (text, bytes) in [
            ("1B", 1),
            ("4 GiB", 4 << 30),
            ("512MiB", 512 << 20),
            ("1.5 KiB", 1536),
            ("8191 TiB", 8191 << 40),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in [
            "", "4", "GiB", "4 GB", "4 gib", "-1 GiB", "0 GiB", "nan B", "1e3 B", "8192 TiB",
            "1 GiB 2", "inf B", ".", ". B", "0.5 B",
        ] {
            assert_eq!(text.parse::<Size>(), Err(ParseSizeError), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_size_reads_as_it_is_written(bytes in 1u64..1 << 53) {
            prop_assert_eq!(Size(bytes).to_string().parse(), Ok(Size(bytes)));
        }
    }
}
