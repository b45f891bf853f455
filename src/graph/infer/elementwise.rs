//! Operators whose outputs have the shape of an input, or what the inputs broadcast to.

use super::fact::{Case, Fact, Facts, broadcast, mismatch, one};
use crate::graph::DType;

/// Infers an elementwise operator; `None` if it is none.
pub(super) fn infer(case: &Case<'_>) -> Facts {
    match case.node.op.as_str() {
        "Relu"
        | "LeakyRelu"
        | "Sigmoid"
        | "Tanh"
        | "HardSigmoid"
        | "HardSwish"
        | "Elu"
        | "Selu"
        | "Celu"
        | "ThresholdedRelu"
        | "Softplus"
        | "Softsign"
        | "Gelu"
        | "Mish"
        | "Swish"
        | "Silu"
        | "Shrink"
        | "Exp"
        | "Log"
        | "Sqrt"
        | "Abs"
        | "Neg"
        | "Floor"
        | "Ceil"
        | "Round"
        | "Sign"
        | "Erf"
        | "Reciprocal"
        | "Sin"
        | "Cos"
        | "Tan"
        | "Sinh"
        | "Cosh"
        | "Asin"
        | "Acos"
        | "Atan"
        | "Asinh"
        | "Acosh"
        | "Atanh"
        | "Identity"
        | "Clip"
        | "Softmax"
        | "LogSoftmax"
        | "Hardmax"
        | "LpNormalization"
        | "LRN"
        | "InstanceNormalization"
        | "GroupNormalization"
        | "MeanVarianceNormalization"
        | "Trilu"
        | "CumSum"
        | "ReverseSequence"
        | "Not"
        | "BitwiseNot"
        | "ScatterElements"
        | "Scatter"
        | "ScatterND" => same(case),
        "BatchNormalization" => batch_normalization(case),
        "Dropout" => dropout(case),
        "IsNaN" | "IsInf" => one(DType::Bool, case.dims(0)?.to_vec()),
        "Cast" => cast(case),
        "CastLike" | "DequantizeLinear" => one(case.operand(1)?.dtype, case.dims(0)?.to_vec()),
        "Add" | "Sub" | "Mul" | "Div" | "Pow" | "Mod" | "And" | "Or" | "Xor" | "BitShift"
        | "BitwiseAnd" | "BitwiseOr" | "BitwiseXor" => binary(case, None),
        "Equal" | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual" => {
            binary(case, Some(DType::Bool))
        }
        "PRelu" => prelu(case),
        "Max" | "Min" | "Sum" | "Mean" => variadic(case),
        "Where" => select(case),
        "QuantizeLinear" => {
            let dtype = case.optional(2).map_or(DType::U8, |zero| zero.dtype);
            one(dtype, case.dims(0)?.to_vec())
        }
        _ => Ok(None),
    }
}

fn same(case: &Case<'_>) -> Facts {
    one(case.operand(0)?.dtype, case.dims(0)?.to_vec())
}

fn batch_normalization(case: &Case<'_>) -> Facts {
    let dims = case.dims(0)?;
    let channels = dims.get(1).copied().unwrap_or(1);
    for idx in 1..5 {
        let parameter = case.dims(idx)?;
        if parameter != [channels] {
            return mismatch(format!(
                "input 0 is {dims:?}, so input {idx} must be [{channels}], it is {parameter:?}"
            ));
        }
    }
    same(case)
}

fn dropout(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let fact = |dtype| Fact {
        dtype,
        shape: data.shape.clone(),
    };
    Ok(Some(vec![fact(data.dtype), fact(DType::Bool)]))
}

fn cast(case: &Case<'_>) -> Facts {
    // The attribute holds a `TensorProto.DataType`.
    let dtype = match case.node.int("to", 0) {
        1 => DType::F32,
        2 => DType::U8,
        3 => DType::I8,
        4 => DType::U16,
        5 => DType::I16,
        6 => DType::I32,
        7 => DType::I64,
        9 => DType::Bool,
        10 => DType::F16,
        11 => DType::F64,
        12 => DType::U32,
        13 => DType::U64,
        other => return mismatch(format!("it casts to element type {other}")),
    };
    one(dtype, case.dims(0)?.to_vec())
}

fn binary(case: &Case<'_>, dtype: Option<DType>) -> Facts {
    let (lhs, rhs) = (case.operand(0)?, case.operand(1)?);
    let may_differ = matches!(case.node.op.as_str(), "Pow" | "BitShift");
    if lhs.dtype != rhs.dtype && !may_differ {
        return mismatch(format!(
            "element types {} and {} differ",
            lhs.dtype, rhs.dtype
        ));
    }
    let shape = broadcast(lhs.shape.dims(), rhs.shape.dims())?;
    one(dtype.unwrap_or(lhs.dtype), shape)
}

fn prelu(case: &Case<'_>) -> Facts {
    let (data, slope) = (case.dims(0)?, case.dims(1)?);
    if broadcast(data, slope)? != data {
        return mismatch(format!("slope {slope:?} does not broadcast to {data:?}"));
    }
    same(case)
}

fn variadic(case: &Case<'_>) -> Facts {
    let mut shape = case.dims(0)?.to_vec();
    for idx in 1..case.operands.len() {
        shape = broadcast(&shape, case.dims(idx)?)?;
    }
    one(case.operand(0)?.dtype, shape)
}

fn select(case: &Case<'_>) -> Facts {
    let (lhs, rhs) = (case.operand(1)?, case.operand(2)?);
    if lhs.dtype != rhs.dtype {
        return mismatch(format!(
            "element types {} and {} differ",
            lhs.dtype, rhs.dtype
        ));
    }
    let shape = broadcast(lhs.shape.dims(), rhs.shape.dims())?;
    one(lhs.dtype, broadcast(case.dims(0)?, &shape)?)
}
