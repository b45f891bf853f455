//! The reference file: what every value of the model should be.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use safetensors::SafeTensors;

use super::refusal::Refusal;
use crate::fsx;
use crate::graph::{DType, f16_to_f32};
use crate::onnx::element_type;

/// A reference file in memory.
#[derive(Debug)]
pub(super) struct Reference {
    path: PathBuf,
    stamp: Option<(u64, SystemTime)>,
    bytes: Vec<u8>,
}

/// One value of the reference, dense and row-major.
#[derive(Debug, Clone, Copy)]
pub(super) struct Values<'a> {
    pub(super) dtype: DType,
    pub(super) bytes: &'a [u8],
}

impl Reference {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Self, Refusal> {
        let stamp = stamp(path);
        let bytes = fsx::read(path).map_err(|error| Refusal::device_lost(error.to_string()))?;
        let reference = Self {
            path: path.to_owned(),
            stamp,
            bytes,
        };
        reference.tensors().map(|_| ())?;
        Ok(reference)
    }

    /// Returns whether this is still what the file at `path` says.
    pub(super) fn is_of(&self, path: &Path) -> bool {
        self.path == path && self.stamp.is_some() && self.stamp == stamp(path)
    }

    /// Returns a directory of the values.
    pub(super) fn tensors(&self) -> Result<Tensors<'_>, Refusal> {
        let path = &self.path;
        match SafeTensors::deserialize(&self.bytes) {
            Ok(tensors) => Ok(Tensors { path, tensors }),
            Err(error) => Err(Refusal::device_lost(format!(
                "the reference file `{}` cannot be used: {error}",
                path.display()
            ))),
        }
    }
}

/// The values of a reference file by name.
pub(super) struct Tensors<'a> {
    path: &'a Path,
    tensors: SafeTensors<'a>,
}

impl<'a> Tensors<'a> {
    /// Returns a value, which must have `n` elements.
    pub(super) fn get(&self, name: &str, n: usize) -> Result<Values<'a>, Refusal> {
        let path = self.path.display();
        let refuse = |what: String| {
            Err(Refusal::device_lost(format!(
                "the reference file `{path}` {what}"
            )))
        };
        let Ok(view) = self.tensors.tensor(name) else {
            return refuse(format!("has no value `{name}`"));
        };
        let Some(dtype) = element_type(view.dtype()) else {
            return refuse(format!("has `{name}` as {:?}", view.dtype()));
        };
        let bytes = view.data();
        if bytes.len() != n.saturating_mul(dtype.bytes()) {
            let shape = view.shape();
            return refuse(format!("has `{name}` as {shape:?}, expected {n} elements"));
        }
        Ok(Values { dtype, bytes })
    }
}

/// Returns element `idx` of dense values.
pub(super) fn element(dtype: DType, bytes: &[u8], idx: usize) -> f64 {
    fn at<const N: usize>(bytes: &[u8], idx: usize) -> [u8; N] {
        let mut element = [0; N];
        element.copy_from_slice(&bytes[idx * N..(idx + 1) * N]);
        element
    }
    match dtype {
        DType::F32 => f32::from_le_bytes(at(bytes, idx)).into(),
        DType::F64 => f64::from_le_bytes(at(bytes, idx)),
        DType::I8 => i8::from_le_bytes(at(bytes, idx)).into(),
        DType::U8 | DType::Bool => bytes[idx].into(),
        DType::I16 => i16::from_le_bytes(at(bytes, idx)).into(),
        DType::U16 => u16::from_le_bytes(at(bytes, idx)).into(),
        DType::I32 => i32::from_le_bytes(at(bytes, idx)).into(),
        DType::U32 => u32::from_le_bytes(at(bytes, idx)).into(),
        DType::I64 => i64::from_le_bytes(at(bytes, idx)) as f64,
        DType::U64 => u64::from_le_bytes(at(bytes, idx)) as f64,
        DType::F16 => f16_to_f32(u16::from_le_bytes(at(bytes, idx))).into(),
    }
}

fn stamp(path: &Path) -> Option<(u64, SystemTime)> {
    let metadata = path.metadata().ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}
