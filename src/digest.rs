//! Stable digests: a [`Digest`] is a blake3 hash over an encoding that [`Digestible`] fixes.
//!
//! The encoding is length-prefixed and little-endian, each digest starts with a domain tag, and a
//! key version is part of the tag. A wrong key hands someone another model's label, so a pinned
//! test fails whenever the encoding moves.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A full-width blake3 hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// A value with a stable encoding.
pub trait Digestible {
    /// Writes the value to the encoder: every field, in a fixed order.
    fn digest(&self, encoder: &mut Encoder);
}

/// Writes values into a hash without ambiguity.
pub struct Encoder {
    hasher: blake3::Hasher,
}

/// A text that is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a digest: expected 64 hexadecimal digits")]
pub struct ParseDigestError(String);

impl Digest {
    /// Hashes a value under a domain tag such as `metainfer structure v1`.
    pub fn of<T: Digestible + ?Sized>(domain: &str, value: &T) -> Self {
        let mut encoder = Encoder::new(domain);
        value.digest(&mut encoder);
        encoder.finish()
    }

    /// Hashes plain bytes under a domain tag.
    pub fn of_bytes(domain: &str, bytes: &[u8]) -> Self {
        let mut encoder = Encoder::new(domain);
        encoder.bytes(bytes);
        encoder.finish()
    }

    /// Returns the first 12 hexadecimal digits, for people and file names, never for keys.
    pub fn short(&self) -> String {
        self.to_string()[..12].to_owned()
    }

    /// Returns the hash.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Encoder {
    /// Starts an encoding in a domain.
    pub fn new(domain: &str) -> Self {
        let mut encoder = Self {
            hasher: blake3::Hasher::new(),
        };
        encoder.bytes(domain.as_bytes());
        encoder
    }

    /// Writes bytes, prefixed with their number.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.hasher.update(bytes);
    }

    /// Writes a string, prefixed with its length in bytes.
    pub fn str(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Writes an integer, little-endian.
    pub fn u64(&mut self, value: u64) {
        self.hasher.update(&value.to_le_bytes());
    }

    /// Writes an integer, little-endian two's complement.
    pub fn i64(&mut self, value: i64) {
        self.hasher.update(&value.to_le_bytes());
    }

    /// Writes the bits of a float; all NaNs are one, and -0 is not 0.
    pub fn f32(&mut self, value: f32) {
        let value = if value.is_nan() { f32::NAN } else { value };
        self.hasher.update(&value.to_bits().to_le_bytes());
    }

    /// Writes another digest.
    pub fn digest(&mut self, digest: &Digest) {
        self.hasher.update(&digest.0);
    }

    /// Ends the encoding.
    pub fn finish(self) -> Digest {
        Digest(*self.hasher.finalize().as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({})", self.short())
    }
}

impl FromStr for Digest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        blake3::Hash::from_hex(text)
            .map(|hash| Self(*hash.as_bytes()))
            .map_err(|_| ParseDigestError(text.to_owned()))
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_pinned() {
        let mut encoder = Encoder::new("metainfer test v1");
        encoder.str("conv");
        encoder.u64(3);
        encoder.i64(-1);
        encoder.f32(0.5);
        assert_eq!(
            encoder.finish().to_string(),
            "24ea2e7800b1d1633080577ea54ed290e05c244d47cb388e757b139b818c8e6d"
        );
    }

    #[test]
    fn length_prefixes_keep_neighbours_apart() {
        let digest = |parts: [&str; 2]| {
            let mut encoder = Encoder::new("t");
            encoder.str(parts[0]);
            encoder.str(parts[1]);
            encoder.finish()
        };
        assert_ne!(digest(["ab", "c"]), digest(["a", "bc"]));
    }

    #[test]
    fn text_round_trips() {
        let digest = Digest::of_bytes("t", b"x");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert!("zz".parse::<Digest>().is_err());
    }
}
