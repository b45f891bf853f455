//! Which function evaluates which operator.

use super::pick::each_type;
use super::{elementwise, generate, moves, quantize, reduce};
use crate::graph::{DType, Fact, Node, Shape, Tensor, TensorData, from_front};

/// Most elements that are computed here, read and written.
const MAX_ELEMENTS: usize = 1 << 22;

/// A node on constants, and what its outputs are.
pub(super) struct Case<'a> {
    pub node: &'a Node,
    pub inputs: &'a [Option<&'a Tensor>],
    pub facts: &'a [Fact],
}

impl<'a> Case<'a> {
    /// Returns an input that is given.
    pub(super) fn input(&self, idx: usize) -> Option<&'a Tensor> {
        self.inputs.get(idx).copied().flatten()
    }

    /// Returns the dimensions of an input.
    pub(super) fn dims(&self, idx: usize) -> Option<&'a [usize]> {
        Some(self.input(idx)?.shape().dims())
    }

    /// Returns the integers of an input.
    pub(super) fn ints(&self, idx: usize) -> Option<Vec<i64>> {
        self.input(idx)?.to_i64()
    }

    /// Returns the integers of an attribute that later operator sets made an input.
    pub(super) fn ints_of(&self, name: &str, idx: usize) -> Option<Vec<i64>> {
        match self.node.ints(name) {
            Some(ints) => Some(ints.to_vec()),
            None => self.ints(idx),
        }
    }

    /// Returns an axis attribute, counted from the front.
    pub(super) fn axis(&self, default: i64, rank: usize) -> Option<usize> {
        from_front(self.node.int("axis", default), rank)
    }

    /// Returns the inferred type of output 0.
    pub(super) fn dtype(&self) -> DType {
        self.facts.first().map_or(DType::F32, |fact| fact.dtype)
    }

    /// Returns the inferred shape of output 0.
    pub(super) fn shape(&self) -> Option<&'a Shape> {
        Some(&self.facts.first()?.shape)
    }

    /// Makes output 0 of elements.
    pub(super) fn only(&self, data: TensorData) -> Option<Vec<Tensor>> {
        Some(vec![Tensor::new(self.shape()?.clone(), data).ok()?])
    }
}

/// Evaluates a node whose inputs are all constants; `None` if it is not evaluated here.
///
/// `facts` are the inferred outputs, which the results agree with in type and shape.
pub(in crate::onnx) fn evaluate(
    node: &Node,
    inputs: &[Option<&Tensor>],
    facts: &[Fact],
) -> Option<Vec<Tensor>> {
    let case = Case {
        node,
        inputs,
        facts,
    };
    let n_elements = inputs
        .iter()
        .flatten()
        .map(|tensor| tensor.shape().len())
        .chain(facts.iter().map(|fact| fact.shape.len()))
        .fold(0, usize::saturating_add);
    if n_elements > MAX_ELEMENTS {
        return elementwise::cast_floats(&case);
    }
    let results = elementwise::evaluate(&case)
        .or_else(|| moves::evaluate(&case))
        .or_else(|| reduce::evaluate(&case))
        .or_else(|| generate::evaluate(&case))
        .or_else(|| quantize::evaluate(&case))?;
    let agrees = results
        .iter()
        .zip(facts)
        .all(|(tensor, fact)| tensor.dtype() == fact.dtype && *tensor.shape() == fact.shape);
    agrees.then_some(results)
}

/// Makes a tensor of zeros, or of nothing where the shape is empty.
pub(in crate::onnx) fn filled(dtype: DType, shape: &Shape) -> Option<Tensor> {
    let one = zero(dtype);
    let len = shape.checked_len()?;
    let data = each_type!(&one, d => vec![d.first().copied().unwrap_or_default(); len]);
    Tensor::new(shape.clone(), data).ok()
}

/// Returns a single zero.
fn zero(dtype: DType) -> TensorData {
    match dtype {
        DType::F32 => TensorData::F32(vec![0.0]),
        DType::F16 => TensorData::F16(vec![0]),
        DType::F64 => TensorData::F64(vec![0.0]),
        DType::I8 => TensorData::I8(vec![0]),
        DType::U8 => TensorData::U8(vec![0]),
        DType::I16 => TensorData::I16(vec![0]),
        DType::U16 => TensorData::U16(vec![0]),
        DType::I32 => TensorData::I32(vec![0]),
        DType::U32 => TensorData::U32(vec![0]),
        DType::I64 => TensorData::I64(vec![0]),
        DType::U64 => TensorData::U64(vec![0]),
        DType::Bool => TensorData::Bool(vec![false]),
    }
}
