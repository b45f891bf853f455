//! How a subgraph computes: what may change its numbers, in words.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Numeric format that a subgraph computes in.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// IEEE 754 binary32 throughout.
    #[default]
    F32,
    /// 8-bit weights and activations, sums of 32 bits.
    Int8,
}

/// What a subgraph is replaced by.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Structure {
    /// Nothing else.
    #[default]
    Kept,
    /// A convolution in groups.
    Grouped {
        /// Their number, at least 2.
        groups: u32,
    },
    /// A depthwise convolution and a pointwise one.
    Separable {
        /// Filters of each input channel.
        rank: u32,
    },
    /// A convolution with fewer channels between it and the next.
    Channels {
        /// Channels before.
        from: u32,
        /// Channels kept.
        to: u32,
    },
    /// Its mean: the branch that it ends is left out.
    Dropped,
    /// The weights of another subgraph.
    Shared {
        /// Index of that one.
        with: u32,
    },
}

/// How a subgraph computes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Variant {
    /// Numeric format.
    pub precision: Precision,
    /// What it is replaced by.
    #[serde(default, skip_serializing_if = "Structure::is_kept")]
    pub structure: Structure,
}

/// A text that names no variant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no variant: one is `f32`, `int8`, `dwsep r2 int8` or `channels 128→96`")]
pub struct ParseVariantError(String);

impl Precision {
    const ALL: [Self; 2] = [Self::F32, Self::Int8];

    /// Returns the word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Int8 => "int8",
        }
    }
}

impl Structure {
    /// Returns whether nothing is replaced.
    pub fn is_kept(&self) -> bool {
        *self == Self::Kept
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept => f.write_str("kept"),
            Self::Grouped { groups } => write!(f, "grouped g{groups}"),
            Self::Separable { rank } => write!(f, "dwsep r{rank}"),
            Self::Channels { from, to } => write!(f, "channels {from}→{to}"),
            Self::Dropped => f.write_str("dropped"),
            Self::Shared { with } => write!(f, "shared s{with}"),
        }
    }
}

impl fmt::Display for Variant {
    /// Formats as the structure, if another one, and the precision, if it is not that of the model or
    /// the only word.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.structure, self.precision) {
            (Structure::Kept, precision) => precision.fmt(f),
            (structure, Precision::F32) => structure.fmt(f),
            (structure, precision) => write!(f, "{structure} {precision}"),
        }
    }
}

impl FromStr for Variant {
    type Err = ParseVariantError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let failed = || ParseVariantError(text.to_owned());
        let words: Vec<&str> = text.split(' ').collect();
        let last = words.last().ok_or_else(failed)?;
        let precision = Precision::ALL.into_iter().find(|p| p.name() == *last);
        let structure = &words[..words.len() - usize::from(precision.is_some())];
        let number = |text: &str, prefix: &str| -> Option<u32> {
            let digits = text.strip_prefix(prefix)?;
            let number: u32 = digits.parse().ok()?;
            (number.to_string() == digits).then_some(number)
        };
        let structure = match structure {
            [] if precision.is_some() => Some(Structure::Kept),
            ["grouped", groups] => number(groups, "g").map(|groups| Structure::Grouped { groups }),
            ["dwsep", rank] => number(rank, "r").map(|rank| Structure::Separable { rank }),
            ["channels", change] => change.split_once('→').and_then(|(from, to)| {
                Some(Structure::Channels {
                    from: number(from, "")?,
                    to: number(to, "")?,
                })
            }),
            ["dropped"] => Some(Structure::Dropped),
            ["shared", with] => number(with, "s").map(|with| Structure::Shared { with }),
            _ => None,
        };
        Ok(Self {
            structure: structure.ok_or_else(failed)?,
            precision: precision.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn variants() -> impl Strategy<Value = Variant> {
        let structure = prop_oneof![
            Just(Structure::Kept),
            (2u32..64).prop_map(|groups| Structure::Grouped { groups }),
            (1u32..9).prop_map(|rank| Structure::Separable { rank }),
            (1u32..999, 1u32..999).prop_map(|(from, to)| Structure::Channels { from, to }),
            Just(Structure::Dropped),
            (0u32..999).prop_map(|with| Structure::Shared { with }),
        ];
        let precision = prop_oneof![Just(Precision::F32), Just(Precision::Int8)];
        (precision, structure).prop_map(|(precision, structure)| Variant {
            precision,
            structure,
        })
    }

    proptest! {
        #[test]
        fn words_say_everything(variant in variants()) {
            prop_assert_eq!(variant.to_string().parse(), Ok(variant));
        }

        #[test]
        fn any_text_is_a_variant_or_an_error(text in "\\PC*") {
            if let Ok(variant) = text.parse::<Variant>() {
                prop_assert_eq!(variant.to_string().parse(), Ok(variant));
            }
        }
    }

    #[test]
    fn the_default_is_what_the_model_says() {
        assert_eq!(Variant::default().to_string(), "f32");
        let text = r#"{"precision":"f32"}"#;
        assert_eq!(serde_json::to_string(&Variant::default()).unwrap(), text);
    }
}
