//! Constant tensors.

use super::{DType, Shape};

/// A dense row-major tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    shape: Shape,
    data: TensorData,
}

/// The elements of a tensor, by type.
#[derive(Debug, Clone, PartialEq)]
pub enum TensorData {
    /// f32 elements.
    F32(Vec<f32>),
    /// f16 elements as their bits.
    F16(Vec<u16>),
    /// f64 elements.
    F64(Vec<f64>),
    /// i8 elements.
    I8(Vec<i8>),
    /// u8 elements.
    U8(Vec<u8>),
    /// i16 elements.
    I16(Vec<i16>),
    /// u16 elements.
    U16(Vec<u16>),
    /// i32 elements.
    I32(Vec<i32>),
    /// u32 elements.
    U32(Vec<u32>),
    /// i64 elements.
    I64(Vec<i64>),
    /// u64 elements.
    U64(Vec<u64>),
    /// Booleans.
    Bool(Vec<bool>),
}

/// A shape and data that do not belong together.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("shape {shape} needs {expected} elements, data has {actual}")]
pub struct TensorError {
    /// The stated shape.
    pub shape: Shape,
    /// How many elements it needs.
    pub expected: usize,
    /// How many there are.
    pub actual: usize,
}

impl Tensor {
    /// Builds a tensor.
    ///
    /// # Errors
    /// [`TensorError`] if `data` has another number of elements than `shape`.
    pub fn new(shape: Shape, data: TensorData) -> Result<Self, TensorError> {
        if shape.checked_len() != Some(data.len()) {
            return Err(TensorError {
                expected: shape.len(),
                actual: data.len(),
                shape,
            });
        }
        Ok(Self { shape, data })
    }

    /// Builds a one-dimensional f32 tensor.
    pub fn from_f32(data: Vec<f32>) -> Self {
        Self {
            shape: Shape(vec![data.len()]),
            data: TensorData::F32(data),
        }
    }

    /// Builds a one-dimensional i64 tensor.
    pub fn from_i64(data: Vec<i64>) -> Self {
        Self {
            shape: Shape(vec![data.len()]),
            data: TensorData::I64(data),
        }
    }

    /// Returns the shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the elements.
    pub fn data(&self) -> &TensorData {
        &self.data
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.data.dtype()
    }

    /// Returns the elements if they are f32.
    pub fn as_f32(&self) -> Option<&[f32]> {
        match &self.data {
            TensorData::F32(data) => Some(data),
            _ => None,
        }
    }

    /// Returns the elements as i64 if they are of an integer or boolean type.
    pub fn to_i64(&self) -> Option<Vec<i64>> {
        Some(match &self.data {
            TensorData::I8(d) => d.iter().map(|&v| v.into()).collect(),
            TensorData::U8(d) => d.iter().map(|&v| v.into()).collect(),
            TensorData::I16(d) => d.iter().map(|&v| v.into()).collect(),
            TensorData::U16(d) => d.iter().map(|&v| v.into()).collect(),
            TensorData::I32(d) => d.iter().map(|&v| v.into()).collect(),
            TensorData::U32(d) => d.iter().map(|&v| v.into()).collect(),
            TensorData::I64(d) => d.clone(),
            TensorData::Bool(d) => d.iter().map(|&v| v.into()).collect(),
            TensorData::F32(_) | TensorData::F16(_) | TensorData::F64(_) | TensorData::U64(_) => {
                return None;
            }
        })
    }

    /// Returns the tensor with another shape over the same elements.
    ///
    /// # Errors
    /// [`TensorError`] if the number of elements differs.
    pub fn reshaped(self, shape: Shape) -> Result<Self, TensorError> {
        Self::new(shape, self.data)
    }
}

