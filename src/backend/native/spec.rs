//! What a subgraph computes, in the terms of the kernels: shapes, strides and epilogues, without
//! a choice of how.

use std::sync::Arc;

use serde::Serialize;

pub use super::qspec::{Affine, Quantized, Table};
use crate::graph::{Tensor, ValueId};

/// A convolution, dense, grouped or depthwise, with what is fused around it.
#[derive(Debug, Clone, PartialEq)]
pub struct Conv {
    /// Batch.
    pub n: usize,
    /// Groups.
    pub groups: usize,
    /// Input channels, height and width.
    pub input: [usize; 3],
    /// Output channels, height and width.
    pub output: [usize; 3],
    /// Kernel height and width.
    pub kernel: [usize; 2],
    /// Strides.
    pub stride: [usize; 2],
    /// Dilations.
    pub dilation: [usize; 2],
    /// Padding above and to the left; what lies below and to the right follows from the output.
    pub pad: [usize; 2],
    /// What is applied to each result.
    pub epilogue: Vec<Epilogue>,
    /// Weights `[oc, ic / groups, kh, kw]`.
    pub weights: Vec<f32>,
    /// One bias an output channel.
    pub bias: Vec<f32>,
    /// The value added or multiplied by an epilogue.
    pub residual: Option<ValueId>,
    /// One factor an input channel, applied before.
    pub scale: Option<ValueId>,
    /// The mean over height and width of the results, if wanted.
    pub pooled: Option<ValueId>,
    /// Whether the results themselves are wanted.
    pub stored: bool,
    /// How it computes with integers, if it does.
    pub quantized: Option<Quantized>,
}

/// A fully connected layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Dense {
    /// Rows.
    pub n: usize,
    /// Inputs of each row.
    pub k: usize,
    /// Outputs of each row.
    pub m: usize,
    /// What is applied to each result.
    pub epilogue: Vec<Epilogue>,
    /// Weights `[m, k]`.
    pub weights: Vec<f32>,
    /// One bias an output.
    pub bias: Vec<f32>,
    /// The value added or multiplied by an epilogue.
    pub residual: Option<ValueId>,
    /// How it computes with integers, if it does.
    pub quantized: Option<Quantized>,
}

/// Max or average pooling.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// Whether it averages; else it takes the maximum.
    pub average: bool,
    /// Whether padding counts in the average.
    pub count_pad: bool,
    /// Kernel height and width.
    pub kernel: [usize; 2],
    /// Strides.
    pub stride: [usize; 2],
    /// Dilations.
    pub dilation: [usize; 2],
    /// Padding above, left, below, right.
    pub pad: [usize; 4],
    /// What is applied to each result.
    pub epilogue: Vec<Epilogue>,
    /// How the input is read if it is u8, and how the result is rounded if it is.
    pub bytes: [Option<Affine>; 2],
}

/// A chain of elementwise operators.
#[derive(Debug, Clone, PartialEq)]
pub struct Map {
    /// The operators in order.
    pub chain: Vec<MapStep>,
    /// Their other operands.
    pub operands: Vec<Operand>,
    /// How the main input and the other operands, in order, are read if they are u8.
    pub reads: Vec<Option<Affine>>,
    /// How the result is rounded if it is u8.
    pub writes: Option<Affine>,
}

/// One elementwise operator.
#[derive(Debug, Clone, PartialEq)]
pub enum MapStep {
    /// One operand.
    Unary(Epilogue),
    /// `op` is `add`, `sub`, `rsub`, `mul`, `div`, `rdiv`, `max` or `min`; `r…` swaps the sides.
    Binary {
        /// The operator.
        op: &'static str,
        /// Index into [`Map::operands`].
        operand: usize,
    },
}

/// The other operand of an elementwise operator.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// A value of the same extents.
    Same(ValueId),
    /// A value with one number a channel.
    Channel(ValueId),
    /// Constant numbers, one a channel.
    Constant(Vec<f32>),
}

/// A transposed convolution: outputs at distances of the strides are a phase, and each phase is a
/// convolution of the input with those taps that reach it.
#[derive(Debug, Clone, PartialEq)]
pub struct Deconv {
    /// The first row and column of each phase, and its convolution. All have one epilogue.
    pub phases: Vec<([usize; 2], Conv)>,
    /// Rows and columns between outputs of a phase.
    pub stride: [usize; 2],
}

/// Pixels of the input taken as they are, e.g. to enlarge it.
#[derive(Debug, Clone, PartialEq)]
pub struct Resample {
    /// Row of the input for each row of the output.
    pub rows: Vec<usize>,
    /// Column of the input for each column of the output.
    pub columns: Vec<usize>,
}

/// Values one after the other along the channels.
#[derive(Debug, Clone, PartialEq)]
pub struct Concat {
    /// The values, in order.
    pub inputs: Vec<ValueId>,
}

/// An operator as plain loops over dense row-major values of any type.
#[derive(Debug, Clone, PartialEq)]
pub struct Loops {
    /// The template that renders it.
    pub template: &'static str,
    /// What the template reads as `c`: extents, strides, types, expressions. If there are `units`,
    /// the outermost loop has so many turns, none of which needs another one, and its bounds are
    /// `c.turns`.
    pub facts: serde_json::Value,
    /// What it reads, in order.
    pub inputs: Vec<Source>,
    /// What it writes, in order.
    pub outputs: Vec<ValueId>,
    /// Bytes of memory that it needs while it runs.
    pub room: usize,
}

