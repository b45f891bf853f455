//! What is fused with what.

use super::net::Net;
use crate::graph::{Attribute, Kind, partition};

const IMAGE: &[usize] = &[1, 4, 6, 5];

fn describe(net: &mut Net) -> Vec<String> {
    let graph = net.load().unwrap().graph;
    let subgraphs = partition(&graph).subgraphs;
    subgraphs
        .iter()
        .map(|subgraph| subgraph.describe(&graph))
        .collect()
}

fn weights(net: &mut Net) {
    net.weights("w", &[4, 4, 1, 1]).weights("v", &[4, 4, 3, 3]);
}

fn same() -> [(&'static str, Attribute); 1] {
    [("pads", Attribute::Ints(vec![1; 4]))]
}

#[test]
fn squeeze_and_excitation_is_a_pool_after_and_a_scale_before() {
    let mut net = Net::new(13, IMAGE);
    weights(&mut net);
    net.weights("d", &[4, 1, 3, 3]);
    let depthwise = [
        ("group", Attribute::Int(4)),
        ("pads", Attribute::Ints(vec![1; 4])),
    ];
    net.with("a", "Conv", "x d", &depthwise)
        .node("b", "Relu", "a");
    net.node("p", "GlobalAveragePool", "b")
        .node("f", "Conv", "p w")
        .node("s", "Sigmoid", "f");
    net.node("m", "Mul", "b s")
        .node("y", "Conv", "m w")
        .output("y");
    let model = net.load().unwrap();
    let subgraphs = partition(&model.graph).subgraphs;
    let text: Vec<String> = subgraphs.iter().map(|s| s.describe(&model.graph)).collect();
    assert_eq!(
        text,
        [
            "dwconv 3×3 4 +relu +gap",
            "conv 1×1 4→4 +sigmoid",
            "conv 1×1 4→4 ×scale"
        ]
    );
    let names = |ids: &[crate::graph::ValueId]| -> Vec<&str> {
        ids.iter()
            .map(|id| model.graph.value(*id).name.as_str())
            .collect()
    };
    assert_eq!(names(&subgraphs[0].outputs), ["b", "p"]);
    assert_eq!(names(&subgraphs[2].inputs), ["b", "s"]);
    assert_eq!(subgraphs[0].kind(&model.graph), Kind::DepthwiseConv);
}

#[test]
fn a_scale_that_others_read_too_stays_apart() {
    let mut net = Net::new(13, IMAGE);
    weights(&mut net);
    net.node("p", "GlobalAveragePool", "x")
        .node("s", "Sigmoid", "p")
        .node("m", "Mul", "x s");
    net.node("a", "Conv", "m w")
        .node("b", "Conv", "m w")
        .node("y", "Sub", "a b")
        .output("y");
    assert_eq!(
        describe(&mut net),
        [
            "global-average-pool 6×5 +sigmoid",
            "mul [1×4×6×5]",
            "conv 1×1 4→4",
            "conv 1×1 4→4",
            "sub [1×4×6×5]"
        ]
    );
}

#[test]
fn a_residual_is_added_by_the_longer_branch() {
    for operands in ["b c", "c b"] {
        let mut net = Net::new(13, IMAGE);
        weights(&mut net);
        net.with("a", "Conv", "x v", &same()).node("r", "Relu", "a");
        net.with("b", "Conv", "r v", &same())
            .node("c", "Conv", "x w");
        net.node("s", "Add", operands)
            .node("y", "Relu", "s")
            .output("y");
        assert_eq!(
            describe(&mut net),
            [
                "conv 1×1 4→4",
                "conv 3×3 4→4 +relu",
                "conv 3×3 4→4 +add +relu"
            ]
        );
    }
}

#[test]
fn two_residuals_are_added_one_by_one() {
    let mut net = Net::new(13, IMAGE);
    weights(&mut net);
    net.node("r", "Relu", "x")
        .node("a", "Conv", "r w")
        .node("b", "Add", "a x");
    net.node("c", "Add", "b r")
        .node("y", "Sigmoid", "c")
        .output("y");
    assert_eq!(
        describe(&mut net),
        [
            "relu [1×4×6×5]",
            "conv 1×1 4→4 +add",
            "add [1×4×6×5] +sigmoid"
        ]
    );
}

#[test]
fn an_output_of_the_model_ends_a_chain() {
    let mut net = Net::new(13, IMAGE);
    weights(&mut net);
    net.node("a", "Conv", "x w")
        .node("y", "Relu", "a")
        .output("a")
        .output("y");
    assert_eq!(describe(&mut net), ["conv 1×1 4→4", "relu [1×4×6×5]"]);
}

#[test]
fn an_activation_with_computed_bounds_is_not_fused() {
    let mut net = Net::new(13, IMAGE);
    weights(&mut net);
    net.input("high", crate::graph::DType::F32, &[]);
    net.node("a", "Conv", "x w")
        .node("y", "Clip", "a _ high")
        .output("y");
    assert_eq!(describe(&mut net), ["conv 1×1 4→4", "clip [1×4×6×5]"]);
}

#[test]
fn elementwise_operators_form_chains() {
    let mut net = Net::new(13, IMAGE);
    net.input("z", crate::graph::DType::F32, IMAGE);
    net.node("a", "Sub", "x z")
        .node("b", "Mul", "a z")
        .node("c", "Exp", "b");
    net.scalar("two", 2.0).node("y", "Div", "c two").output("y");
    assert_eq!(describe(&mut net), ["sub [1×4×6×5] +mul +exp +scale"]);
}

#[test]
fn a_flattening_of_more_than_single_pixels_is_a_view() {
    let mut net = Net::new(13, IMAGE);
    weights(&mut net);
    net.weights("k", &[120, 3]);
    net.node("a", "Conv", "x w")
        .node("b", "Flatten", "a")
        .node("y", "MatMul", "b k")
        .output("y");
    assert_eq!(
        describe(&mut net),
        ["conv 1×1 4→4", "flatten [1×120]", "gemm 120→3"]
    );
}

#[test]
fn a_batched_product_takes_bias_and_activation() {
    let mut net = Net::new(13, &[2, 3, 8]);
    net.weights("k", &[8, 5]).weights("b", &[5]);
    net.node("m", "MatMul", "x k")
        .node("a", "Add", "b m")
        .node("y", "Tanh", "a")
        .output("y");
    assert_eq!(describe(&mut net), ["matmul [2×3×8]·[8×5] +bias +tanh"]);
}
