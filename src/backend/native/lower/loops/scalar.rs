//! Operators of one element at a time, as Rust expressions.
//!
//! Formulas are those of the ONNX operator specification. Half-precision elements are computed in
//! f32 and rounded after each operator; integers wrap.

use super::element::{constant, float, is_signed, rust_type};
use super::node::{Known, LoopNode};
use crate::graph::{Attribute, DType};

/// An operand of an expression: a name or a literal, and the type of the element it stands for.
#[derive(Debug, Clone)]
pub(super) struct Term {
    pub(super) text: String,
    pub(super) dtype: DType,
}

/// Returns what the operator gives for one element; `None` if it does not work on one element at a
/// time, or not on elements of this type.
pub(super) fn expression(node: &LoopNode<'_>, args: &[Option<Term>]) -> Option<String> {
    let output = node.output(0)?.dtype;
    let given: Vec<&Term> = args.iter().flatten().collect();
    let text = match given.as_slice() {
        [x] => unary(node, x, output).or_else(|| variadic(node, &given, output))?,
        [a, b] => binary(node, a, b, output)
            .or_else(|| variadic(node, &given, output))
            .or_else(|| clip(node, args))?,
        _ => match node.node.op.as_str() {
            "Where" => {
                let [condition, a, b] = given.as_slice() else {
                    return None;
                };
                format!(
                    "if {} {{ {} }} else {{ {} }}",
                    condition.text, a.text, b.text
                )
            }
            _ => variadic(node, &given, output).or_else(|| clip(node, args))?,
        },
    };
    Some(match output {
        DType::F16 => format!("from_f16(to_f16({text}))"),
        _ => text,
    })
}

fn unary(node: &LoopNode<'_>, x: &Term, output: DType) -> Option<String> {
    let op = node.node.op.as_str();
    let (dtype, v) = (x.dtype, x.text.as_str());
    // Operators of any type.
    match op {
        "Identity" | "Dropout" => return Some(v.to_owned()),
        "Cast" | "CastLike" => return Some(cast(x, output)),
        "Clip" => return clip(node, &[Some(x.clone())]),
        "Not" if dtype == DType::Bool => return Some(format!("!{v}")),
        "BitwiseNot" => return Some(format!("!{v}")),
        _ => {}
    }
    if dtype.is_float() {
        return float_unary(node, op, v, dtype);
    }
    if dtype == DType::Bool {
        return None;
    }
    let signed = is_signed(dtype);
    Some(match op {
        "Abs" if signed => format!("{v}.wrapping_abs()"),
        "Neg" if signed => format!("{v}.wrapping_neg()"),
        "Sign" if signed => format!("{v}.signum()"),
        "Abs" | "Floor" | "Ceil" | "Round" => v.to_owned(),
        "Sign" => format!("({v} > 0) as {}", dtype.name()),
        "Relu" => format!("if {v} > 0 {{ {v} }} else {{ 0 }}"),
        _ => return None,
    })
}