/// A product of matrices of f32 over any number of batches:
/// `epilogue(alpha · lhs · rhs + beta · addend)`.
#[derive(Debug, Clone, PartialEq)]
pub struct MatMul {
    /// Rows, inner extent and columns.
    pub extents: [usize; 3],
    /// Extents of the loops over matrices.
    pub batch: Vec<usize>,
    /// Rows by the inner extent.
    pub lhs: Matrix,
    /// The inner extent by columns.
    pub rhs: Matrix,
    /// The result; its columns lie next to each other.
    pub result: Matrix,
    /// What is added, broadcast to the result, and its factor.
    pub addend: Option<(Matrix, f32)>,
    /// The factor of the product.
    pub alpha: f32,
    /// What is applied to each result.
    pub epilogue: Vec<Epilogue>,
    /// The left and the right operand, then the addend, then the value that an epilogue reads, as
    /// far as there are any.
    pub operands: Vec<Source>,
    /// The value of the result.
    pub output: ValueId,
    /// How it computes with integers, if it does: its weights are the right operand, the inner
    /// extent (a multiple of 8) by columns (a multiple of 16), and the operands lack that one. Rows
    /// lie one after the other, and what is added is constant, one number a column. Where results are
    /// sums, the second operand is the zero point.
    pub quantized: Option<Quantized>,
}

/// Where the elements of matrices lie: distances in elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matrix {
    /// From one row to the next.
    pub row: usize,
    /// From one column to the next.
    pub column: usize,
    /// From one matrix to the next, along each loop over them.
    pub batch: Vec<usize>,
}

/// Something that plain loops read.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// A value that is computed.
    Value(ValueId),
    /// Numbers that are known.
    Constant(Arc<Tensor>),
}

/// What is applied to a vector of results; fields are f32 literals.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(
    missing_docs,
    reason = "the names are ONNX's and the formulas stand in epilogue.j2"
)]
pub enum Epilogue {
    Relu,
    LeakyRelu {
        alpha: String,
    },
    Clip {
        low: String,
        high: String,
    },
    HardSigmoid {
        alpha: String,
        beta: String,
    },
    HardSwish,
    Sigmoid,
    Silu,
    Tanh,
    Exp,
    Neg,
    GeluErf,
    GeluTanh,
    Elu {
        alpha: String,
    },
    AddConst {
        value: String,
    },
    MulConst {
        value: String,
    },
    RsubConst {
        value: String,
    },
    DivConst {
        value: String,
    },
    RdivConst {
        value: String,
    },
    AddTensor,
    MulTensor,
    Requantize {
        per_step: String,
        low: String,
        high: String,
        step: String,
    },
}

/// What one step of a program computes.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A convolution that mixes channels.
    Conv(Conv),
    /// A convolution with one input channel a group and one output channel.
    Depthwise(Conv),
    /// A fully connected layer.
    Dense(Dense),
    /// A transposed convolution.
    Deconv(Deconv),
    /// Values joined along the channels.
    Concat(Concat),
    /// Pixels taken from the input.
    Resample(Resample),
    /// Pooling.
    Pool(Pool),
    /// Elementwise operators.
    Map(Map),
    /// A function of 8 bits each.
    Table(Table),
    /// A product of matrices.
    MatMul(MatMul),
    /// Any other operator.
    Loops(Loops),
    /// The same numbers in the same order under another shape.
    Alias,
}

/// One operation of a lowered subgraph.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// The subgraph it belongs to, an index into the partition.
    pub subgraph: usize,
    /// What it is, for people.
    pub name: String,
    /// What it computes.
    pub kind: Kind,
    /// Its main input.
    pub x: ValueId,
    /// Its main output.
    pub y: ValueId,
}

/// Writes a number as a Rust f32 literal that reads back the same.
pub fn literal(value: f32) -> String {
    if value == f32::INFINITY {
        "f32::INFINITY".to_owned()
    } else if value == f32::NEG_INFINITY {
        "f32::NEG_INFINITY".to_owned()
    } else if value.is_nan() {
        "f32::NAN".to_owned()
    } else {
        format!("{value:?}f32")
    }
}

impl MatMul {
    /// Returns the rows of all matrices.
    pub fn n_rows(&self) -> usize {
        self.extents[0] * self.batch.iter().product::<usize>()
    }

    /// Returns whether there is nothing to multiply.
    pub fn is_empty(&self) -> bool {
        self.extents.contains(&0)
    }
}

impl Conv {
    /// Returns the zero rows and columns that the input needs around it: above, left, below and
    /// right.
    pub fn margins(&self) -> [usize; 4] {
        let reach = |axis: usize| {
            let last = (self.output[axis + 1] - 1) * self.stride[axis]
                + (self.kernel[axis] - 1) * self.dilation[axis];
            (last + 1).saturating_sub(self.input[axis + 1] + self.pad[axis])
        };
        [self.pad[0], self.pad[1], reach(0), reach(1)]
    }

    /// Returns whether each group has one input channel and one output channel.
    pub fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.groups == self.input[0] && self.groups == self.output[0]
    }

    /// Returns the multiply-adds of one run.
    pub fn macs(&self) -> u64 {
        let [oc, oh, ow] = self.output;
        let per_output = self.input[0] / self.groups * self.kernel[0] * self.kernel[1];
        (self.n * oc * oh * ow * per_output) as u64
    }
}
