//! Elements of each type as Rust text: how they lie in memory, in which type they are computed, and
//! literals.

use crate::graph::{DType, Tensor, TensorData};

/// Returns the type of a variable that holds an element.
pub(super) fn rust_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "f32",
        other => other.name(),
    }
}

/// Returns the type of an element in memory.
pub(super) fn storage(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "u16",
        DType::Bool => "u8",
        other => other.name(),
    }
}

/// Returns the bytes of a variable of one of those types.
pub(super) fn bytes(rust_type: &str) -> usize {
    match rust_type {
        "f64" | "i64" | "u64" => 8,
        "f32" | "i32" | "u32" => 4,
        "i16" | "u16" => 2,
        _ => 1,
    }
}

/// Returns the expression that reads the element at a place.
pub(super) fn load(dtype: DType, place: &str) -> String {
    match dtype {
        DType::F16 => format!("from_f16(*{place})"),
        DType::Bool => format!("(*{place} != 0)"),
        _ => format!("*{place}"),
    }
}

/// Returns the expression of what is stored for a variable.
pub(super) fn store(dtype: DType, variable: &str) -> String {
    match dtype {
        DType::F16 => format!("to_f16({variable})"),
        DType::Bool => format!("{variable} as u8"),
        _ => variable.to_owned(),
    }
}

/// Returns the literal of a constant of one element.
pub(super) fn constant(tensor: &Tensor) -> Option<String> {
    if tensor.data().len() != 1 {
        return None;
    }
    Some(match tensor.data() {
        TensorData::F32(d) => float(d[0].into(), DType::F32),
        TensorData::F64(d) => float(d[0], DType::F64),
        TensorData::F16(d) => format!("from_f16({}u16)", d[0]),
        TensorData::I8(d) => format!("({}i8)", d[0]),
        TensorData::U8(d) => format!("{}u8", d[0]),
        TensorData::I16(d) => format!("({}i16)", d[0]),
        TensorData::U16(d) => format!("{}u16", d[0]),
        TensorData::I32(d) => format!("({}i32)", d[0]),
        TensorData::U32(d) => format!("{}u32", d[0]),
        TensorData::I64(d) => format!("({}i64)", d[0]),
        TensorData::U64(d) => format!("{}u64", d[0]),
        TensorData::Bool(d) => d[0].to_string(),
    })
}

/// Returns the literal of a number in the type in which `dtype` is computed.
pub(super) fn float(value: f64, dtype: DType) -> String {
    let ty = rust_type(dtype);
    if value.is_nan() {
        format!("{ty}::NAN")
    } else if value.is_infinite() {
        let sign = if value < 0.0 { "NEG_" } else { "" };
        format!("{ty}::{sign}INFINITY")
    } else if ty == "f64" {
        format!("({value:?}f64)")
    } else {
        // Through f32, so that the digits are those of the attribute.
        format!("({:?}f32)", value as f32)
    }
}

pub(super) fn is_signed(dtype: DType) -> bool {
    matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64)
}
