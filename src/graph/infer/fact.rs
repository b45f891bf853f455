//! What is known of a node's inputs and outputs, and small readers over it.

use crate::graph::{
    DType, Graph, Node, Shape, Tensor, TensorData, ValueId, f16_to_f32, from_front,
};

/// Type and shape of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Element type.
    pub dtype: DType,
    /// Shape.
    pub shape: Shape,
}

/// What is known of an input.
#[derive(Debug, Clone, Copy)]
pub struct Operand<'a> {
    /// Element type.
    pub dtype: DType,
    /// Shape.
    pub shape: &'a Shape,
    /// Elements, if the input is a constant.
    pub data: Option<&'a Tensor>,
}

impl Graph {
    /// Returns what is known of a node's inputs.
    pub fn operands(&self, node: &Node) -> Vec<Option<Operand<'_>>> {
        let operand = |id: &Option<ValueId>| {
            let value = self.value((*id)?);
            Some(Operand {
                dtype: value.dtype,
                shape: &value.shape,
                data: value.data.as_deref(),
            })
        };
        node.inputs.iter().map(operand).collect()
    }
}

/// Inputs or attributes that do not fit the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InferError {
    /// A required input is left out.
    #[error("input {0} is missing")]
    MissingInput(usize),
    /// Something does not fit; says what, with shapes.
    #[error("{0}")]
    Mismatch(String),
    /// The output's shape depends on the elements of an input that is not constant.
    #[error("its output shape depends on the elements of input {0}, which is not a constant")]
    DataDependent(usize),
}

/// A node, the operator set it follows and its inputs, as the rules see them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case<'a> {
    pub node: &'a Node,
    pub opset: i64,
    pub operands: &'a [Option<Operand<'a>>],
}

/// Shorthand of the rules.
pub(super) type Facts = Result<Option<Vec<Fact>>, InferError>;

/// Builds a [`InferError::Mismatch`].
pub(super) fn mismatch<T>(text: impl Into<String>) -> Result<T, InferError> {
    Err(InferError::Mismatch(text.into()))
}

/// Returns the element type of a `TensorProto.DataType`, as attributes name it.
pub(super) fn dtype(data_type: i64) -> Result<DType, InferError> {
    match DType::from_onnx(data_type) {
        Some(dtype) => Ok(dtype),
        None => mismatch(format!(
            "element type {data_type} of its output is not supported"
        )),
    }
}

/// Returns the only number that a constant holds.
pub(super) fn number(tensor: &Tensor) -> Option<f64> {
    match (tensor.to_i64().as_deref(), tensor.as_f32(), tensor.data()) {
        (Some([value]), ..) => Some(*value as f64),
        (_, Some([value]), _) => Some(f64::from(*value)),
        (.., TensorData::F64(data)) if data.len() == 1 => Some(data[0]),
        (.., TensorData::F16(data)) if data.len() == 1 => Some(f64::from(f16_to_f32(data[0]))),
        _ => None,
    }
}

/// Wraps the fact of an only output.
#[expect(clippy::unnecessary_wraps, reason = "rules end in it")]
pub(super) fn one(dtype: DType, shape: Vec<usize>) -> Facts {
    let shape = Shape(shape);
    Ok(Some(vec![Fact { dtype, shape }]))
}

