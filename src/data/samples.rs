//! Samples ready to be fed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{DataError, DataErrorKind};
use crate::digest::{Digest, Encoder};
use crate::graph::Tensor;

/// Calibration samples that there must be at least: ranges of values are taken from them.
pub const MIN_CALIBRATION: usize = 16;

/// Inputs of a model, and what is right if that is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    /// Where they are from.
    pub path: PathBuf,
    /// Inputs by name, for each sample.
    pub inputs: Vec<BTreeMap<String, Tensor>>,
    /// The right class of each sample.
    pub labels: Option<Vec<u32>>,
    /// What identifies the inputs of each sample.
    pub digests: Vec<Digest>,
}

impl Samples {
    /// Takes in samples.
    pub(super) fn new(
        path: &Path,
        inputs: Vec<BTreeMap<String, Tensor>>,
        labels: Option<Vec<u32>>,
    ) -> Self {
        Self {
            digests: inputs.iter().map(digest).collect(),
            path: path.to_owned(),
            inputs,
            labels,
        }
    }

    /// Returns what identifies all of them, labels included.
    pub fn digest(&self) -> Digest {
        let mut encoder = Encoder::new("metainfer samples v1");
        for digest in &self.digests {
            encoder.digest(digest);
        }
        for label in self.labels.iter().flatten() {
            encoder.u64(u64::from(*label) + 1);
        }
        encoder.finish()
    }

    /// Checks that there are at least `needed`.
    ///
    /// # Errors
    /// [`DataErrorKind::TooFew`].
    pub fn expect(&self, needed: usize) -> Result<(), DataError> {
        let found = self.inputs.len();
        if found >= needed {
            return Ok(());
        }
        Err(self.error(DataErrorKind::TooFew { found, needed }))
    }

    /// Checks that labels name one of so many classes.
    ///
    /// # Errors
    /// [`DataErrorKind::Label`] names the first that does not.
    pub fn expect_classes(&self, classes: usize) -> Result<(), DataError> {
        let mut labels = self.labels.iter().flatten().enumerate();
        let wrong = labels.find(|(_, label)| **label as usize >= classes);
        match wrong {
            None => Ok(()),
            Some((sample, label)) => Err(self.error(DataErrorKind::Label {
                sample,
                found: *label,
                classes,
            })),
        }
    }

    /// Checks that no sample is one of `others`.
    ///
    /// # Errors
    /// [`DataErrorKind::Overlap`] names the first pair.
    pub fn expect_disjoint(&self, others: &Self) -> Result<(), DataError> {
        let mut known: BTreeMap<&Digest, usize> = BTreeMap::new();
        for (idx, digest) in others.digests.iter().enumerate() {
            known.entry(digest).or_insert(idx);
        }
        let mut own = self.digests.iter().enumerate();
        match own.find_map(|(own, digest)| Some((own, *known.get(digest)?))) {
            None => Ok(()),
            Some((own, other)) => Err(self.error(DataErrorKind::Overlap {
                own,
                other,
                with: others.path.clone(),
            })),
        }
    }

    fn error(&self, kind: DataErrorKind) -> DataError {
        DataError {
            path: self.path.clone(),
            kind: Box::new(kind),
        }
    }
}

fn digest(inputs: &BTreeMap<String, Tensor>) -> Digest {
    let mut encoder = Encoder::new("metainfer sample v1");
    for (name, tensor) in inputs {
        encoder.str(name);
        encoder.str(&tensor.dtype().to_string());
        encoder.str(&tensor.shape().to_string());
        encoder.digest(&Digest::of_bytes(
            "metainfer sample elements v1",
            &tensor.data().to_le_bytes(),
        ));
    }
    encoder.finish()
}
