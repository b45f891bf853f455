//! Operators that work on one element at a time.

use super::evaluate::Case;
use super::number::{self, Numbers};
use super::pick::broadcast;
use crate::graph::{Attribute, DType, Shape, Tensor};

/// Evaluates an elementwise operator.
pub(super) fn evaluate(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let result = match case.node.op.as_str() {
        "Cast" => cast(case)?,
        "Add" | "Sub" | "Mul" | "Div" | "Mod" | "Pow" | "And" | "Or" | "Xor" | "BitwiseAnd"
        | "BitwiseOr" | "BitwiseXor" | "BitShift" | "Equal" | "Greater" | "GreaterOrEqual"
        | "Less" | "LessOrEqual" | "Max" | "Min" | "Sum" | "Mean" => folded(case)?,
        "Where" => select(case)?,
        "Clip" => clip(case)?,
        _ => unary(case)?,
    };
    Some(vec![result])
}

/// Evaluates a cast between floating-point types, however many elements there are.
pub(super) fn cast_floats(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let is_cast = case.node.op == "Cast";
    let result = is_cast.then(|| number::cast_floats(case.input(0)?, case.dtype()));
    Some(vec![result.flatten()?])
}

fn cast(case: &Case<'_>) -> Option<Tensor> {
    Numbers::read(case.input(0)?).write(case.dtype(), case.shape()?)
}

/// Applies an operator of two inputs, one after the other if there are more.
fn folded(case: &Case<'_>) -> Option<Tensor> {
    let shape = case.shape()?;
    let first = case.input(0)?;
    let mut result = spread(first, shape);
    for idx in 1..case.inputs.len() {
        let next = spread(case.input(idx)?, shape);
        result = pairs(case, first.dtype(), result, next)?;
    }
    let n = case.inputs.len() as f64;
    if let ("Mean", Numbers::Float(data)) = (case.node.op.as_str(), &mut result) {
        for value in data {
            *value /= n;
        }
    }
    result.write(case.dtype(), shape)
}

/// Reads a tensor as broadcast to a shape.
fn spread(tensor: &Tensor, shape: &Shape) -> Numbers {
    let numbers = Numbers::read(tensor);
    if tensor.shape() == shape {
        return numbers;
    }
    let positions = broadcast(tensor.shape().dims(), shape.dims());
    match numbers {
        Numbers::Int(d) => Numbers::Int(positions.into_iter().map(|i| d[i]).collect()),
        Numbers::Float(d) => Numbers::Float(positions.into_iter().map(|i| d[i]).collect()),
    }
}

fn pairs(case: &Case<'_>, dtype: DType, lhs: Numbers, rhs: Numbers) -> Option<Numbers> {
    use Numbers::{Float, Int};
    let op = case.node.op.as_str();
    let is_comparison = case.dtype() == DType::Bool && dtype != DType::Bool || op == "Equal";
    Some(match (lhs, rhs) {
        (Int(a), Int(b)) if is_comparison => Int(zip(a, b, |a, b| compare(op, &a, &b))?),
        (Float(a), Float(b)) if is_comparison => Int(zip(a, b, |a, b| compare(op, &a, &b))?),
        (Int(a), Int(b)) => Int(zip(a, b, |a, b| ints(case, dtype, a, b))?),
        (Float(a), Float(b)) => Float(zip(a, b, |a, b| floats(case, a, b))?),
        // Only `Pow` mixes types; its result has the type of the base.
        (Int(a), Float(b)) => Float(zip(a, b, |a, b| floats(case, a as f64, b))?),
        (Float(a), Int(b)) => Float(zip(a, b, |a, b| floats(case, a, b as f64))?),
    })
}

fn zip<A, B, C>(a: Vec<A>, b: Vec<B>, f: impl Fn(A, B) -> Option<C>) -> Option<Vec<C>> {
    a.into_iter().zip(b).map(|(a, b)| f(a, b)).collect()
}

fn compare<T: PartialOrd>(op: &str, a: &T, b: &T) -> Option<i128> {
    let holds = match op {
        "Equal" => a == b,
        "Greater" => a > b,
        "GreaterOrEqual" => a >= b,
        "Less" => a < b,
        "LessOrEqual" => a <= b,
        _ => return None,
    };
    Some(holds.into())
}

fn ints(case: &Case<'_>, dtype: DType, a: i128, b: i128) -> Option<i128> {
    Some(match case.node.op.as_str() {
        "Add" | "Sum" => a + b,
        "Sub" => a - b,
        "Mul" => a.wrapping_mul(b),
        "Div" => a.checked_div(b)?,
        // By default the result has the sign of the divisor.
        "Mod" if case.node.int("fmod", 0) == 0 => {
            let rest = a.checked_rem(b)?;
            if rest != 0 && (rest < 0) != (b < 0) {
                rest + b
            } else {
                rest
            }
        }
        "Mod" => a.checked_rem(b)?,
        "Pow" => match u32::try_from(b) {
            Ok(exponent) => a.wrapping_pow(exponent),
            Err(_) => (a as f64).powf(b as f64) as i128,
        },
        "Max" => a.max(b),
        "Min" => a.min(b),
        "And" | "BitwiseAnd" => a & b,
        "Or" | "BitwiseOr" => a | b,
        "Xor" | "BitwiseXor" => a ^ b,
        "BitShift" => {
            // What is shifted out of the type leaves the sign, if it goes to the right.
            let is_within = (0..dtype.bytes() as i128 * 8).contains(&b);
            match (case.node.string("direction", ""), is_within) {
                ("LEFT", true) => a << b,
                ("LEFT", false) => 0,
                (_, true) => a >> b,
                (_, false) => a >> 127,
            }
        }
        _ => return None,
    })
}

