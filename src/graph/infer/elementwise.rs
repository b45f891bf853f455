//! Operators whose outputs have the shape of an input, or what the inputs broadcast to.

use super::fact::{Case, Fact, Facts, broadcast, dtype, mismatch, number, one};
use crate::graph::DType;

/// Infers an elementwise operator; `None` if it is none.
pub(super) fn infer(case: &Case<'_>) -> Facts {
    match case.node.op.as_str() {
        "Relu" | "LeakyRelu" | "Sigmoid" | "Tanh" | "HardSigmoid" | "HardSwish" | "Elu"
        | "Selu" | "Celu" | "ThresholdedRelu" | "Softplus" | "Softsign" | "Gelu" | "Mish"
        | "Swish" | "Shrink" | "Exp" | "Log" | "Sqrt" | "Abs" | "Neg" | "Floor" | "Ceil"
        | "Round" | "Sign" | "Erf" | "Reciprocal" | "Sin" | "Cos" | "Tan" | "Sinh" | "Cosh"
        | "Asin" | "Acos" | "Atan" | "Asinh" | "Acosh" | "Atanh" | "Identity" | "Not"
        | "BitwiseNot" => same(case),
        "Dropout" => dropout(case),
        "IsNaN" | "IsInf" => one(DType::Bool, case.dims(0)?.to_vec()),
        "Clip" => clip(case),
        "Cast" => cast(case),
        "BitCast" => bit_cast(case),
        "SwiGLU" => gated(case),
        "CastLike" => one(case.operand(1)?.dtype, case.dims(0)?.to_vec()),
        "Add" | "Sub" | "Mul" | "Div" | "Pow" | "Mod" | "And" | "Or" | "Xor" | "BitShift"
        | "BitwiseAnd" | "BitwiseOr" | "BitwiseXor" => binary(case, None),
        "Equal" | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual" => {
            binary(case, Some(DType::Bool))
        }
        "PRelu" => prelu(case),
        "Max" | "Min" | "Sum" | "Mean" => variadic(case),
        "Where" => select(case),
        _ => Ok(None),
    }
}

fn same(case: &Case<'_>) -> Facts {
    one(case.operand(0)?.dtype, case.dims(0)?.to_vec())
}

/// `Dropout` (7, 10, 12, 13, 22) as inference does it: the input, and a mask that drops nothing.
fn dropout(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let training = match case.optional(2) {
        None => Some(vec![0]),
        Some(mode) => mode.data.and_then(crate::graph::Tensor::to_i64),
    };
    let ratio = case.optional(1).and_then(|ratio| number(ratio.data?));
    if training != Some(vec![0]) && ratio != Some(0.0) {
        return mismatch("it is or may be in training mode: export the model for inference");
    }
    let fact = |dtype| Fact {
        dtype,
        shape: data.shape.clone(),
    };
    // Before operator set 10 the mask had the type of the data.
    let mask = if case.opset < 10 {
        data.dtype
    } else {
        DType::Bool
    };
    Ok(Some(vec![fact(data.dtype), fact(mask)]))
}

/// `Cast` (6–28): `to` holds a `TensorProto.DataType`.
fn cast(case: &Case<'_>) -> Facts {
    one(dtype(case.node.int("to", 0))?, case.dims(0)?.to_vec())
}

/// `BitCast` (26): between types of one size.
fn bit_cast(case: &Case<'_>) -> Facts {
    let (from, to) = (case.operand(0)?.dtype, dtype(case.node.int("to", 0))?);
    if from.bytes() != to.bytes() {
        return mismatch(format!("{from} and {to} differ in size"));
    }
    one(to, case.dims(0)?.to_vec())
}

/// `SwiGLU` (28): inputs of one shape.
fn gated(case: &Case<'_>) -> Facts {
    case.operand(1)?;
    case.expect(1, "the value", case.dims(0)?)?;
    case.expect_type(1)?;
    same(case)
}

/// `Clip` (6–13): bounds are scalars of the type of the data.
fn clip(case: &Case<'_>) -> Facts {
    for idx in [1, 2] {
        case.expect_type(idx)?;
        if let Some(bound) = case.optional(idx).filter(|bound| bound.shape.len() != 1) {
            return mismatch(format!("bound {} is no scalar", bound.shape));
        }
    }
    same(case)
}

fn binary(case: &Case<'_>, dtype: Option<DType>) -> Facts {
    let (lhs, rhs) = (case.operand(0)?, case.operand(1)?);
    let may_differ = case.node.op == "Pow";
    if lhs.dtype != rhs.dtype && !may_differ {
        return mismatch(format!(
            "element types {} and {} differ",
            lhs.dtype, rhs.dtype
        ));
    }
    let is_floored = case.node.op == "Mod" && case.node.int("fmod", 0) == 0;
    if is_floored && lhs.dtype.is_float() && case.opset < 28 {
        return mismatch(format!("`fmod` must be 1 for {}", lhs.dtype));
    }
    let direction = case.node.string("direction", "");
    if case.node.op == "BitShift" && !matches!(direction, "LEFT" | "RIGHT") {
        return mismatch(format!("`direction` is `{direction}`"));
    }
    let shape = broadcast(lhs.shape.dims(), rhs.shape.dims())?;
    one(dtype.unwrap_or(lhs.dtype), shape)
}

/// `PRelu` (7, 9, 16): the slope broadcasts to the data, not the other way round.
fn prelu(case: &Case<'_>) -> Facts {
    case.expect_type(1)?;
    let (data, slope) = (case.dims(0)?, case.dims(1)?);
    if broadcast(data, slope)? != data {
        return mismatch(format!("slope {slope:?} does not broadcast to {data:?}"));
    }
    same(case)
}

fn variadic(case: &Case<'_>) -> Facts {
    let mut shape = case.dims(0)?.to_vec();
    for idx in 1..case.operands.len() {
        case.expect_type(idx)?;
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
