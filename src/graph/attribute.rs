//! Operator attributes, as ONNX has them.

use super::Tensor;

/// The value of one operator attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum Attribute {
    /// `FLOAT`.
    Float(f32),
    /// `INT`.
    Int(i64),
    /// `STRING`; bytes that are not UTF-8 are refused by the decoder.
    String(String),
    /// `FLOATS`.
    Floats(Vec<f32>),
    /// `INTS`.
    Ints(Vec<i64>),
    /// `STRINGS`.
    Strings(Vec<String>),
    /// `TENSOR`.
    Tensor(Tensor),
    /// `GRAPH`: the body of a control-flow operator.
    Graph(Box<super::Graph>),
}
