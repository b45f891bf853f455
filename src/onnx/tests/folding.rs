//! What is folded into weights, and what is dropped.

use super::net::{Net, check};
use crate::graph::{Attribute, DType};

const IMAGE: &[usize] = &[1, 4, 6, 5];

fn same_3x3() -> [(&'static str, Attribute); 1] {
    [("pads", Attribute::Ints(vec![1; 4]))]
}

fn batch_norm(net: &mut Net, channels: usize) {
    let c = &[channels];
    net.weights("gamma", c)
        .weights("beta", c)
        .weights("mean", c)
        .positive("variance", c);
}

#[test]
fn batch_normalization_goes_into_the_convolution() {
    let mut net = Net::new(13, IMAGE);
    batch_norm(&mut net, 6);
    net.weights("w", &[6, 4, 3, 3])
        .with("c", "Conv", "x w", &same_3x3());
    net.node("y", "BatchNormalization", "c gamma beta mean variance");
    check(&mut net, &["Conv"]);
}

#[test]
fn batch_normalization_goes_into_grouped_and_transposed_convolutions() {
    let group = [("group", Attribute::Int(2))];
    let mut net = Net::new(13, IMAGE);
    batch_norm(&mut net, 6);
    net.weights("w", &[6, 2, 3, 3])
        .weights("b", &[6])
        .with("c", "Conv", "x w b", &group);
    net.node("y", "BatchNormalization", "c gamma beta mean variance");
    check(&mut net, &["Conv"]);

    let mut net = Net::new(13, IMAGE);
    batch_norm(&mut net, 6);
    net.weights("w", &[4, 3, 3, 3])
        .with("c", "ConvTranspose", "x w", &group);
    net.node("y", "BatchNormalization", "c gamma beta mean variance");
    check(&mut net, &["ConvTranspose"]);
}

#[test]
fn batch_normalization_of_a_value_with_other_readers_is_spelled_out() {
    let mut net = Net::new(13, IMAGE);
    batch_norm(&mut net, 6);
    net.weights("w", &[6, 4, 3, 3])
        .with("c", "Conv", "x w", &same_3x3());
    net.node("n", "BatchNormalization", "c gamma beta mean variance");
    net.node("y", "Add", "n c");
    check(&mut net, &["Conv", "Mul", "Add", "Add"]);
}

#[test]
fn factors_and_terms_by_channel_go_into_the_convolution() {
    let mut net = Net::new(13, IMAGE);
    net.weights("w", &[6, 4, 3, 3])
        .weights("f", &[6, 1, 1])
        .weights("t", &[1, 6, 1, 1]);
    net.scalar("two", 2.0).with("c", "Conv", "x w", &same_3x3());
    net.node("a", "Mul", "f c")
        .node("b", "Add", "a t")
        .node("d", "Div", "b two");
    net.node("y", "Sub", "d two");
    check(&mut net, &["Conv"]);
}

#[test]
fn factors_along_another_axis_stay() {
    let mut net = Net::new(13, IMAGE);
    net.weights("w", &[6, 4, 3, 3]).weights("f", &[5]);
    net.with("c", "Conv", "x w", &same_3x3())
        .node("y", "Mul", "c f");
    check(&mut net, &["Conv", "Mul"]);
}

#[test]
fn matrix_products_with_constant_weights_have_one_form() {
    let mut net = Net::new(13, &[3, 8]);
    net.weights("w", &[8, 5]).weights("b", &[5]);
    net.node("m", "MatMul", "x w").node("y", "Add", "b m");
    let by_matmul = check(&mut net, &["Gemm"]);

    let mut net = Net::new(13, &[3, 8]);
    let attributes = [
        ("transB", Attribute::Int(1)),
        ("alpha", Attribute::Float(0.5)),
        ("beta", Attribute::Float(2.0)),
    ];
    net.weights("w", &[5, 8]).weights("b", &[1, 5]);
    net.with("y", "Gemm", "x w b", &attributes);
    let by_gemm = check(&mut net, &["Gemm"]);
    assert_eq!(
        by_matmul.graph.digests().structure,
        by_gemm.graph.digests().structure
    );
}

#[test]
fn batched_products_keep_their_bias_apart() {
    let mut net = Net::new(13, &[2, 3, 8]);
    net.weights("w", &[8, 5])
        .weights("b", &[5])
        .weights("f", &[5]);
    net.node("m", "MatMul", "x w")
        .node("s", "Mul", "m f")
        .node("y", "Add", "s b");
    check(&mut net, &["MatMul", "Add"]);
}

#[test]
fn zero_padding_goes_into_the_convolution() {
    let mut net = Net::new(13, IMAGE);
    net.weights("w", &[6, 4, 3, 3])
        .ints("pads", &[0, 0, 1, 2, 0, 0, 1, 0]);
    net.node("p", "Pad", "x pads")
        .with("y", "Conv", "p w", &same_3x3());
    let model = check(&mut net, &["Conv"]);
    assert_eq!(model.graph.nodes[0].ints("pads").unwrap(), [2, 3, 2, 1]);
}

#[test]
fn other_padding_stays() {
    let mut net = Net::new(13, IMAGE);
    net.weights("w", &[6, 4, 3, 3])
        .ints("pads", &[0, 0, 1, 1, 0, 0, 1, 1])
        .scalar("one", 1.0);
    net.node("p", "Pad", "x pads one").node("y", "Conv", "p w");
    check(&mut net, &["Pad", "Conv"]);
}

#[test]
fn automatic_padding_is_written_out() {
    for (mode, pads) in [("SAME_UPPER", [0, 0, 1, 1]), ("SAME_LOWER", [1, 1, 0, 0])] {
        let mut net = Net::new(13, &[1, 4, 6, 8]);
        let attributes = [
            ("auto_pad", Attribute::String(mode.to_owned())),
            ("strides", Attribute::Ints(vec![2, 2])),
        ];
        net.weights("w", &[6, 4, 3, 3])
            .with("y", "Conv", "x w", &attributes);
        let model = check(&mut net, &["Conv"]);
        assert_eq!(model.graph.nodes[0].ints("pads").unwrap(), pads);
    }
}

#[test]
fn operators_that_change_nothing_are_dropped() {
    let mut net = Net::new(13, IMAGE);
    net.ints("shape", &[1, 4, -1, 5])
        .ints("pads", &[0; 8])
        .scalar("one", 1.0)
        .scalar("zero", 0.0);
    net.node("a", "Identity", "x")
        .node("b", "Reshape", "a shape")
        .node("c", "Pad", "b pads");
    net.with("d", "Cast", "c", &[("to", Attribute::Int(1))])
        .node("e", "Mul", "d one");
    net.node("f", "Add", "zero e").with(
        "g",
        "Transpose",
        "f",
        &[("perm", Attribute::Ints(vec![0, 1, 2, 3]))],
    );
    net.with("h", "Concat", "g", &[("axis", Attribute::Int(1))])
        .node("y", "Relu", "h");
    check(&mut net, &["Relu"]);
}

#[test]
fn an_output_keeps_its_name_when_its_producer_is_dropped() {
    let mut net = Net::new(13, IMAGE);
    net.node("r", "Relu", "x").node("y", "Identity", "r");
    let model = check(&mut net, &["Relu"]);
    let output = model.graph.value(model.graph.outputs[0]);
    assert_eq!(output.name, "y");
}

#[test]
fn an_input_that_is_an_output_keeps_its_identity_node() {
    let mut net = Net::new(13, IMAGE);
    net.node("y", "Identity", "x");
    check(&mut net, &["Identity"]);
}

#[test]
fn chains_of_reshapes_are_one() {
    let mut net = Net::new(13, IMAGE);
    net.ints("axes", &[0]).ints("shape", &[2, 60]);
    net.node("a", "Squeeze", "x axes")
        .with("b", "Flatten", "a", &[])
        .node("y", "Reshape", "b shape");
    check(&mut net, &["Reshape"]);
}

#[test]
fn shape_arithmetic_is_folded() {
    let mut net = Net::new(13, IMAGE);
    net.ints("zero", &[0]).ints("one", &[1]).ints("rest", &[-1]);
    net.node("s", "Shape", "x").node("n", "Slice", "s zero one");
    net.with("t", "Concat", "n rest", &[("axis", Attribute::Int(0))])
        .node("y", "Reshape", "x t");
    let model = check(&mut net, &["Reshape"]);
    assert_eq!(
        model.graph.value(model.graph.outputs[0]).shape.dims(),
        [1, 120]
    );
    assert_eq!(model.graph.value(model.graph.outputs[0]).dtype, DType::F32);
}

#[test]
fn what_no_output_depends_on_is_dropped() {
    let mut net = Net::new(13, IMAGE);
    net.weights("w", &[6, 4, 3, 3])
        .node("dead", "Conv", "x w")
        .node("y", "Relu", "x");
    let model = check(&mut net, &["Relu"]);
    assert_eq!(model.graph.values.len(), 2);
}

#[test]
fn linear_operators_in_a_row_are_one_where_that_saves_work() {
    let mut net = Net::new(13, IMAGE);
    net.weights("w", &[12, 4, 3, 3])
        .weights("b", &[12])
        .weights("v", &[5, 12, 1, 1]);
    net.weights("c", &[5])
        .with("a", "Conv", "x w b", &same_3x3());
    net.node("y", "Conv", "a v c");
    let model = check(&mut net, &["Conv"]);
    assert_eq!(model.graph.nodes[0].ints("kernel_shape").unwrap(), [3, 3]);

    let mut net = Net::new(13, &[3, 8]);
    net.weights("w", &[8, 20])
        .weights("v", &[20, 5])
        .weights("b", &[20]);
    net.node("a", "Gemm", "x w b").node("y", "MatMul", "a v");
    check(&mut net, &["Gemm"]);
}

#[test]
fn bottlenecks_and_depthwise_pairs_stay_two() {
    let mut net = Net::new(13, IMAGE);
    net.weights("w", &[1, 4, 1, 1]).weights("v", &[8, 1, 1, 1]);
    net.node("a", "Conv", "x w").node("y", "Conv", "a v");
    check(&mut net, &["Conv", "Conv"]);

    let mut net = Net::new(13, IMAGE);
    let depthwise = [
        ("group", Attribute::Int(4)),
        ("pads", Attribute::Ints(vec![1; 4])),
    ];
    net.weights("w", &[4, 1, 3, 3]).weights("v", &[2, 4, 1, 1]);
    net.with("a", "Conv", "x w", &depthwise)
        .node("y", "Conv", "a v");
    check(&mut net, &["Conv", "Conv"]);
}

#[test]
fn a_gate_with_a_shortcut_adds_to_the_gate() {
    for operands in ["m x", "x m"] {
        let mut net = Net::new(13, IMAGE);
        net.node("p", "GlobalAveragePool", "x")
            .node("s", "Sigmoid", "p");
        net.node("m", "Mul", "s x").node("y", "Add", operands);
        check(&mut net, &["GlobalAveragePool", "Sigmoid", "Add", "Mul"]);
    }
}

#[test]
fn values_without_elements_are_constants() {
    let mut net = Net::new(13, IMAGE);
    net.ints("starts", &[3])
        .ints("ends", &[3])
        .ints("axes", &[1]);
    net.node("nothing", "Slice", "x starts ends axes");
    net.with("y", "Concat", "nothing x", &[("axis", Attribute::Int(1))]);
    check(&mut net, &["Identity"]);

    // A cache of keys that is empty at the first step.
    let mut net = Net::new(13, IMAGE);
    net.input("past", DType::F32, &[1, 4, 0, 5]);
    net.with("c", "Concat", "past x", &[("axis", Attribute::Int(2))])
        .node("y", "Exp", "c");
    let bytes = crate::onnx::encode(&net.output("y").graph).unwrap();
    let options = super::options(&[("past", &[1, 4, 0, 5])]);
    let path = std::path::Path::new("net.onnx");
    let model = crate::onnx::load::decode(&bytes, path, &options).unwrap();
    assert_eq!(model.graph.inputs.len(), 1);
    assert_eq!(model.graph.nodes.len(), 1);
}

#[test]
fn a_mask_that_drops_nothing_is_true() {
    let mut net = Net::new(13, IMAGE);
    net.with("y mask", "Dropout", "x", &[]).output("mask");
    let model = check(&mut net, &["Identity"]);
    let mask = model.graph.constant(model.graph.outputs[0]).unwrap();
    assert_eq!(mask.to_i64().unwrap(), vec![1; 120]);
}
