//! `If`.

use super::net::{Net, check_values};
use crate::graph::{Attribute, DType, Graph, Shape, Tensor, TensorData};
use crate::onnx::LoadedModel;
use crate::onnx::error::Problem;

/// A branch that applies one operator to `x` of the graph around it.
fn body(op: &str, output: &str) -> Attribute {
    let mut net = Net::new(13, &[1, 4]);
    // `x` is captured: it is no input of the body.
    net.graph.inputs.clear();
    net.weights("inner", &[4, 3]);
    let inputs = if op == "MatMul" { "x inner" } else { "x" };
    net.node(output, op, inputs).output(output);
    Attribute::Graph(Box::new(net.graph))
}

fn conditional(
    condition: Option<bool>,
    on_true: &str,
    on_false: &str,
) -> Result<LoadedModel, Problem> {
    let mut net = Net::new(13, &[1, 4]);
    match condition {
        Some(value) => {
            let data = TensorData::Bool(vec![value]);
            net.constant("condition", Tensor::new(Shape::default(), data).unwrap());
        }
        None => net.input("condition", DType::Bool, &[]),
    }
    let branches = [
        ("then_branch", body(on_true, "then_result")),
        ("else_branch", body(on_false, "else_result")),
    ];
    net.with("z", "If", "condition", &branches)
        .node("y", "Neg", "z")
        .output("y");
    net.load()
}

fn ops(graph: &Graph) -> Vec<&str> {
    graph.nodes.iter().map(|node| node.op.as_str()).collect()
}

#[test]
fn a_constant_condition_takes_its_branch() {
    let model = conditional(Some(true), "Relu", "Exp").unwrap();
    assert_eq!(ops(&model.graph), ["Relu", "Neg"]);
    check_values(&model);
    let model = conditional(Some(false), "Relu", "Exp").unwrap();
    assert_eq!(ops(&model.graph), ["Exp", "Neg"]);
}

#[test]
fn an_open_condition_takes_the_only_branch_that_fits() {
    // `Tile` lacks its repeats.
    let model = conditional(None, "Relu", "Tile").unwrap();
    assert_eq!(ops(&model.graph), ["Relu", "Neg"]);
}

#[test]
fn an_open_condition_selects_between_branches_of_one_shape() {
    let model = conditional(None, "Relu", "Exp").unwrap();
    assert_eq!(ops(&model.graph), ["Relu", "Exp", "Where", "Neg"]);
    check_values(&model);
}

#[test]
fn an_open_condition_between_shapes_is_refused() {
    let problem = conditional(None, "Relu", "MatMul").unwrap_err();
    assert_eq!(
        problem.to_string(),
        "operator `If` of node `z` is not supported: its condition `condition` is not a constant \
         and its branches give different shapes"
    );
}

#[test]
fn both_branches_may_use_one_name() {
    let mut net = Net::new(13, &[1, 4]);
    net.input("condition", DType::Bool, &[]);
    let branches = [
        ("then_branch", body("Relu", "result")),
        ("else_branch", body("Exp", "result")),
    ];
    net.with("y", "If", "condition", &branches).output("y");
    let model = net.load().unwrap();
    let mut names: Vec<&str> = model.graph.values.iter().map(|v| v.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), model.graph.values.len());
    check_values(&model);
}
