//! Attributes with the defaults of the ONNX specification written out.

use std::collections::BTreeMap;

use super::{Attribute, Graph, Node, Tensor};

/// Inputs that say how a node computes: what they are called where they are attributes.
///
/// Operator sets moved many of them from attributes to inputs, which changes nothing.
const PARAMETERS: &[(&str, usize, &str)] = &[
    ("Clip", 1, "min"),
    ("Clip", 2, "max"),
    ("Squeeze", 1, "axes"),
    ("Unsqueeze", 1, "axes"),
    ("ReduceMean", 1, "axes"),
    ("ReduceSum", 1, "axes"),
    ("ReduceMax", 1, "axes"),
    ("ReduceMin", 1, "axes"),
    ("ReduceProd", 1, "axes"),
    ("ReduceL1", 1, "axes"),
    ("ReduceL2", 1, "axes"),
    ("ReduceLogSum", 1, "axes"),
    ("ReduceLogSumExp", 1, "axes"),
    ("ReduceSumSquare", 1, "axes"),
    ("CenterCropPad", 1, "shape"),
    ("CumSum", 1, "axis"),
    ("CumProd", 1, "axis"),
    ("OneHot", 1, "depth"),
    ("Trilu", 1, "k"),
    ("Pad", 1, "pads"),
    ("Pad", 2, "value"),
    ("Slice", 1, "starts"),
    ("Slice", 2, "ends"),
    ("Slice", 3, "axes"),
    ("Slice", 4, "steps"),
    ("Split", 1, "split"),
    ("TopK", 1, "k"),
    ("Reshape", 1, "shape"),
    ("Expand", 1, "shape"),
    ("Tile", 1, "repeats"),
    ("Upsample", 1, "scales"),
    ("Resize", 2, "scales"),
    ("Resize", 3, "sizes"),
];

/// Attributes that say nothing about the output's numbers or cost.
const IRRELEVANT: &[(&str, &str)] = &[
    // The output's shape, which is known, says it all.
    ("Reshape", "shape"),
    ("Reshape", "allowzero"),
    ("Expand", "shape"),
    ("Flatten", "axis"),
    ("Squeeze", "axes"),
    ("Unsqueeze", "axes"),
    ("LayerNormalization", "stash_type"),
    ("BatchNormalization", "momentum"),
];

/// Returns the inputs of an operator that are attributes elsewhere: their places and names.
pub(super) fn parameters(op: &str) -> Vec<(usize, &'static str)> {
    let own = PARAMETERS.iter().filter(|(of, ..)| *of == op);
    own.map(|&(_, idx, name)| (idx, name)).collect()
}

/// Returns the name under which input `idx` of an operator is an attribute, if it is one.
pub(super) fn parameter(node: &Node, idx: usize) -> Option<&'static str> {
    PARAMETERS
        .iter()
        .find(|(op, position, _)| *op == node.op && *position == idx)
        .map(|(_, _, name)| *name)
}

/// Returns all attributes of a node that matter: given ones, constant parameters and defaults.
///
/// Axes count from the front.
pub(super) fn resolved(graph: &Graph, node: &Node) -> BTreeMap<String, Attribute> {
    let mut attributes = defaults(graph, node);
    attributes.extend(node.attributes.clone());
    for (idx, id) in node.inputs.iter().enumerate() {
        let constant = id.and_then(|id| graph.constant(id));
        if let (Some(name), Some(constant)) = (parameter(node, idx), constant) {
            attributes.insert(name.to_owned(), as_attribute(constant));
        }
    }
    // Without indices, their order is nothing.
    if node.op == "MaxPool" && node.output(1).is_none() {
        attributes.remove("storage_order");
    }
    let rank = node.input(0).map_or(0, |id| graph.value(id).shape.rank()) as i64;
    // Its axis counts in the output, which has one more.
    let rank = rank + i64::from(node.op == "OneHot");
    let from_front = |axis: &mut i64| *axis += if *axis < 0 { rank } else { 0 };
    if let Some(Attribute::Int(axis)) = attributes.get_mut("axis") {
        from_front(axis);
    }
    if let Some(Attribute::Ints(axes)) = attributes.get_mut("axes") {
        axes.iter_mut().for_each(from_front);
    }
    attributes.retain(|name, _| !IRRELEVANT.contains(&(node.op.as_str(), name.as_str())));
    attributes
}

fn as_attribute(tensor: &Tensor) -> Attribute {
    match (tensor.to_i64(), tensor.as_f32()) {
        (Some(ints), _) => Attribute::Ints(ints),
        (None, Some([value])) => Attribute::Float(*value),
        (None, Some(values)) => Attribute::Floats(values.to_vec()),
        (None, None) => Attribute::Tensor(tensor.clone()),
    }
}

