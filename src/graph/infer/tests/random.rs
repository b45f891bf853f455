//! Whatever comes in, a rule answers with facts or an error.

use proptest::prelude::*;

use super::super::infer;
use crate::graph::{Attribute, DType, Node, Operand, Shape, Tensor, ValueId};

const OPERATORS: &[&str] = &[
    "Add",
    "ArgMax",
    "Attention",
    "AveragePool",
    "BatchNormalization",
    "CausalConvWithState",
    "CenterCropPad",
    "Clip",
    "Col2Im",
    "Compress",
    "Concat",
    "ConstantOfShape",
    "Conv",
    "ConvTranspose",
    "CumSum",
    "DFT",
    "DeformConv",
    "DepthToSpace",
    "DequantizeLinear",
    "Det",
    "Einsum",
    "Expand",
    "EyeLike",
    "Flatten",
    "GRU",
    "Gather",
    "GatherElements",
    "GatherND",
    "Gemm",
    "GridSample",
    "GroupNormalization",
    "HannWindow",
    "LSTM",
    "LayerNormalization",
    "LinearAttention",
    "MatMul",
    "MaxPool",
    "MaxRoiPool",
    "MaxUnpool",
    "MelWeightMatrix",
    "NonZero",
    "OneHot",
    "Pad",
    "QLinearConv",
    "QLinearMatMul",
    "QuantizeLinear",
    "Range",
    "ReduceSum",
    "Reshape",
    "Resize",
    "ReverseSequence",
    "RoiAlign",
    "RotaryEmbedding",
    "STFT",
    "ScatterElements",
    "ScatterND",
    "Shape",
    "Slice",
    "SoftmaxCrossEntropyLoss",
    "SpaceToDepth",
    "Split",
    "Squeeze",
    "TensorScatter",
    "Tile",
    "TopK",
    "Transpose",
    "Trilu",
    "Unsqueeze",
    "Upsample",
];

const INTS: &[&str] = &[
    "axis",
    "batch_dims",
    "group",
    "num_groups",
    "blocksize",
    "block_size",
    "k",
    "num_outputs",
    "ceil_mode",
    "offset_group",
    "q_num_heads",
    "kv_num_heads",
    "onesided",
    "inverse",
    "layout",
    "keepdims",
    "transA",
    "start",
    "end",
    "output_height",
    "rotary_embedding_dim",
];

const LISTS: &[&str] = &[
    "kernel_shape",
    "strides",
    "dilations",
    "pads",
    "axes",
    "perm",
    "output_shape",
    "output_padding",
    "starts",
    "ends",
    "split",
    "pooled_shape",
];

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 0usize..6, 1 => Just(1 << 31), 1 => Just(65_536)]
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![
        6 => -3i64..6,
        1 => Just(i64::MAX),
        1 => Just(i64::MIN),
        1 => Just(1 << 31),
        1 => Just(-(1 << 33)),
    ]
}

/// Shape, element type, and elements if it is a constant.
fn operand() -> impl Strategy<Value = (Vec<usize>, DType, Option<Vec<i64>>)> {
    let dtype = prop::sample::select(vec![DType::F32, DType::I64, DType::U8, DType::Bool]);
    let open =
        (prop::collection::vec(size(), 0..5), dtype).prop_map(|(dims, dtype)| (dims, dtype, None));
    let list = prop::collection::vec(number(), 0..5)
        .prop_map(|data| (vec![data.len()], DType::I64, Some(data)));
    let scalar = number().prop_map(|value| (vec![], DType::I64, Some(vec![value])));
    prop_oneof![3 => open, 1 => list, 1 => scalar]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn rules_answer(
        op in prop::sample::select(OPERATORS.to_vec()),
        opset in 7i64..29,
        inputs in prop::collection::vec(operand(), 0..6),
        single in prop::collection::vec((prop::sample::select(INTS.to_vec()), number()), 0..3),
        lists in prop::collection::vec(
            (prop::sample::select(LISTS.to_vec()), prop::collection::vec(number(), 0..5)),
            0..3,
        ),
    ) {
        let inputs: Vec<(Shape, DType, Option<Tensor>)> = inputs
            .into_iter()
            .map(|(dims, dtype, data)| {
                let data = data.map(|data| {
                    let shape = Shape(dims.clone());
                    Tensor::from_i64(data).reshaped(shape).unwrap()
                });
                (Shape(dims), dtype, data)
            })
            .collect();
        let operands: Vec<Option<Operand<'_>>> = inputs
            .iter()
            .map(|(shape, dtype, data)| {
                Some(Operand { dtype: *dtype, shape, data: data.as_ref() })
            })
            .collect();
        let single = single.into_iter().map(|(name, value)| (name.to_owned(), Attribute::Int(value)));
        let lists = lists.into_iter().map(|(name, values)| (name.to_owned(), Attribute::Ints(values)));
        let node = Node {
            name: String::new(),
            op: op.to_owned(),
            domain: String::new(),
            attributes: single.chain(lists).collect(),
            inputs: vec![Some(ValueId(0)); inputs.len()],
            outputs: vec![Some(ValueId(0)); 2],
        };
        // A debug build checks every sum and product for overflow.
        if let Ok(Some(facts)) = infer(&node, opset, &operands) {
            prop_assert!(!facts.is_empty());
        }
    }
}
