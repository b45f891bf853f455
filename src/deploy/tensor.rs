//! Inputs and outputs as the templates see them, and text that is safe where they put it.

use serde::Serialize;

use super::DeployError;
use super::names::field_names;
use crate::backend::IoSpec;
use crate::graph::DType;

/// An input or output as the templates see it.
#[derive(Serialize)]
pub(super) struct Tensor {
    /// Name in the model, safe inside comments.
    label: String,
    /// Name in the model as a Rust string literal.
    literal: String,
    field: String,
    dtype: &'static str,
    rust_type: &'static str,
    c_type: &'static str,
    zero: &'static str,
    shape: Vec<usize>,
    len: usize,
}

/// Returns inputs or outputs for the templates.
///
/// # Errors
/// [`DeployError::TooLarge`] if one cannot be held in memory.
pub(super) fn tensors(specs: &[IoSpec]) -> Result<Vec<Tensor>, DeployError> {
    let fields = field_names(specs.iter().map(|spec| spec.name.as_str()));
    let tensor = |(spec, field): (&IoSpec, String)| {
        let len = spec.shape.checked_len();
        let fits = |len: &usize| {
            let bytes = len.checked_mul(spec.dtype.bytes());
            bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok())
        };
        Ok(Tensor {
            label: comment(&spec.name),
            literal: literal(&spec.name),
            field,
            dtype: spec.dtype.name(),
            rust_type: rust_type(spec.dtype),
            c_type: c_type(spec.dtype),
            zero: zero(spec.dtype),
            shape: spec.shape.dims().to_vec(),
            len: len
                .filter(fits)
                .ok_or_else(|| DeployError::TooLarge(spec.name.clone()))?,
        })
    };
    specs.iter().zip(fields).map(tensor).collect()
}

/// Returns text that ends no comment and no line, in Rust, C, TOML or Markdown.
pub(super) fn comment(text: &str) -> String {
    let line = text.escape_debug().to_string();
    line.replace("*/", "* /").replace("/*", "/ *")
}

/// Returns a Rust string literal; a NUL, which C strings cannot hold, becomes U+FFFD.
pub(super) fn literal(text: &str) -> String {
    format!("{:?}", text.replace('\0', "\u{fffd}"))
}

fn rust_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "u16",
        other => other.name(),
    }
}

fn zero(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 | DType::F64 => "0.0",
        DType::Bool => "false",
        _ => "0",
    }
}

fn c_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "float",
        DType::F64 => "double",
        DType::I8 => "int8_t",
        DType::U8 => "uint8_t",
        DType::I16 => "int16_t",
        DType::U16 | DType::F16 => "uint16_t",
        DType::I32 => "int32_t",
        DType::U32 => "uint32_t",
        DType::I64 => "int64_t",
        DType::U64 => "uint64_t",
        DType::Bool => "bool",
    }
}