fn defaults(graph: &Graph, node: &Node) -> BTreeMap<String, Attribute> {
    use Attribute::{Float, Int, Ints, String as Text};
    let rank = node.input(0).map_or(0, |id| graph.value(id).shape.rank()) as i64;
    let text = |value: &str| Text(value.to_owned());
    let list: Vec<(&str, Attribute)> = match node.op.as_str() {
        "MaxPool" | "AveragePool" | "LpPool" => {
            let ones = Ints(vec![1; usize::try_from(rank - 2).unwrap_or(0)]);
            let own = match node.op.as_str() {
                "AveragePool" => ("count_include_pad", Int(0)),
                "LpPool" => ("p", Int(2)),
                _ => ("storage_order", Int(0)),
            };
            vec![("ceil_mode", Int(0)), ("dilations", ones), own]
        }
        "GlobalLpPool" => vec![("p", Int(2))],
        "ConvTranspose" => {
            let zeros = vec![0; usize::try_from(rank - 2).unwrap_or(0)];
            vec![("output_padding", Ints(zeros))]
        }
        "Elu" | "Celu" | "ThresholdedRelu" | "Swish" => vec![("alpha", Float(1.0))],
        "LeakyRelu" => vec![("alpha", Float(0.01))],
        "HardSigmoid" => vec![("alpha", Float(0.2)), ("beta", Float(0.5))],
        "Selu" => vec![("alpha", Float(1.673_263_2)), ("gamma", Float(1.050_701))],
        "Gelu" => vec![("approximate", text("none"))],
        "Clip" => vec![
            ("min", Float(f32::NEG_INFINITY)),
            ("max", Float(f32::INFINITY)),
        ],
        // Before operator set 13 all axes from `axis` on were normalised together.
        "Softmax" | "LogSoftmax" | "Hardmax" if graph.opset < 13 => {
            let is_joint = ![rank - 1, -1].contains(&node.int("axis", 1));
            vec![("axis", Int(1)), ("joint", Int(i64::from(is_joint)))]
        }
        "Softmax" | "LogSoftmax" | "Hardmax" => vec![("axis", Int(-1)), ("joint", Int(0))],
        "LayerNormalization" | "RMSNormalization" => {
            vec![("axis", Int(-1)), ("epsilon", Float(1e-5))]
        }
        "InstanceNormalization" | "GroupNormalization" | "BatchNormalization" => {
            vec![("epsilon", Float(1e-5))]
        }
        "LpNormalization" => vec![("axis", Int(-1)), ("p", Int(2))],
        "LRN" => vec![
            ("alpha", Float(1e-4)),
            ("beta", Float(0.75)),
            ("bias", Float(1.0)),
        ],
        "Gather" | "GatherElements" | "Concat" | "Split" => vec![("axis", Int(0))],
        "ArgMax" | "ArgMin" => vec![
            ("axis", Int(0)),
            ("keepdims", Int(1)),
            ("select_last_index", Int(0)),
        ],
        "TopK" => vec![("axis", Int(-1)), ("largest", Int(1)), ("sorted", Int(1))],
        "DepthToSpace" => vec![("mode", text("DCR"))],
        "Pad" => vec![("mode", text("constant")), ("value", Float(0.0))],
        "Transpose" => vec![("perm", Ints((0..rank).rev().collect()))],
        // Operator set 10 had one way only.
        "Resize" if graph.opset < 11 => vec![("mode", text("nearest"))],
        "Resize" => vec![
            ("antialias", Int(0)),
            ("coordinate_transformation_mode", text("half_pixel")),
            ("cubic_coeff_a", Float(-0.75)),
            ("exclude_outside", Int(0)),
            ("extrapolation_value", Float(0.0)),
            ("keep_aspect_ratio_policy", text("stretch")),
            ("mode", text("nearest")),
            ("nearest_mode", text("round_prefer_floor")),
        ],
        "Upsample" => vec![("mode", text("nearest"))],
        "Mod" => vec![("fmod", Int(0))],
        "IsInf" => vec![("detect_negative", Int(1)), ("detect_positive", Int(1))],
        "Shrink" => vec![("bias", Float(0.0)), ("lambd", Float(0.5))],
        "EyeLike" => vec![("k", Int(0))],
        "CumSum" | "CumProd" => vec![("exclusive", Int(0)), ("reverse", Int(0))],
        "GatherND" => vec![("batch_dims", Int(0))],
        "ScatterND" => vec![("reduction", text("none"))],
        "ScatterElements" => vec![("axis", Int(0)), ("reduction", text("none"))],
        "OneHot" => vec![("axis", Int(-1))],
        "ReverseSequence" => vec![("batch_axis", Int(1)), ("time_axis", Int(0))],
        "GridSample" => vec![("align_corners", Int(0)), ("padding_mode", text("zeros"))],
        "QuantizeLinear" | "DequantizeLinear" => vec![("axis", Int(1)), ("block_size", Int(0))],
        "MeanVarianceNormalization" => vec![("axes", Ints(vec![0, 2, 3]))],
        "Trilu" => vec![("upper", Int(1))],
        "LSTM" | "GRU" | "RNN" => vec![
            ("direction", text("forward")),
            ("layout", Int(0)),
            ("linear_before_reset", Int(0)),
            ("input_forget", Int(0)),
        ],
        op if op.starts_with("Reduce") => {
            vec![("keepdims", Int(1)), ("noop_with_empty_axes", Int(0))]
        }
        _ => Vec::new(),
    };
    list.into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