fn float_unary(node: &LoopNode<'_>, op: &str, v: &str, dtype: DType) -> Option<String> {
    let f = if dtype == DType::F64 { "" } else { "f" };
    let number = |value: f64| float(value, dtype);
    let attribute = |name: &str, default: f32| float(node.node.float(name, default).into(), dtype);
    let alpha = |default: f32| attribute("alpha", default);
    let call = |name: &str| Some(format!("{name}{f}({v})"));
    let sigmoid = |x: &str| format!("1.0 / (1.0 + exp{f}(-({x})))");
    // Both forms are exact where the other one overflows or cancels.
    let softplus = || {
        format!(
            "(if {v} > 0.0 {{ {v} }} else {{ 0.0 }}) + log1p{f}(exp{f}(if {v} > 0.0 {{ -{v} }} else {{ {v} }}))"
        )
    };
    match op {
        "Exp" | "Log" | "Sin" | "Cos" | "Tan" | "Asin" | "Acos" | "Atan" | "Sinh" | "Cosh"
        | "Tanh" | "Asinh" | "Acosh" | "Atanh" | "Erf" | "Floor" | "Ceil" | "Sqrt" => {
            return call(&op.to_lowercase());
        }
        "Round" => return call("rint"),
        _ => {}
    }
    Some(match op {
        "Abs" => format!("{v}.abs()"),
        "Neg" => format!("-{v}"),
        "Sign" => {
            format!("if {v} > 0.0 {{ 1.0 }} else if {v} < 0.0 {{ -1.0 }} else {{ {v} * 0.0 }}")
        }
        "Reciprocal" => format!("1.0 / {v}"),
        "Relu" => format!("if {v} < 0.0 {{ 0.0 }} else {{ {v} }}"),
        "LeakyRelu" => format!("if {v} < 0.0 {{ {v} * {} }} else {{ {v} }}", alpha(0.01)),
        "ThresholdedRelu" => format!("if {v} > {} {{ {v} }} else {{ 0.0 }}", alpha(1.0)),
        "Elu" => format!(
            "if {v} < 0.0 {{ {} * expm1{f}({v}) }} else {{ {v} }}",
            alpha(1.0)
        ),
        "Celu" => {
            let a = alpha(1.0);
            format!("if {v} < 0.0 {{ {a} * expm1{f}({v} / {a}) }} else {{ {v} }}")
        }
        "Selu" => {
            let (a, gamma) = (alpha(1.673_263_2), attribute("gamma", 1.050_701));
            format!("{gamma} * (if {v} > 0.0 {{ {v} }} else {{ {a} * expm1{f}({v}) }})")
        }
        "Sigmoid" => sigmoid(v),
        "HardSigmoid" => clamp(
            &format!("{v} * {} + {}", alpha(0.2), attribute("beta", 0.5)),
            "0.0",
            "1.0",
        ),
        "HardSwish" => format!("{v} * {}", clamp(&format!("{v} / 6.0 + 0.5"), "0.0", "1.0")),
        "Silu" => format!("{v} * ({})", sigmoid(v)),
        "Swish" => format!("{v} * ({})", sigmoid(&format!("{} * {v}", alpha(1.0)))),
        "Softplus" => softplus(),
        "Softsign" => format!("{v} / (1.0 + {v}.abs())"),
        "Mish" => format!("{v} * tanh{f}({})", softplus()),
        "Gelu" if node.node.string("approximate", "none") == "tanh" => format!(
            "0.5 * {v} * (1.0 + tanh{f}({} * ({v} + {} * {v} * {v} * {v})))",
            number((2.0 / std::f64::consts::PI).sqrt()),
            number(0.044_715),
        ),
        "Gelu" => format!(
            "0.5 * {v} * (1.0 + erf{f}({v} * {}))",
            number(std::f64::consts::FRAC_1_SQRT_2)
        ),
        "Shrink" => {
            let (bias, lambda) = (attribute("bias", 0.0), attribute("lambd", 0.5));
            format!(
                "if {v} < -{lambda} {{ {v} + {bias} }} else if {v} > {lambda} {{ {v} - {bias} }} else {{ 0.0 }}"
            )
        }
        "IsNaN" => format!("{v}.is_nan()"),
        "IsInf" => {
            let side = |name: &str| node.node.int(name, 1) != 0;
            match (side("detect_negative"), side("detect_positive")) {
                (true, true) => format!("{v}.is_infinite()"),
                (true, false) => format!("{v} == {}", number(f64::NEG_INFINITY)),
                (false, true) => format!("{v} == {}", number(f64::INFINITY)),
                (false, false) => "false".to_owned(),
            }
        }
        _ => return None,
    })
}

/// Limits a number; what is not a number stays.
fn clamp(x: &str, low: &str, high: &str) -> String {
    format!(
        "{{ let t = {x}; let t = if t < {low} {{ {low} }} else {{ t }}; if t > {high} {{ {high} }} else {{ t }} }}"
    )
}

/// `Clip` by inputs (opset 11) or by attributes (before).
fn clip(node: &LoopNode<'_>, args: &[Option<Term>]) -> Option<String> {
    if node.node.op != "Clip" {
        return None;
    }
    let x = args.first()?.as_ref()?;
    let bound = |idx: usize, name: &str| match args.get(idx) {
        Some(Some(term)) => Some(term.text.clone()),
        _ => match node.node.attributes.get(name) {
            Some(Attribute::Float(value)) => Some(float((*value).into(), x.dtype)),
            _ => None,
        },
    };
    let mut text = x.text.clone();
    // The upper bound wins where the bounds cross.
    if let Some(low) = bound(1, "min") {
        text = format!("{{ let t = {text}; if t < {low} {{ {low} }} else {{ t }} }}");
    }
    if let Some(high) = bound(2, "max") {
        text = format!("{{ let t = {text}; if t > {high} {{ {high} }} else {{ t }} }}");
    }
    Some(text)
}

