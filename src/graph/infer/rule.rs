//! Which rule serves which operator.

use super::fact::{Case, Fact, Facts, InferError, Operand};
use super::{
    attention, convolution, einsum, elementwise, generate, indexing, layout, linear, loss,
    normalization, quantization, reduction, region, resizing, scatter, signal, types,
};
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
    types::check(&case)?;
    apply(&case)
}

fn apply(case: &Case<'_>) -> Facts {
    match case.node.op.as_str() {
        "Einsum" => einsum::einsum(case),
        "Conv" | "ConvInteger" => convolution::conv(case),
        "DeformConv" => convolution::deform_conv(case),
        "CausalConvWithState" => convolution::causal_conv(case),
        "ConvTranspose" => convolution::conv_transpose(case),
        "MaxPool" | "AveragePool" | "LpPool" => convolution::pool(case),
        "MaxUnpool" => convolution::unpool(case),
        "GlobalAveragePool" | "GlobalMaxPool" | "GlobalLpPool" => convolution::global_pool(case),
        "Gemm" => linear::gemm(case),
        "MatMul" | "MatMulInteger" => linear::matmul(case),
        "LSTM" | "GRU" | "RNN" => linear::recurrent(case),
        "Det" => linear::determinant(case),
        "Attention" => attention::attention(case),
        "LinearAttention" => attention::linear_attention(case),
        "RotaryEmbedding" => attention::rotary_embedding(case),
        "BatchNormalization" => normalization::batch(case),
        "LayerNormalization" | "RMSNormalization" => normalization::layer(case),
        "InstanceNormalization" => normalization::instance(case),
        "GroupNormalization" => normalization::group(case),
        "LRN" => normalization::local_response(case),
        "Softmax" | "LogSoftmax" | "Hardmax" | "LpNormalization" => normalization::along_axis(case),
        "MeanVarianceNormalization" => normalization::mean_variance(case),
        "QuantizeLinear" => quantization::quantize(case),
        "DequantizeLinear" => quantization::dequantize(case),
        "DynamicQuantizeLinear" => quantization::dynamic_quantize(case),
        "QLinearConv" => quantization::conv(case),
        "QLinearMatMul" => quantization::matmul(case),
        "Reshape" => layout::reshape(case),
        "Flatten" => layout::flatten(case),
        "Transpose" => layout::transpose(case),
        "Squeeze" => layout::squeeze(case),
        "Unsqueeze" => layout::unsqueeze(case),
        "Concat" => layout::concat(case),
        "Split" => layout::split(case),
        "DepthToSpace" => layout::depth_to_space(case),
        "SpaceToDepth" => layout::space_to_depth(case),
        "ReverseSequence" => layout::reverse_sequence(case),
        "Shape" => layout::shape(case),
        "Size" => layout::size(case),
        "Slice" => indexing::slice(case),
        "Gather" => indexing::gather(case),
        "GatherElements" => indexing::gather_elements(case),
        "GatherND" => indexing::gather_nd(case),
        "TopK" => indexing::top_k(case),
        "NonZero" => indexing::non_zero(case),
        "Unique" => indexing::unique(case),
        "NonMaxSuppression" => indexing::non_max_suppression(case),
        "Compress" => indexing::compress(case),
        "Scatter" | "ScatterElements" => scatter::elements(case),
        "ScatterND" => scatter::nd(case),
        "TensorScatter" => scatter::cache(case),
        "ArgMax" | "ArgMin" => reduction::arg_reduce(case),
        "CumSum" | "CumProd" => reduction::cumulative(case),
        op if op.starts_with("Reduce") => reduction::reduce(case),
        "Pad" => resizing::pad(case),
        "Expand" => resizing::expand(case),
        "Tile" => resizing::tile(case),
        "Trilu" => resizing::triangle(case),
        "CenterCropPad" => resizing::center_crop_pad(case),
        "Col2Im" => resizing::columns_to_image(case),
        "Resize" | "Upsample" => resizing::resize(case),
        "GridSample" => region::grid_sample(case),
        "AffineGrid" => region::affine_grid(case),
        "MaxRoiPool" => region::max_roi_pool(case),
        "RoiAlign" => region::roi_align(case),
        "ConstantOfShape" => generate::constant_of_shape(case),
        "Range" => generate::range(case),
        "EyeLike" => generate::eye_like(case),
        "OneHot" => generate::one_hot(case),
        "HannWindow" | "HammingWindow" | "BlackmanWindow" => signal::window(case),
        "MelWeightMatrix" => signal::mel_weights(case),
        "DFT" => signal::fourier(case),
        "STFT" => signal::short_time_fourier(case),
        "NegativeLogLikelihoodLoss" | "SoftmaxCrossEntropyLoss" => loss::loss(case),
        _ => elementwise::infer(case),
    }
}
