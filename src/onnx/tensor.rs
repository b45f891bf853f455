//! Constant tensors of a file, inline or in files next to it.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use super::error::Problem;
use super::proto;
use crate::graph::{DType, Shape, Tensor, TensorData};

/// Most bytes that one tensor may have in an external file.
const MAX_EXTERNAL_BYTES: u64 = 1 << 33;

/// Reads tensors of one model.
pub(super) struct TensorReader {
    /// Directory of the model.
    directory: PathBuf,
}

impl TensorReader {
    /// Reads external data relative to a model's directory.
    pub(super) fn new(model: &Path) -> Self {
        let directory = model.parent().unwrap_or(Path::new("")).to_owned();
        Self { directory }
    }

    /// Reads a tensor; `name` is for messages.
    pub(super) fn read(&self, name: &str, tensor: &proto::Tensor<'_>) -> Result<Tensor, Problem> {
        let bad = |detail: String| Problem::Tensor {
            tensor: name.to_owned(),
            detail,
        };
        let dtype = DType::from_onnx(tensor.data_type).ok_or_else(|| Problem::UnsupportedType {
            value: name.to_owned(),
            dtype: type_name(tensor.data_type),
        })?;
        let dims: Option<Vec<usize>> = tensor.dims.iter().map(|&d| d.try_into().ok()).collect();
        let shape =
            Shape(dims.ok_or_else(|| bad(format!("its dimensions are {:?}", tensor.dims)))?);
        let n_elements = shape
            .checked_len()
            .filter(|&len| len <= 1 << 31)
            .ok_or_else(|| Problem::TooLarge {
                value: name.to_owned(),
                shape: shape.clone(),
            })?;
        let n_bytes = n_elements * dtype.bytes();
        let data = if tensor.is_external {
            let bytes = self.external(name, tensor, n_bytes)?;
            from_le_bytes(dtype, &bytes)
        } else if let Some(raw) = tensor.raw.filter(|raw| !raw.is_empty() || n_bytes == 0) {
            if raw.len() != n_bytes {
                let has = raw.len();
                return Err(bad(format!(
                    "{dtype} {shape} needs {n_bytes} bytes, it has {has}"
                )));
            }
            from_le_bytes(dtype, raw)
        } else {
            from_fields(dtype, tensor)
        };
        Tensor::new(shape, data).map_err(|error| bad(error.to_string()))
    }

    fn external(
        &self,
        name: &str,
        tensor: &proto::Tensor<'_>,
        n_bytes: usize,
    ) -> Result<Vec<u8>, Problem> {
        let entries: BTreeMap<&str, &str> = tensor.external.iter().copied().collect();
        let location = entries.get("location").copied().unwrap_or_default();
        let bad = |detail: String| Problem::External {
            tensor: name.to_owned(),
            location: location.to_owned(),
            detail,
        };
        let number = |key: &str, default: u64| match entries.get(key) {
            Some(text) => text
                .parse::<u64>()
                .map_err(|_| bad(format!("its {key} is `{text}`"))),
            None => Ok(default),
        };
        let relative = Path::new(location);
        let is_inside = relative
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if location.is_empty() || !is_inside {
            return Err(bad(
                "only files in the model's directory are read".to_owned()
            ));
        }
        let offset = number("offset", 0)?;
        let length = number("length", n_bytes as u64)?;
        if length != n_bytes as u64 || length > MAX_EXTERNAL_BYTES {
            return Err(bad(format!(
                "{n_bytes} bytes are needed, its length is {length}"
            )));
        }
        let path = self.directory.join(relative);
        let mut file = std::fs::File::open(&path).map_err(|source| {
            if source.kind() == std::io::ErrorKind::NotFound {
                return Problem::ExternalMissing {
                    tensor: name.to_owned(),
                    path: path.clone(),
                };
            }
            Problem::Read {
                path: path.clone(),
                source,
            }
        })?;
        let failed = |source| Problem::Read {
            path: path.clone(),
            source,
        };
        let available = file.metadata().map_err(failed)?.len();
        if offset.checked_add(length).is_none_or(|end| end > available) {
            return Err(bad(format!(
                "bytes {offset} to {} are needed, the file has {available}",
                offset.saturating_add(length)
            )));
        }
        let mut bytes = vec![0; n_bytes];
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        file.read_exact(&mut bytes).map_err(failed)?;
        Ok(bytes)
    }
}

/// Returns the name of a `TensorProto.DataType` for messages.
pub(super) fn type_name(data_type: i64) -> String {
    let name = match data_type {
        0 => "undefined",
        8 => "string",
        14 => "complex64",
        15 => "complex128",
        16 => "bfloat16",
        17..=20 => "float8",
        21 => "uint4",
        22 => "int4",
        23 => "float4e2m1",
        other => {
            return DType::from_onnx(other).map_or(format!("{other}"), |dtype| dtype.to_string());
        }
    };
    name.to_owned()
}

/// Reads little-endian elements; what is left over at the end is dropped.
pub(super) fn from_le_bytes(dtype: DType, bytes: &[u8]) -> TensorData {
    macro_rules! numbers {
        ($type:ty) => {{
            let (chunks, _) = bytes.as_chunks::<{ size_of::<$type>() }>();
            chunks
                .iter()
                .map(|chunk| <$type>::from_le_bytes(*chunk))
                .collect()
        }};
    }
    match dtype {
        DType::F32 => TensorData::F32(numbers!(f32)),
        DType::F16 => TensorData::F16(numbers!(u16)),
        DType::F64 => TensorData::F64(numbers!(f64)),
        DType::I8 => TensorData::I8(numbers!(i8)),
        DType::U8 => TensorData::U8(bytes.to_vec()),
        DType::I16 => TensorData::I16(numbers!(i16)),
        DType::U16 => TensorData::U16(numbers!(u16)),
        DType::I32 => TensorData::I32(numbers!(i32)),
        DType::U32 => TensorData::U32(numbers!(u32)),
        DType::I64 => TensorData::I64(numbers!(i64)),
        DType::U64 => TensorData::U64(numbers!(u64)),
        DType::Bool => TensorData::Bool(bytes.iter().map(|&v| v != 0).collect()),
    }
}

/// Narrow types are kept in the integer fields, f16 as its bits.
fn from_fields(dtype: DType, tensor: &proto::Tensor<'_>) -> TensorData {
    macro_rules! ints {
        ($type:ty) => {
            tensor.ints.iter().map(|&v| v as $type).collect()
        };
    }
    match dtype {
        DType::F32 => TensorData::F32(tensor.floats.clone()),
        DType::F64 => TensorData::F64(tensor.doubles.clone()),
        DType::F16 => TensorData::F16(ints!(u16)),
        DType::I8 => TensorData::I8(ints!(i8)),
        DType::U8 => TensorData::U8(ints!(u8)),
        DType::I16 => TensorData::I16(ints!(i16)),
        DType::U16 => TensorData::U16(ints!(u16)),
        DType::I32 => TensorData::I32(ints!(i32)),
        DType::U32 => TensorData::U32(ints!(u32)),
        DType::I64 => TensorData::I64(tensor.ints.clone()),
        DType::U64 => TensorData::U64(ints!(u64)),
        DType::Bool => TensorData::Bool(tensor.ints.iter().map(|&v| v != 0).collect()),
    }
}
