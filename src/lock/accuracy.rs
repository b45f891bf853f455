//! What the accuracy of a deployment rests on.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Field, FieldValue, Figure};
use crate::digest::Digest;
use crate::space::Variant;

/// What variants of a model are judged by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Basis {
    /// Digest of the calibration and validation samples.
    pub samples: Digest,
    /// The limits, in words, e.g. `max-kl 0.01`.
    pub accept: String,
}

/// The accuracy of a deployment of a model with calibration samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Accuracy {
    /// What it was judged by.
    pub basis: Basis,
    /// What the last check found; `None` if nothing that changes numbers was chosen.
    pub gate: Option<GateFigures>,
    /// Variants by subgraph of the model as its file has it; those of others are the default.
    pub variants: BTreeMap<u32, Variant>,
}

/// What the last check found, on samples that nothing was fitted to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GateFigures {
    /// Samples.
    pub n_samples: u32,
    /// Largest relative L2 distance of an output to the untuned model's.
    pub relative_l2: Figure,
    /// Mean KL divergence from the untuned model, for classifiers.
    pub kl: Option<Figure>,
    /// Samples that only the untuned model gets right and that only this one does, if there are
    /// labels.
    pub paired: Option<[u32; 2]>,
}

impl Accuracy {
    pub(super) fn fields(&self) -> Vec<Field> {
        let field = |key: &'static str, value| Field {
            key: Cow::Borrowed(key),
            value,
        };
        let mut fields = vec![
            field("samples", FieldValue::Digest(self.basis.samples)),
            field("accept", FieldValue::Text(self.basis.accept.clone())),
        ];
        if let Some(gate) = self.gate {
            let count = |n: u32| FieldValue::Int(n.into());
            fields.push(field("gate.samples", count(gate.n_samples)));
            fields.push(field("gate.l2", FieldValue::Figure(gate.relative_l2)));
            fields.extend(gate.kl.map(|kl| field("gate.kl", FieldValue::Figure(kl))));
            if let Some([lost, gained]) = gate.paired {
                fields.push(field("gate.lost", count(lost)));
                fields.push(field("gate.gained", count(gained)));
            }
        }
        fields.extend(self.variants.iter().map(|(site, variant)| Field {
            key: Cow::Owned(format!("variants.s{site}")),
            value: FieldValue::Text(variant.to_string()),
        }));
        fields
    }
}
