//! Elements as numbers wide enough to compute with.

use crate::graph::{DType, Shape, Tensor, TensorData, f16_to_f32, f64_to_f16};

/// The elements of a tensor: integers and booleans exactly, floats exactly.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Numbers {
    Int(Vec<i128>),
    Float(Vec<f64>),
}

impl Numbers {
    /// Reads the elements of a tensor.
    pub(super) fn read(tensor: &Tensor) -> Self {
        macro_rules! ints {
            ($data:expr) => {
                Self::Int($data.iter().map(|&v| i128::from(v)).collect())
            };
        }
        match tensor.data() {
            TensorData::F32(d) => Self::Float(d.iter().map(|&v| v.into()).collect()),
            TensorData::F16(d) => Self::Float(d.iter().map(|&v| f16_to_f32(v).into()).collect()),
            TensorData::F64(d) => Self::Float(d.clone()),
            TensorData::I8(d) => ints!(d),
            TensorData::U8(d) => ints!(d),
            TensorData::I16(d) => ints!(d),
            TensorData::U16(d) => ints!(d),
            TensorData::I32(d) => ints!(d),
            TensorData::U32(d) => ints!(d),
            TensorData::I64(d) => ints!(d),
            TensorData::U64(d) => ints!(d),
            TensorData::Bool(d) => ints!(d),
        }
    }

    /// Writes the elements as a type: integers wrap around, floats are rounded to nearest, a float
    /// becomes an integer by dropping its fraction, and what is not zero is true.
    pub(super) fn write(self, dtype: DType, shape: &Shape) -> Option<Tensor> {
        macro_rules! elements {
            ($type:ty) => {
                match self {
                    Self::Int(d) => d.into_iter().map(|v| v as $type).collect(),
                    Self::Float(d) => d.into_iter().map(|v| v as $type).collect(),
                }
            };
        }
        let data = match dtype {
            DType::F32 => TensorData::F32(elements!(f32)),
            DType::F64 => TensorData::F64(elements!(f64)),
            DType::F16 => TensorData::F16(match self {
                Self::Int(d) => d.into_iter().map(|v| f64_to_f16(v as f64)).collect(),
                Self::Float(d) => d.into_iter().map(f64_to_f16).collect(),
            }),
            DType::I8 => TensorData::I8(elements!(i8)),
            DType::U8 => TensorData::U8(elements!(u8)),
            DType::I16 => TensorData::I16(elements!(i16)),
            DType::U16 => TensorData::U16(elements!(u16)),
            DType::I32 => TensorData::I32(elements!(i32)),
            DType::U32 => TensorData::U32(elements!(u32)),
            DType::I64 => TensorData::I64(elements!(i64)),
            DType::U64 => TensorData::U64(elements!(u64)),
            DType::Bool => TensorData::Bool(match self {
                Self::Int(d) => d.into_iter().map(|v| v != 0).collect(),
                Self::Float(d) => d.into_iter().map(|v| v != 0.0).collect(),
            }),
        };
        Tensor::new(shape.clone(), data).ok()
    }

    /// Returns the integers, if they are.
    pub(super) fn ints(&self) -> Option<&[i128]> {
        match self {
            Self::Int(data) => Some(data),
            Self::Float(_) => None,
        }
    }
}

/// Casts floats to floats without the detour: weights stored as f16 may be many.
pub(super) fn cast_floats(tensor: &Tensor, to: DType) -> Option<Tensor> {
    use TensorData::{F16, F32, F64};
    let data = match (tensor.data(), to) {
        (F16(d), DType::F32) => F32(d.iter().map(|&v| f16_to_f32(v)).collect()),
        (F32(d), DType::F16) => F16(d.iter().map(|&v| f64_to_f16(v.into())).collect()),
        (F32(d), DType::F64) => F64(d.iter().map(|&v| v.into()).collect()),
        (F64(d), DType::F32) => F32(d.iter().map(|&v| v as f32).collect()),
        _ => return None,
    };
    Tensor::new(tensor.shape().clone(), data).ok()
}
