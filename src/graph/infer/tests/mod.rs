//! Rules by family: operator, attributes and input facts to output facts, or the error.

mod indexing;
mod linear;
mod moving;
mod normalization;
mod quantization;
mod random;
mod special;
mod windows;

use super::infer;
use crate::graph::{Attribute, DType, Node, Operand, Shape, Tensor, TensorData, ValueId};

/// Shorthand of attributes.
type Given<'a> = &'a [(&'a str, Attribute)];

pub(super) fn int(value: i64) -> Attribute {
    Attribute::Int(value)
}

pub(super) fn ints(values: &[i64]) -> Attribute {
    Attribute::Ints(values.to_vec())
}

pub(super) fn text(value: &str) -> Attribute {
    Attribute::String(value.to_owned())
}

/// An input: its type and shape, and its elements if it is a constant.
struct Input {
    dtype: DType,
    shape: Shape,
    data: Option<Tensor>,
}

fn dtype(name: &str) -> DType {
    let all = [
        DType::F32,
        DType::F16,
        DType::F64,
        DType::I8,
        DType::U8,
        DType::I16,
        DType::U16,
        DType::I32,
        DType::U32,
        DType::I64,
        DType::U64,
        DType::Bool,
    ];
    *all.iter().find(|dtype| dtype.name() == name).unwrap()
}

/// Reads `f32[2,3]`, or `i64[2]=1,2` for a constant; `_` is left out.
fn input(word: &str) -> Option<Input> {
    if word == "_" {
        return None;
    }
    let (fact, data) = match word.split_once('=') {
        Some((fact, data)) => (fact, Some(data)),
        None => (word, None),
    };
    let (name, dims) = fact.trim_end_matches(']').split_once('[').unwrap();
    let numbers = |text: &str| -> Vec<f64> {
        let words = text.split(',').filter(|word| !word.is_empty());
        words.map(|word| word.parse().unwrap()).collect()
    };
    let shape = Shape(numbers(dims).into_iter().map(|v| v as usize).collect());
    let data = data.map(|data| {
        let data = numbers(data);
        let data = match dtype(name) {
            DType::F32 => TensorData::F32(data.into_iter().map(|v| v as f32).collect()),
            DType::I32 => TensorData::I32(data.into_iter().map(|v| v as i32).collect()),
            DType::I64 => TensorData::I64(data.into_iter().map(|v| v as i64).collect()),
            DType::U8 => TensorData::U8(data.into_iter().map(|v| v as u8).collect()),
            DType::Bool => TensorData::Bool(data.into_iter().map(|v| v != 0.0).collect()),
            other => panic!("constants of {other}"),
        };
        Tensor::new(shape.clone(), data).unwrap()
    });
    Some(Input {
        dtype: dtype(name),
        shape,
        data,
    })
}

/// Infers `op@opset` with so many outputs and returns facts, or the error, as text.
pub(super) fn inferred(op: &str, n_outputs: usize, given: Given<'_>, inputs: &str) -> String {
    let (op, opset) = op.split_once('@').unwrap_or((op, "20"));
    let inputs: Vec<Option<Input>> = inputs.split_whitespace().map(input).collect();
    let operands: Vec<Option<Operand<'_>>> = inputs
        .iter()
        .map(|input| {
            let input = input.as_ref()?;
            Some(Operand {
                dtype: input.dtype,
                shape: &input.shape,
                data: input.data.as_ref(),
            })
        })
        .collect();
    let node = Node {
        name: String::new(),
        op: op.to_owned(),
        domain: String::new(),
        attributes: given
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
        inputs: (0..inputs.len()).map(|i| Some(ValueId(i))).collect(),
        outputs: vec![Some(ValueId(0)); n_outputs],
    };
    match infer(&node, opset.parse().unwrap(), &operands) {
        Ok(Some(facts)) => {
            let words = facts.iter().take(n_outputs).map(|fact| {
                let dims: Vec<String> = fact.shape.dims().iter().map(usize::to_string).collect();
                format!("{}[{}]", fact.dtype, dims.join(","))
            });
            words.collect::<Vec<_>>().join(" ")
        }
        Ok(None) => "no rule".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// Checks the facts of as many outputs as are expected.
#[track_caller]
pub(super) fn check(op: &str, given: Given<'_>, inputs: &str, expected: &str) {
    let n_outputs = expected.split_whitespace().count();
    assert_eq!(inferred(op, n_outputs, given, inputs), expected, "{op}");
}

/// Checks an error.
#[track_caller]
pub(super) fn refuse(op: &str, given: Given<'_>, inputs: &str, expected: &str) {
    assert_eq!(inferred(op, 1, given, inputs), expected, "{op}");
}
