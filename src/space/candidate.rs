//! A candidate: one variant with one mapping, self-describing.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Variant;
use crate::digest::{Digest, Digestible, Encoder};

/// The value of one parameter of a mapping.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ParamValue {
    /// A number, e.g. a tile width.
    Int(i64),
    /// A word, e.g. a layout.
    Word(String),
}

/// What is given about a subgraph and its device, by name, e.g. `ow` or `registers`.
pub type Facts = BTreeMap<String, ParamValue>;

/// How a subgraph is executed: parameter names and values, sorted by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mapping(pub BTreeMap<String, ParamValue>);

/// One way to run one subgraph.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Candidate {
    /// How it computes.
    pub variant: Variant,
    /// How it is executed.
    pub mapping: Mapping,
}

impl Mapping {
    /// Returns a parameter's number.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.0.get(name) {
            Some(ParamValue::Int(value)) => Some(*value),
            _ => None,
        }
    }

    /// Returns a parameter's word.
    pub fn word(&self, name: &str) -> Option<&str> {
        match self.0.get(name) {
            Some(ParamValue::Word(value)) => Some(value),
            _ => None,
        }
    }

    /// Sets a parameter and returns the mapping.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<ParamValue>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }
}

impl From<i64> for ParamValue {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for ParamValue {
    fn from(value: &str) -> Self {
        Self::Word(value.to_owned())
    }
}

impl fmt::Display for ParamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => value.fmt(f),
            Self::Word(value) => value.fmt(f),
        }
    }
}

impl fmt::Display for Mapping {
    /// Formats as `name=value name=value`, sorted by name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (idx, (name, value)) in self.0.iter().enumerate() {
            let separator = if idx == 0 { "" } else { " " };
            write!(f, "{separator}{name}={value}")?;
        }
        Ok(())
    }
}

impl Digestible for Candidate {
    fn digest(&self, encoder: &mut Encoder) {
        encoder.str(&self.variant.to_string());
        encoder.u64(self.mapping.0.len() as u64);
        for (name, value) in &self.mapping.0 {
            encoder.str(name);
            match value {
                ParamValue::Int(value) => {
                    encoder.u64(0);
                    encoder.i64(*value);
                }
                ParamValue::Word(word) => {
                    encoder.u64(1);
                    encoder.str(word);
                }
            }
        }
    }
}

impl Candidate {
    /// Returns the digest that identifies this choice.
    pub fn id(&self) -> Digest {
        Digest::of("metainfer candidate v1", self)
    }
}
