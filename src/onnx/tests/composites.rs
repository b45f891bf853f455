//! Operators that exporters spell out.

use super::net::{Net, check};
use crate::graph::Attribute;

const IMAGE: &[usize] = &[1, 4, 6, 5];

#[test]
fn hard_swish_by_addition_clip_and_division() {
    let mut net = Net::new(11, IMAGE);
    net.scalar("three", 3.0)
        .scalar("zero", 0.0)
        .scalar("six", 6.0);
    net.node("a", "Add", "x three")
        .node("b", "Clip", "a zero six");
    net.node("c", "Mul", "x b").node("y", "Div", "c six");
    check(&mut net, &["HardSwish"]);
}

#[test]
fn hard_swish_by_relu6_and_a_reciprocal() {
    let mut net = Net::new(13, IMAGE);
    net.scalar("three", 3.0)
        .scalar("six", 6.0)
        .scalar("sixth", 1.0 / 6.0);
    net.node("a", "Add", "three x")
        .node("r", "Relu", "a")
        .node("b", "Min", "r six");
    net.node("c", "Mul", "b sixth").node("y", "Mul", "c x");
    check(&mut net, &["HardSwish"]);
}

#[test]
fn hard_swish_by_hard_sigmoid() {
    let mut net = Net::new(13, IMAGE);
    let alpha = [("alpha", Attribute::Float(1.0 / 6.0))];
    net.with("a", "HardSigmoid", "x", &alpha)
        .node("y", "Mul", "x a");
    check(&mut net, &["HardSwish"]);
}

#[test]
fn a_gate_with_another_slope_is_no_hard_swish() {
    let mut net = Net::new(13, IMAGE);
    net.with("a", "HardSigmoid", "x", &[])
        .node("y", "Mul", "x a");
    check(&mut net, &["HardSigmoid", "Mul"]);
}

#[test]
fn hard_sigmoid_by_clips() {
    let mut net = Net::new(10, IMAGE);
    let bounds = [
        ("min", Attribute::Float(0.0)),
        ("max", Attribute::Float(6.0)),
    ];
    net.scalar("three", 3.0).scalar("six", 6.0);
    net.node("a", "Add", "x three")
        .with("b", "Clip", "a", &bounds)
        .node("y", "Div", "b six");
    check(&mut net, &["HardSigmoid"]);

    let mut net = Net::new(13, IMAGE);
    net.scalar("slope", 0.2)
        .scalar("half", 0.5)
        .scalar("zero", 0.0)
        .scalar("one", 1.0);
    net.node("a", "Mul", "x slope")
        .node("b", "Add", "a half")
        .node("y", "Clip", "b zero one");
    check(&mut net, &["HardSigmoid"]);
}

#[test]
fn clips_from_zero_are_relus_and_relu6() {
    let mut net = Net::new(13, IMAGE);
    net.scalar("zero", 0.0).node("y", "Clip", "x zero");
    check(&mut net, &["Relu"]);

    let mut net = Net::new(9, IMAGE);
    net.scalar("six", 6.0).scalar("zero", 0.0);
    net.node("a", "Max", "x zero").node("y", "Min", "six a");
    let model = check(&mut net, &["Clip"]);
    let bounds = crate::graph::clip_bounds(&model.graph, &model.graph.nodes[0]);
    assert_eq!(bounds, Some((0.0, 6.0)));
}

#[test]
fn swish_by_sigmoid() {
    let mut net = Net::new(13, IMAGE);
    net.node("a", "Sigmoid", "x").node("y", "Mul", "a x");
    check(&mut net, &["Swish"]);
}

#[test]
fn a_sigmoid_of_something_else_is_no_swish() {
    let mut net = Net::new(13, IMAGE);
    net.node("r", "Relu", "x")
        .node("a", "Sigmoid", "r")
        .node("y", "Mul", "a x");
    check(&mut net, &["Relu", "Sigmoid", "Mul"]);
}

#[test]
fn gelu_by_erf_in_the_orders_exporters_use() {
    for order in 0..3 {
        let mut net = Net::new(13, &[2, 3, 8]);
        net.scalar("root", 2f32.sqrt())
            .scalar("one", 1.0)
            .scalar("half", 0.5);
        net.node("a", "Div", "x root")
            .node("b", "Erf", "a")
            .node("c", "Add", "b one");
        match order {
            0 => net.node("d", "Mul", "x c").node("y", "Mul", "d half"),
            1 => net.node("d", "Mul", "x half").node("y", "Mul", "d c"),
            _ => net.node("d", "Mul", "half c").node("y", "Mul", "d x"),
        };
        check(&mut net, &["Gelu"]);
    }
}

