//! Which element types operators take, as far as the ONNX specification says it of input 0.
//!
//! The union over operator sets is what counts: a later set that allows more makes no earlier model
//! wrong. Operators that are not listed take any type.

use super::fact::{Case, InferError, mismatch};
use crate::graph::DType;

/// Refuses an element type that the operator does not take.
pub(super) fn check(case: &Case<'_>) -> Result<(), InferError> {
    let Some(operand) = case.optional(0) else {
        return Ok(());
    };
    let (fits, wanted): (fn(DType) -> bool, _) = match case.node.op.as_str() {
        op if FLOATS.contains(&op) => (DType::is_float, "floating-point"),
        "BitShift" | "BitwiseAnd" | "BitwiseOr" | "BitwiseXor" | "BitwiseNot" => {
            (is_integer, "integer")
        }
        "Neg" | "Relu" => (|dtype| dtype.is_float() || is_signed(dtype), "signed"),
        op if NUMBERS.contains(&op) => (|dtype| dtype != DType::Bool, "number"),
        "And" | "Or" | "Xor" | "Not" | "Where" => (|dtype| dtype == DType::Bool, "boolean"),
        "ConvInteger" | "MatMulInteger" | "QLinearConv" | "QLinearMatMul" => (
            |dtype| matches!(dtype, DType::I8 | DType::U8),
            "8-bit integer",
        ),
        "DequantizeLinear" => (is_integer, "integer"),
        _ => return Ok(()),
    };
    if fits(operand.dtype) {
        return Ok(());
    }
    mismatch(format!(
        "input 0 is {}, the operator takes {wanted} types",
        operand.dtype
    ))
}

fn is_integer(dtype: DType) -> bool {
    !dtype.is_float() && dtype != DType::Bool
}

fn is_signed(dtype: DType) -> bool {
    matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64)
}

const FLOATS: &[&str] = &[
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "AveragePool",
    "BatchNormalization",
    "Ceil",
    "Celu",
    "Conv",
    "ConvTranspose",
    "Cos",
    "Cosh",
    "DeformConv",
    "Det",
    "Dropout",
    "DynamicQuantizeLinear",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "GRU",
    "Gelu",
    "GlobalAveragePool",
    "GlobalLpPool",
    "GlobalMaxPool",
    "GroupNormalization",
    "HardSigmoid",
    "HardSwish",
    "Hardmax",
    "InstanceNormalization",
    "IsInf",
    "IsNaN",
    "LRN",
    "LSTM",
    "LayerNormalization",
    "LeakyRelu",
    "Log",
    "LogSoftmax",
    "LpNormalization",
    "LpPool",
    "MaxRoiPool",
    "MaxUnpool",
    "MeanVarianceNormalization",
    "Mish",
    "RMSNormalization",
    "RNN",
    "Reciprocal",
    "RoiAlign",
    "RotaryEmbedding",
    "Round",
    "Selu",
    "Sigmoid",
    "Sin",
    "Sinh",
    "Softmax",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Swish",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
];

const NUMBERS: &[&str] = &[
    "Abs",
    "Add",
    "ArgMax",
    "ArgMin",
    "Clip",
    "CumProd",
    "CumSum",
    "Div",
    "Einsum",
    "Gemm",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "MatMul",
    "Max",
    "Mean",
    "Min",
    "Mod",
    "Mul",
    "PRelu",
    "Pow",
    "QuantizeLinear",
    "Range",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMean",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
    "Shrink",
    "Sign",
    "Sub",
    "Sum",
    "TopK",
];