impl<'a> Case<'a> {
    /// Returns a required input.
    pub(super) fn operand(&self, idx: usize) -> Result<Operand<'a>, InferError> {
        self.optional(idx).ok_or(InferError::MissingInput(idx))
    }

    /// Returns an input that may be left out.
    pub(super) fn optional(&self, idx: usize) -> Option<Operand<'a>> {
        self.operands.get(idx).copied().flatten()
    }

    /// Returns the dimensions of a required input.
    pub(super) fn dims(&self, idx: usize) -> Result<&'a [usize], InferError> {
        Ok(self.operand(idx)?.shape.dims())
    }

    /// Returns the integers of an optional input, which must be constant.
    pub(super) fn ints_input(&self, idx: usize) -> Result<Option<Vec<i64>>, InferError> {
        let Some(operand) = self.optional(idx) else {
            return Ok(None);
        };
        let tensor = operand.data.ok_or(InferError::DataDependent(idx))?;
        match tensor.to_i64() {
            Some(ints) => Ok(Some(ints)),
            None => mismatch(format!("input {idx} must hold integers")),
        }
    }

    /// Returns the integers of an attribute that later operator sets made an input.
    pub(super) fn ints(&self, name: &str, idx: usize) -> Result<Option<Vec<i64>>, InferError> {
        match self.node.ints(name) {
            Some(ints) => Ok(Some(ints.to_vec())),
            None => self.ints_input(idx),
        }
    }

    /// Returns the dimensions that a constant input names.
    pub(super) fn dims_input(&self, idx: usize) -> Result<Vec<usize>, InferError> {
        let named = self.ints_input(idx)?.ok_or(InferError::MissingInput(idx))?;
        named.into_iter().map(dim).collect()
    }

    /// Returns the number that a constant input holds.
    pub(super) fn number_input(&self, idx: usize) -> Result<f64, InferError> {
        let tensor = self.operand(idx)?.data;
        match number(tensor.ok_or(InferError::DataDependent(idx))?) {
            Some(value) => Ok(value),
            None => mismatch(format!("input {idx} is not a single number")),
        }
    }

    /// Refuses an input whose shape is another.
    pub(super) fn expect(&self, idx: usize, name: &str, dims: &[usize]) -> Result<(), InferError> {
        match self.optional(idx) {
            Some(operand) if operand.shape.dims() != dims => {
                mismatch(format!("{name} is {}, it must be {dims:?}", operand.shape))
            }
            _ => Ok(()),
        }
    }

    /// Refuses an input whose element type is not that of input 0.
    pub(super) fn expect_type(&self, idx: usize) -> Result<(), InferError> {
        let dtype = self.operand(0)?.dtype;
        match self.optional(idx) {
            Some(other) if other.dtype != dtype => {
                mismatch(format!("element types {dtype} and {} differ", other.dtype))
            }
            _ => Ok(()),
        }
    }

    /// Returns an axis attribute, counted from the front.
    pub(super) fn axis(&self, default: i64, rank: usize) -> Result<usize, InferError> {
        axis(self.node.int("axis", default), rank)
    }
}

/// Counts an axis from the front; `rank` itself is out of range.
pub(super) fn axis(axis: i64, rank: usize) -> Result<usize, InferError> {
    match from_front(axis, rank) {
        Some(idx) => Ok(idx),
        None => mismatch(format!("axis {axis} is out of range for {rank} dimensions")),
    }
}

/// Counts axes from the front and refuses repeated ones.
pub(super) fn axes(list: &[i64], rank: usize) -> Result<Vec<usize>, InferError> {
    let mut sorted = list
        .iter()
        .map(|&a| axis(a, rank))
        .collect::<Result<Vec<_>, _>>()?;
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return mismatch(format!("axes {list:?} name one axis twice"));
    }
    Ok(sorted)
}

/// Turns a computed dimension into one, refusing negative ones.
pub(super) fn dim(value: i64) -> Result<usize, InferError> {
    match usize::try_from(value) {
        Ok(dim) => Ok(dim),
        Err(_) => mismatch(format!("a dimension comes out as {value}")),
    }
}

/// Returns the shape that two shapes broadcast to.
pub(super) fn broadcast(lhs: &[usize], rhs: &[usize]) -> Result<Vec<usize>, InferError> {
    let rank = lhs.len().max(rhs.len());
    let at = |dims: &[usize], idx: usize| {
        (idx + dims.len())
            .checked_sub(rank)
            .map_or(1, |own| dims[own])
    };
    (0..rank)
        .map(|idx| match (at(lhs, idx), at(rhs, idx)) {
            (a, b) if a == b => Ok(a),
            (1, b) => Ok(b),
            (a, 1) => Ok(a),
            _ => mismatch(format!("shapes {lhs:?} and {rhs:?} do not broadcast")),
        })
        .collect()
}