#[test]
fn gelu_by_its_tanh_approximation() {
    let mut net = Net::new(13, &[2, 3, 8]);
    net.scalar("three", 3.0)
        .scalar("k", 0.044_715)
        .scalar("s", 0.797_884_6);
    net.scalar("one", 1.0).scalar("half", 0.5);
    net.node("a", "Pow", "x three")
        .node("b", "Mul", "a k")
        .node("c", "Add", "x b");
    net.node("d", "Mul", "c s")
        .node("e", "Tanh", "d")
        .node("f", "Add", "e one");
    net.node("g", "Mul", "x half").node("y", "Mul", "g f");
    let model = check(&mut net, &["Gelu"]);
    assert_eq!(model.graph.nodes[0].string("approximate", "none"), "tanh");
}

#[test]
fn layer_normalization_with_scale_and_bias() {
    let mut net = Net::new(13, &[2, 5, 8]);
    let last = [("axes", Attribute::Ints(vec![-1]))];
    net.scalar("two", 2.0)
        .scalar("epsilon", 1e-5)
        .weights("scale", &[8])
        .weights("bias", &[8]);
    net.with("mean", "ReduceMean", "x", &last)
        .node("d", "Sub", "x mean");
    net.node("q", "Pow", "d two")
        .with("v", "ReduceMean", "q", &last);
    net.node("w", "Add", "v epsilon")
        .node("s", "Sqrt", "w")
        .node("n", "Div", "d s");
    net.node("m", "Mul", "n scale").node("y", "Add", "m bias");
    let model = check(&mut net, &["LayerNormalization"]);
    let node = &model.graph.nodes[0];
    assert!((node.float("epsilon", 0.0) - 1e-5).abs() < 1e-9);
    assert_eq!(node.inputs.len(), 3);
}

#[test]
fn a_mean_over_other_axes_is_no_layer_normalization() {
    let mut net = Net::new(13, &[2, 5, 8]);
    let first = [("axes", Attribute::Ints(vec![1]))];
    net.scalar("two", 2.0).scalar("epsilon", 1e-5);
    net.with("mean", "ReduceMean", "x", &first)
        .node("d", "Sub", "x mean");
    net.node("q", "Pow", "d two")
        .with("v", "ReduceMean", "q", &first);
    net.node("w", "Add", "v epsilon")
        .node("s", "Sqrt", "w")
        .node("y", "Div", "d s");
    check(
        &mut net,
        &[
            "ReduceMean",
            "Sub",
            "Pow",
            "ReduceMean",
            "Add",
            "Sqrt",
            "Div",
        ],
    );
}

#[test]
fn softmax_by_exponentials() {
    let mut net = Net::new(13, &[3, 7]);
    let last = [("axes", Attribute::Ints(vec![1]))];
    net.ints("axes", &[1]);
    net.with("max", "ReduceMax", "x", &last)
        .node("d", "Sub", "x max")
        .node("e", "Exp", "d");
    net.node("s", "ReduceSum", "e axes").node("y", "Div", "e s");
    check(&mut net, &["Softmax"]);
}

#[test]
fn means_over_the_image_are_global_pools() {
    let mut net = Net::new(13, IMAGE);
    net.with(
        "y",
        "ReduceMean",
        "x",
        &[("axes", Attribute::Ints(vec![2, 3]))],
    );
    check(&mut net, &["GlobalAveragePool"]);

    let mut net = Net::new(18, IMAGE);
    net.ints("axes", &[-1, -2]);
    net.with(
        "y",
        "ReduceMean",
        "x axes",
        &[("keepdims", Attribute::Int(0))],
    );
    check(&mut net, &["GlobalAveragePool", "Flatten"]);

    let mut net = Net::new(13, IMAGE);
    net.with(
        "y",
        "AveragePool",
        "x",
        &[("kernel_shape", Attribute::Ints(vec![6, 5]))],
    );
    check(&mut net, &["GlobalAveragePool"]);
}
