//! Quantised graphs: what stays integers, what is dropped, and what is computed together.

use super::net::{Net, check};
use crate::graph::{Attribute, DType, Shape, Tensor, TensorData, partition};

const IMAGE: &[usize] = &[1, 4, 6, 5];

fn scalar(data: TensorData) -> Tensor {
    Tensor::new(Shape::default(), data).unwrap()
}

/// A model whose constants are a scale `s` and zero points of u8 and i8.
fn net() -> Net {
    let mut net = Net::new(13, IMAGE);
    net.scalar("s", 0.05)
        .scalar("t", 0.07)
        .constant("z", scalar(TensorData::U8(vec![100])))
        .constant("zero", scalar(TensorData::U8(vec![0])))
        .constant("signed", scalar(TensorData::I8(vec![-28])));
    net
}

/// Adds weights `w` of i8 around a zero point, one scale an output channel, as `real`.
fn weights(net: &mut Net, dims: &[usize], middle: i8) {
    let shape = Shape(dims.to_vec());
    let data = (0..shape.len()).map(|i| ((i * 37) % 255) as u8 as i8);
    let data = TensorData::I8(data.collect());
    let n = dims[0];
    let scales = (0..n).map(|i| 0.001 + i as f32 / 500.0).collect();
    net.constant("w", Tensor::new(shape, data).unwrap())
        .constant("ws", Tensor::from_f32(scales))
        .constant(
            "wz",
            Tensor::new(Shape(vec![n]), TensorData::I8(vec![middle; n])).unwrap(),
        );
    let axis = [("axis", Attribute::Int(0))];
    net.with("real", "DequantizeLinear", "w ws wz", &axis);
}

/// Rounds a value: `name` is the number again, `name.q` the u8.
fn rounded(net: &mut Net, name: &str, of: &str, how: &str) {
    let byte = format!("{name}.q");
    net.node(&byte, "QuantizeLinear", &format!("{of} {how}"))
        .node(name, "DequantizeLinear", &format!("{byte} {how}"));
}

/// Returns the operators of each subgraph, conversions as `Q` and `D`.
fn subgraphs(net: &mut Net) -> Vec<String> {
    let graph = net.output("y").load().unwrap().graph;
    let describe = |subgraph: &crate::graph::Subgraph| {
        let ops = subgraph.nodes();
        let ops = ops.iter().map(|&id| match graph.node(id).op.as_str() {
            "QuantizeLinear" => "Q",
            "DequantizeLinear" => "D",
            op => op,
        });
        ops.collect::<Vec<_>>().join(" ")
    };
    partition(&graph).subgraphs.iter().map(describe).collect()
}

#[test]
fn weights_of_a_quantised_layer_stay_integers() {
    let mut net = net();
    weights(&mut net, &[4, 4, 1, 1], 0);
    rounded(&mut net, "a", "x", "s z");
    net.node("b", "Conv", "a real");
    rounded(&mut net, "y", "b", "t z");
    let [q, d] = ["QuantizeLinear", "DequantizeLinear"];
    let model = check(&mut net, &[d, q, d, "Conv", q, d]);
    let is_i8 = |node: &crate::graph::Node| {
        node.input(0)
            .is_some_and(|id| model.graph.value(id).dtype == DType::I8)
    };
    assert_eq!(model.graph.nodes.iter().filter(|n| is_i8(n)).count(), 1);
}

#[test]
fn weights_of_other_layers_are_folded() {
    let mut float = net();
    weights(&mut float, &[4, 4, 1, 1], 0);
    float.node("y", "Conv", "x real");
    check(&mut float, &["Conv"]);

    let mut uneven = net();
    weights(&mut uneven, &[4, 4, 1, 1], 3);
    rounded(&mut uneven, "a", "x", "s z");
    uneven.node("y", "Conv", "a real");
    check(&mut uneven, &["QuantizeLinear", "DequantizeLinear", "Conv"]);
}

#[test]
fn a_conversion_there_and_back_is_dropped() {
    let mut net = net();
    rounded(&mut net, "a", "x", "s z");
    rounded(&mut net, "y", "a", "s z");
    check(&mut net, &["QuantizeLinear", "DequantizeLinear"]);
}

#[test]
fn moves_between_conversions_of_one_scale_move_integers() {
    let window = [
        ("kernel_shape", Attribute::Ints(vec![2, 2])),
        ("pads", Attribute::Ints(vec![1, 0, 0, 1])),
        ("strides", Attribute::Ints(vec![1, 1])),
    ];
    let axis = [("axis", Attribute::Int(1))];
    let perm = [("perm", Attribute::Ints(vec![0, 2, 3, 1]))];
    let cases: [(&str, &[(&str, Attribute)]); 4] = [
        ("MaxPool", &window),
        ("Transpose", &perm),
        ("Flatten", &axis),
        ("Concat", &axis),
    ];
    for (op, attributes) in cases {
        let mut net = net();
        rounded(&mut net, "a", "x", "s z");
        let inputs = if op == "Concat" { "a a" } else { "a" };
        net.with("b", op, inputs, attributes);
        rounded(&mut net, "y", "b", "s z");
        let expected = ["QuantizeLinear", op, "DequantizeLinear"];
        if matches!(op, "MaxPool" | "Concat") {
            // The reference executor has none of u8; kernels are compared elsewhere.
            let graph = net.output("y").load().unwrap().graph;
            let ops = graph.nodes.iter().map(|node| node.op.as_str());
            assert_eq!(ops.collect::<Vec<_>>(), expected);
        } else {
            check(&mut net, &expected);
        }

        let mut other = self::net();
        rounded(&mut other, "a", "x", "s z");
        other.with("b", op, inputs, attributes);
        rounded(&mut other, "y", "b", "t z");
        let graph = other.output("y").load().unwrap().graph;
        assert!(graph.nodes.len() > 4, "{op} keeps the conversions");
    }
}

