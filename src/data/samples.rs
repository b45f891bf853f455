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
    /// The right class of each sample, or of each entry of its batch, sample by sample.
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

    /// Returns the right classes of a sample, one for each entry of its batch; none if they are not
    /// known.
    pub fn labels_of(&self, sample: usize) -> &[u32] {
        let Some(labels) = &self.labels else {
            return &[];
        };
        let n = labels.len() / self.inputs.len().max(1);
        labels.get(sample * n..(sample + 1) * n).unwrap_or_default()
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

    /// Checks that labels, if there are any, name one of so many classes for each row of the output.
    ///
    /// # Errors
    /// [`DataErrorKind::Label`] names the first that does not, [`DataErrorKind::Rows`] says that there
    /// are not as many labels as rows.
    pub fn expect_classes(&self, rows: usize, classes: usize) -> Result<(), DataError> {
        for sample in 0..self.inputs.len() {
            let labels = self.labels_of(sample);
            if !labels.is_empty() && labels.len() != rows {
                let found = labels.len();
                return Err(self.error(DataErrorKind::Rows { found, rows }));
            }
            if let Some(&found) = labels.iter().find(|&&label| label as usize >= classes) {
                return Err(self.error(DataErrorKind::Label {
                    sample,
                    found,
                    classes,
                }));
            }
        }
        Ok(())
    }

    /// Checks that answers can be counted as right or wrong.
    ///
    /// # Errors
    /// [`DataErrorKind::NoTop1`] if there are no labels.
    pub fn expect_labels(&self) -> Result<(), DataError> {
        match self.labels {
            Some(_) => Ok(()),
            None => Err(self.error(DataErrorKind::NoTop1 {
                reason: "these samples have no labels",
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

    /// Returns a mistake in these samples.
    pub fn error(&self, kind: DataErrorKind) -> DataError {
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
