//! Tensors in files: what goes into a case and what comes out.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use metainfer::graph::{DType, Tensor};
use safetensors::{Dtype, SafeTensors};

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
            dtype: dtype(view.dtype())?,
            shape: view.shape().to_vec(),
            bytes: view.data().to_vec(),
        };
        Ok((name, values))
    });
    values.collect()
}

fn dtype(dtype: Dtype) -> Result<DType> {
    Ok(match dtype {
        Dtype::F32 => DType::F32,
        Dtype::F16 => DType::F16,
        Dtype::F64 => DType::F64,
        Dtype::I8 => DType::I8,
        Dtype::U8 => DType::U8,
        Dtype::I16 => DType::I16,
        Dtype::U16 => DType::U16,
        Dtype::I32 => DType::I32,
        Dtype::U32 => DType::U32,
        Dtype::I64 => DType::I64,
        Dtype::U64 => DType::U64,
        Dtype::BOOL => DType::Bool,
        other => bail!("there is no element type for {other:?}"),
    })
}