fn floats(case: &Case<'_>, a: f64, b: f64) -> Option<f64> {
    let propagate = |result: f64| {
        if a.is_nan() || b.is_nan() {
            f64::NAN
        } else {
            result
        }
    };
    Some(match case.node.op.as_str() {
        "Add" | "Sum" | "Mean" => a + b,
        "Sub" => a - b,
        "Mul" => a * b,
        "Div" => a / b,
        // By default the result has the sign of the divisor.
        "Mod" if case.node.int("fmod", 0) == 0 => {
            let rest = a % b;
            if rest == 0.0 {
                rest.copysign(b)
            } else if (rest < 0.0) == (b < 0.0) {
                rest
            } else {
                rest + b
            }
        }
        "Mod" => a % b,
        "Pow" => a.powf(b),
        "Max" => propagate(a.max(b)),
        "Min" => propagate(a.min(b)),
        _ => return None,
    })
}

fn select(case: &Case<'_>) -> Option<Tensor> {
    let shape = case.shape()?;
    let condition = spread(case.input(0)?, shape);
    let condition = condition.ints()?;
    let pick = |idx| Some(spread(case.input(idx)?, shape));
    let chosen = match (pick(1)?, pick(2)?) {
        (Numbers::Int(a), Numbers::Int(b)) => Numbers::Int(choose(condition, &a, &b)),
        (Numbers::Float(a), Numbers::Float(b)) => Numbers::Float(choose(condition, &a, &b)),
        _ => return None,
    };
    chosen.write(case.dtype(), shape)
}

fn choose<T: Copy>(condition: &[i128], a: &[T], b: &[T]) -> Vec<T> {
    let pairs = a.iter().zip(b).zip(condition);
    pairs
        .map(|((&a, &b), &c)| if c != 0 { a } else { b })
        .collect()
}

/// Bounds are attributes before operator set 11 and inputs from then on.
fn clip(case: &Case<'_>) -> Option<Tensor> {
    let bound = |name: &str, idx| match (case.node.attributes.get(name), case.input(idx)) {
        (Some(Attribute::Float(value)), _) => Some(Numbers::Float(vec![f64::from(*value)])),
        (_, given) => given.map(Numbers::read),
    };
    let (low, high) = (bound("min", 1), bound("max", 2));
    let clipped = match Numbers::read(case.input(0)?) {
        Numbers::Int(data) => {
            let first = |bound: &Option<Numbers>| bound.as_ref()?.ints()?.first().copied();
            let (low, high) = (first(&low), first(&high));
            let at_least = |v: i128| low.map_or(v, |low| v.max(low));
            let at_most = |v: i128| high.map_or(v, |high| v.min(high));
            Numbers::Int(data.into_iter().map(|v| at_most(at_least(v))).collect())
        }
        Numbers::Float(data) => {
            let first = |bound: &Option<Numbers>| match bound {
                Some(Numbers::Float(values)) => values.first().copied(),
                _ => None,
            };
            let (low, high) = (first(&low), first(&high));
            // NaN passes through, unlike with `f64::max`.
            let clip = |v: f64| match (low, high) {
                _ if v.is_nan() => v,
                (low, high) => {
                    let v = low.map_or(v, |low| v.max(low));
                    high.map_or(v, |high| v.min(high))
                }
            };
            Numbers::Float(data.into_iter().map(clip).collect())
        }
    };
    clipped.write(case.dtype(), case.shape()?)
}

fn unary(case: &Case<'_>) -> Option<Tensor> {
    let is_set = |name| case.node.int(name, 1) != 0;
    let op = case.node.op.as_str();
    let numbers = match Numbers::read(case.input(0)?) {
        Numbers::Int(data) => {
            let of: fn(i128) -> i128 = match op {
                "Neg" => |v| -v,
                "Abs" => i128::abs,
                "Sign" => i128::signum,
                "Not" => |v| i128::from(v == 0),
                "BitwiseNot" => |v| !v,
                "Relu" => |v| v.max(0),
                _ => return None,
            };
            Numbers::Int(data.into_iter().map(of).collect())
        }
        Numbers::Float(data) if op == "IsNaN" => {
            Numbers::Int(data.into_iter().map(|v| v.is_nan().into()).collect())
        }
        Numbers::Float(data) if op == "IsInf" => {
            let (below, above) = (is_set("detect_negative"), is_set("detect_positive"));
            let holds = |v: f64| v.is_infinite() && if v < 0.0 { below } else { above };
            Numbers::Int(data.into_iter().map(|v| holds(v).into()).collect())
        }
        Numbers::Float(data) => Numbers::Float(data.into_iter().map(real(op)?).collect()),
    };
    numbers.write(case.dtype(), case.shape()?)
}

fn real(op: &str) -> Option<fn(f64) -> f64> {
    Some(match op {
        "Neg" => |v| -v,
        "Abs" => f64::abs,
        "Sign" => |v| {
            if v == 0.0 || v.is_nan() {
                v
            } else {
                v.signum()
            }
        },
        "Floor" => f64::floor,
        "Ceil" => f64::ceil,
        "Round" => f64::round_ties_even,
        "Sqrt" => f64::sqrt,
        "Reciprocal" => f64::recip,
        "Relu" => |v| if v < 0.0 { 0.0 } else { v },
        "Exp" => f64::exp,
        "Log" => f64::ln,
        "Sin" => f64::sin,
        "Cos" => f64::cos,
        "Tan" => f64::tan,
        "Asin" => f64::asin,
        "Acos" => f64::acos,
        "Atan" => f64::atan,
        "Sinh" => f64::sinh,
        "Cosh" => f64::cosh,
        "Tanh" => f64::tanh,
        "Asinh" => f64::asinh,
        "Acosh" => f64::acosh,
        "Atanh" => f64::atanh,
        _ => return None,
    })
}