impl TensorData {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(d) => d.len(),
            Self::F16(d) | Self::U16(d) => d.len(),
            Self::F64(d) => d.len(),
            Self::I8(d) => d.len(),
            Self::U8(d) => d.len(),
            Self::I16(d) => d.len(),
            Self::I32(d) => d.len(),
            Self::U32(d) => d.len(),
            Self::I64(d) => d.len(),
            Self::U64(d) => d.len(),
            Self::Bool(d) => d.len(),
        }
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        match self {
            Self::F32(_) => DType::F32,
            Self::F16(_) => DType::F16,
            Self::F64(_) => DType::F64,
            Self::I8(_) => DType::I8,
            Self::U8(_) => DType::U8,
            Self::I16(_) => DType::I16,
            Self::U16(_) => DType::U16,
            Self::I32(_) => DType::I32,
            Self::U32(_) => DType::U32,
            Self::I64(_) => DType::I64,
            Self::U64(_) => DType::U64,
            Self::Bool(_) => DType::Bool,
        }
    }

    /// Returns the elements as little-endian bytes, row-major, booleans as 0 or 1.
    pub fn to_le_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.append_le_bytes(&mut bytes);
        bytes
    }

    /// Appends what [`to_le_bytes`](Self::to_le_bytes) returns, without a copy of it in between.
    pub fn append_le_bytes(&self, bytes: &mut Vec<u8>) {
        macro_rules! append {
            ($data:expr) => {
                bytes.extend($data.iter().flat_map(|v| v.to_le_bytes()))
            };
        }
        match self {
            Self::F32(d) => append!(d),
            Self::F16(d) | Self::U16(d) => append!(d),
            Self::F64(d) => append!(d),
            Self::I8(d) => append!(d),
            Self::U8(d) => bytes.extend_from_slice(d),
            Self::I16(d) => append!(d),
            Self::I32(d) => append!(d),
            Self::U32(d) => append!(d),
            Self::I64(d) => append!(d),
            Self::U64(d) => append!(d),
            Self::Bool(d) => bytes.extend(d.iter().map(|&v| u8::from(v))),
        }
    }
}

/// Returns the f32 of the same value as an f16 given by its bits.
pub fn f16_to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits >> 15) << 31;
    let exponent = u32::from(bits >> 10) & 0x1f;
    let fraction = u32::from(bits) & 0x3ff;
    let magnitude = match exponent {
        // Subnormal: the fraction counts steps of 2⁻²⁴.
        0 => (fraction as f32 / 16_777_216.0).to_bits(),
        0x1f => 0x7f80_0000 | (fraction << 13),
        _ => ((exponent + 112) << 23) | (fraction << 13),
    };
    f32::from_bits(sign | magnitude)
}

/// Returns the bits of the f16 nearest to a value, ties to even; what is too large is infinite.
pub(crate) fn f64_to_f16(value: f64) -> u16 {
    let sign = u16::from(value.is_sign_negative()) << 15;
    let magnitude = value.abs();
    if magnitude.is_nan() {
        return sign | 0x7e00;
    }
    // Half a step above the largest finite value, 65504, rounds up.
    if magnitude >= 65520.0 {
        return sign | 0x7c00;
    }
    // The step between neighbours of this size, at least the smallest one.
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(-14);
    let steps = (magnitude * 2f64.powi(10 - exponent)).round_ties_even() as u16;
    // Carries of the fraction go into the exponent.
    let biased = (exponent + 14) as u16;
    sign | ((biased << 10) + steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f16_survives_the_way_through_f32() {
        for bits in 0..=u16::MAX {
            let value = f16_to_f32(bits);
            if value.is_nan() {
                assert!(f16_to_f32(f64_to_f16(value.into())).is_nan());
            } else {
                assert_eq!(f64_to_f16(value.into()), bits);
            }
        }
        assert_eq!(f16_to_f32(0x3c00).to_bits(), 1f32.to_bits());
        assert_eq!(f16_to_f32(0xc000).to_bits(), (-2f32).to_bits());
    }

    #[test]
    fn f16_rounds_to_nearest_even() {
        assert_eq!(f64_to_f16(2049.0), f64_to_f16(2048.0));
        assert_eq!(f64_to_f16(2051.0), f64_to_f16(2052.0));
        assert_eq!(f64_to_f16(65519.0), 0x7bff);
        assert_eq!(f64_to_f16(65520.0), 0x7c00);
        assert_eq!(f64_to_f16(2f64.powi(-25)), 0);
        assert_eq!(f64_to_f16(2f64.powi(-25) * 1.01), 1);
    }
}
