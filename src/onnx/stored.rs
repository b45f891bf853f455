//! Element types as safetensors files call them: references, and inputs and outputs of runs.

use safetensors::Dtype;

use crate::graph::DType;

/// Returns how safetensors calls an element type.
pub fn stored_type(dtype: DType) -> Dtype {
    match dtype {
        DType::F32 => Dtype::F32,
        DType::F16 => Dtype::F16,
        DType::F64 => Dtype::F64,
        DType::I8 => Dtype::I8,
        DType::U8 => Dtype::U8,
        DType::I16 => Dtype::I16,
        DType::U16 => Dtype::U16,
        DType::I32 => Dtype::I32,
        DType::U32 => Dtype::U32,
        DType::I64 => Dtype::I64,
        DType::U64 => Dtype::U64,
        DType::Bool => Dtype::BOOL,
    }
}

/// Returns the element type that safetensors calls so, if values of a graph can have it.
pub fn element_type(stored: Dtype) -> Option<DType> {
    let mut all = DType::ALL.into_iter();
    all.find(|&dtype| stored_type(dtype) == stored)
}
