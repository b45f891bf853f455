//! Tensors in files: what goes into a case and what comes out.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use metainfer::graph::{DType, Tensor};
use metainfer::onnx::element_type;
use safetensors::SafeTensors;

/// A dense row-major tensor.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Values {
    /// Element type.
    pub(super) dtype: DType,
    /// Shape.
    pub(super) shape: Vec<usize>,
    /// Elements, little-endian.
    pub(super) bytes: Vec<u8>,
}

impl From<&Tensor> for Values {
    fn from(tensor: &Tensor) -> Self {
        Self {
            dtype: tensor.dtype(),
            shape: tensor.shape().dims().to_vec(),
            bytes: tensor.data().to_le_bytes(),
        }
    }
}

/// Reads the tensors of a file by name.
///
/// # Errors
/// If it cannot be read or holds other types than those of a graph.
pub(super) fn read(path: &Path) -> Result<BTreeMap<String, Values>> {
    let bytes = fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let tensors = SafeTensors::deserialize(&bytes)
        .with_context(|| format!("`{}` is no safetensors file", path.display()))?;
    let values = tensors.tensors().into_iter().map(|(name, view)| {
        let values = Values {
            dtype: element_type(view.dtype())
                .with_context(|| format!("there is no element type for {:?}", view.dtype()))?,
            shape: view.shape().to_vec(),
            bytes: view.data().to_vec(),
        };
        Ok((name, values))
    });
    values.collect()
}
