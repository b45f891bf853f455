//! Which rule serves which operator.

use super::fact::{Case, Fact, InferError, Operand};
use super::{convolution, einsum, elementwise, indexing, layout, linear, resizing};
use crate::graph::Node;

/// Infers the outputs of a node: one fact for each output of the operator, in order.
///
/// Returns `None` if there is no rule for the operator. `operands` are in ONNX order; a rule that
/// needs the elements of an input (a target shape, axes) takes them from a constant operand.
///
/// # Errors
/// [`InferError`] if inputs or attributes do not fit the operator.
pub fn infer(
    node: &Node,
    opset: i64,
    operands: &[Option<Operand<'_>>],
) -> Result<Option<Vec<Fact>>, InferError> {
    if !matches!(node.domain.as_str(), "" | "ai.onnx" | "metainfer") {
        return Ok(None);
    }
    let case = Case {
        node,
        opset,
        operands,
    };
    match node.op.as_str() {
        "Einsum" => einsum::einsum(&case),
        "GridSample" => resizing::grid_sample(&case),
        "Conv" | "ConvInteger" => convolution::conv(&case),
        "ConvTranspose" => convolution::conv_transpose(&case),
        "MaxPool" | "AveragePool" | "LpPool" => convolution::pool(&case),
        "GlobalAveragePool" | "GlobalMaxPool" | "GlobalLpPool" => convolution::global_pool(&case),
        "Gemm" => linear::gemm(&case),
        "MatMul" | "MatMulInteger" => linear::matmul(&case),
        "LSTM" | "GRU" | "RNN" => linear::recurrent(&case),
        "LayerNormalization" | "RMSNormalization" => linear::layer_normalization(&case),
        "Reshape" => layout::reshape(&case),
        "Flatten" => layout::flatten(&case),
        "Transpose" => layout::transpose(&case),
        "Squeeze" => layout::squeeze(&case),
        "Unsqueeze" => layout::unsqueeze(&case),
        "Concat" => layout::concat(&case),
        "Split" => layout::split(&case),
        "DepthToSpace" => layout::depth_to_space(&case),
        "SpaceToDepth" => layout::space_to_depth(&case),
        "Shape" => layout::shape(&case),
        "Size" => layout::size(&case),
        "Slice" => indexing::slice(&case),
        "Gather" => indexing::gather(&case),
        "GatherElements" => indexing::gather_elements(&case),
        "GatherND" => indexing::gather_nd(&case),
        "OneHot" => indexing::one_hot(&case),
        "TopK" => indexing::top_k(&case),
        "ArgMax" | "ArgMin" => indexing::arg_reduce(&case),
        "ReduceMean" | "ReduceSum" | "ReduceMax" | "ReduceMin" | "ReduceProd" | "ReduceL1"
        | "ReduceL2" | "ReduceLogSum" | "ReduceLogSumExp" | "ReduceSumSquare" => {
            indexing::reduce(&case)
        }
        "Pad" => resizing::pad(&case),
        "Expand" => resizing::expand(&case),
        "Tile" => resizing::tile(&case),
        "Resize" | "Upsample" => resizing::resize(&case),
        "ConstantOfShape" => resizing::constant_of_shape(&case),
        "Range" => resizing::range(&case),
        _ => elementwise::infer(&case),
    }
}