#[test]
fn clamps_that_rounding_repeats_are_dropped() {
    let [q, d] = ["QuantizeLinear", "DequantizeLinear"];
    let mut relu = net();
    relu.node("a", "Relu", "x");
    rounded(&mut relu, "y", "a", "s zero");
    check(&mut relu, &[q, d]);

    let mut shifted = net();
    shifted.node("a", "Relu", "x");
    rounded(&mut shifted, "y", "a", "s z");
    check(&mut shifted, &["Relu", q, d]);

    // 255 steps of 0.05 are 12.75.
    for (high, expected) in [(12.75, vec![q, d]), (12.0, vec!["Clip", q, d])] {
        let mut clip = net();
        clip.scalar("low", 0.0).scalar("high", high);
        clip.node("a", "Clip", "x low high");
        rounded(&mut clip, "y", "a", "s zero");
        check(&mut clip, &expected);
    }
}

#[test]
fn signed_activations_become_unsigned() {
    let mut net = net();
    net.node("a", "QuantizeLinear", "x s signed")
        .node("b", "DequantizeLinear", "a s signed")
        .node("y", "Sigmoid", "b");
    let model = check(&mut net, &["QuantizeLinear", "DequantizeLinear", "Sigmoid"]);
    let a = model.graph.values.iter().find(|value| value.name == "a");
    assert_eq!(a.unwrap().dtype, DType::U8);
    let (_, zero) = crate::graph::affine(&model.graph, &model.graph.nodes[1]).unwrap();
    assert_eq!(zero, 100);
}

#[test]
fn signed_outputs_are_converted_at_the_border() {
    let mut net = net();
    rounded(&mut net, "a", "x", "s z");
    net.node("b", "Sigmoid", "a")
        .node("y", "QuantizeLinear", "b s signed");
    let model = net.output("y").load().unwrap();
    let output = model.graph.value(model.graph.outputs[0]);
    assert_eq!((output.name.as_str(), output.dtype), ("y", DType::I8));
    super::net::check_values(&model);
}

#[test]
fn quantised_layers_are_written_out() {
    let mut net = net();
    weights(&mut net, &[4, 4, 1, 1], 0);
    let bias = Tensor::new(Shape(vec![4]), TensorData::I32(vec![10, -20, 30, -40])).unwrap();
    net.constant("bias", bias);
    net.node("a", "QuantizeLinear", "x s z")
        .node("b", "QLinearConv", "a s z w ws wz t z bias")
        .node("y", "DequantizeLinear", "b t z");
    let [q, d] = ["QuantizeLinear", "DequantizeLinear"];
    check(&mut net, &[d, q, d, "Conv", q, d]);
}

#[test]
fn a_layer_takes_in_conversions_and_a_residual() {
    let mut net = net();
    weights(&mut net, &[4, 4, 1, 1], 0);
    rounded(&mut net, "a", "x", "s z");
    net.node("b", "Conv", "a real");
    rounded(&mut net, "c", "b", "t z");
    net.node("d", "Add", "a c");
    rounded(&mut net, "y", "d", "s z");
    let expected = ["Q", "D D Conv Q D D Add Q", "D"];
    assert_eq!(subgraphs(&mut net), expected);
}

#[test]
fn a_layer_takes_in_a_function_of_its_result() {
    let mut net = net();
    weights(&mut net, &[4, 4, 1, 1], 0);
    rounded(&mut net, "a", "x", "s z");
    net.node("b", "Conv", "a real");
    rounded(&mut net, "c", "b", "t z");
    net.node("d", "HardSigmoid", "c");
    rounded(&mut net, "e", "d", "s zero");
    net.node("f", "Mul", "c e");
    rounded(&mut net, "y", "f", "s z");
    let expected = ["Q", "D D Conv Q D D HardSigmoid Q D Mul Q", "D"];
    assert_eq!(subgraphs(&mut net), expected);
}

#[test]
fn what_is_read_twice_is_no_function_alone() {
    let mut net = net();
    rounded(&mut net, "a", "x", "s z");
    net.node("b", "Sigmoid", "a");
    rounded(&mut net, "c", "b", "t zero");
    net.node("p", "GlobalAveragePool", "c");
    rounded(&mut net, "q", "p", "t zero");
    net.node("m", "Mul", "c q");
    rounded(&mut net, "y", "m", "t z");
    let expected = [
        "Q",
        "D Sigmoid Q",
        "D GlobalAveragePool Q",
        "D D Mul Q",
        "D",
    ];
    assert_eq!(subgraphs(&mut net), expected);
}

#[test]
fn conversions_to_16_bits_of_onnxruntimes_domain_are_the_standards() {
    let mut net = net();
    net.constant("wide", scalar(TensorData::U16(vec![30_000])));
    net.node("q", "QuantizeLinear", "x s wide")
        .node("y", "DequantizeLinear", "q s wide");
    for node in &mut net.graph.nodes {
        node.domain = "com.microsoft".to_owned();
    }
    net.output("y").output("q");
    let model = net.load().unwrap();
    let nodes = model.graph.nodes.iter();
    let nodes: Vec<(&str, &str)> = nodes.map(|node| (&*node.domain, &*node.op)).collect();
    assert_eq!(nodes, [("", "QuantizeLinear"), ("", "DequantizeLinear")]);
    let is_wide = |value: &crate::graph::Value| value.name == "q" && value.dtype == DType::U16;
    assert!(model.graph.values.iter().any(is_wide));
    net.graph.nodes[0].op = "Gelu".to_owned();
    let refusal = net.load().unwrap_err().to_string();
    assert!(refusal.contains("com.microsoft.Gelu"), "{refusal}");
}