fn binary(node: &LoopNode<'_>, a: &Term, b: &Term, output: DType) -> Option<String> {
    let (x, y) = (&a.text, &b.text);
    let dtype = a.dtype;
    let compare = |sign: &str| Some(format!("{x} {sign} {y}"));
    let float = dtype.is_float();
    match node.node.op.as_str() {
        "Equal" => return compare("=="),
        "Greater" => return compare(">"),
        "GreaterOrEqual" => return compare(">="),
        "Less" => return compare("<"),
        "LessOrEqual" => return compare("<="),
        "And" | "BitwiseAnd" => return compare("&"),
        "Or" | "BitwiseOr" => return compare("|"),
        "Xor" | "BitwiseXor" => return compare("^"),
        "Pow" => return Some(power(a, b, output)),
        // The second input says the type only.
        "CastLike" => return Some(cast(a, output)),
        _ => {}
    }
    if dtype == DType::Bool {
        return None;
    }
    Some(match (node.node.op.as_str(), float) {
        ("Sub", true) => format!("{x} - {y}"),
        ("Div", true) => format!("{x} / {y}"),
        ("Sub", false) => format!("{x}.wrapping_sub({y})"),
        ("Div", false) => format!("if {y} == 0 {{ 0 }} else {{ {x}.wrapping_div({y}) }}"),
        ("Mod", true) if node.node.int("fmod", 0) != 0 => format!("{x} % {y}"),
        ("Mod", true) => format!(
            "{{ let r = {x} % {y}; if r != 0.0 && (r < 0.0) != ({y} < 0.0) {{ r + {y} }} else {{ r }} }}"
        ),
        ("Mod", false) => {
            let truncated = format!("if {y} == 0 {{ 0 }} else {{ {x}.wrapping_rem({y}) }}");
            if node.node.int("fmod", 0) != 0 || !is_signed(dtype) {
                truncated
            } else {
                // The sign of the divisor, as Python has it.
                format!(
                    "{{ let r = {truncated}; if r != 0 && (r ^ {y}) < 0 {{ r.wrapping_add({y}) }} else {{ r }} }}"
                )
            }
        }
        ("BitShift", false) => {
            let left = node.node.string("direction", "") == "LEFT";
            let shift = if left { "wrapping_shl" } else { "wrapping_shr" };
            // What is shifted out to the right leaves the sign behind.
            let gone = if left || !is_signed(dtype) {
                "0".to_owned()
            } else {
                format!("if {x} < 0 {{ -1 }} else {{ 0 }}")
            };
            format!(
                "if {y} as u64 >= {}::BITS as u64 {{ {gone} }} else {{ {x}.{shift}({y} as u32) }}",
                dtype.name()
            )
        }
        ("PRelu", true) => format!("if {x} < 0.0 {{ {x} * {y} }} else {{ {x} }}"),
        ("PRelu", false) => format!("if {x} < 0 {{ {x}.wrapping_mul({y}) }} else {{ {x} }}"),
        _ => return None,
    })
}

fn power(a: &Term, b: &Term, output: DType) -> String {
    let (x, y) = (&a.text, &b.text);
    match (a.dtype.is_float(), b.dtype.is_float()) {
        (true, _) if a.dtype == DType::F64 => format!("pow({x}, {y} as f64)"),
        (true, _) => match y.as_str() {
            "(2.0f32)" => format!("{x} * {x}"),
            "(0.5f32)" => format!("sqrtf({x})"),
            _ => format!("powf({x}, {y} as f32)"),
        },
        (false, true) => format!("pow({x} as f64, {y} as f64) as {}", rust_type(output)),
        (false, false) => format!("ipow({x} as i64, {y} as i64) as {}", rust_type(output)),
    }
}

/// `Add`, `Mul` and the operators of any number of operands.
fn variadic(node: &LoopNode<'_>, args: &[&Term], output: DType) -> Option<String> {
    if output == DType::Bool {
        return None;
    }
    let float = output.is_float();
    let fold = |combine: &dyn Fn(String, &str) -> String| {
        let (first, rest) = args.split_first()?;
        Some(rest.iter().fold(first.text.clone(), |folded, term| {
            combine(folded, &term.text)
        }))
    };
    let add = |a: String, b: &str| {
        if float {
            format!("({a} + {b})")
        } else {
            format!("{a}.wrapping_add({b})")
        }
    };
    match node.node.op.as_str() {
        "Add" | "Sum" => fold(&add),
        "Mul" => fold(&|a, b| {
            if float {
                format!("({a} * {b})")
            } else {
                format!("{a}.wrapping_mul({b})")
            }
        }),
        "Mean" => Some(format!(
            "({}) / {}",
            fold(&add)?,
            float_count(args.len(), output)
        )),
        // What is not a number stays.
        "Max" => fold(&|a, b| {
            format!("{{ let (a, b) = ({a}, {b}); if a > b || a != a {{ a }} else {{ b }} }}")
        }),
        "Min" => fold(&|a, b| {
            format!("{{ let (a, b) = ({a}, {b}); if a < b || a != a {{ a }} else {{ b }} }}")
        }),
        _ => None,
    }
}

fn float_count(n: usize, dtype: DType) -> String {
    float(n as f64, dtype)
}

/// Converts between types: towards zero for integers, by bits between integers.
pub(super) fn cast(x: &Term, to: DType) -> String {
    let v = &x.text;
    match (x.dtype, to) {
        (from, to) if from == to => v.clone(),
        (DType::Bool, to) => format!("{v} as u8 as {}", rust_type(to)),
        (from, DType::Bool) if from.is_float() => format!("{v} != 0.0"),
        (_, DType::Bool) => format!("{v} != 0"),
        // Narrow integers take the low bits of what was truncated.
        (from, DType::I8 | DType::U8 | DType::I16 | DType::U16) if from.is_float() => {
            format!("{v} as i64 as {}", rust_type(to))
        }
        (_, to) => format!("{v} as {}", rust_type(to)),
    }
}

/// Returns the term of an input: a literal where it is one number, else the variable.
pub(super) fn term(known: &Known<'_>, variable: String) -> Term {
    let text = known.data.and_then(constant).unwrap_or(variable);
    Term {
        text,
        dtype: known.dtype,
    }
}
