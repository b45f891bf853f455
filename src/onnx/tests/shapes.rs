//! Inferred shapes and types, compared with those of a run.

use super::net::Net;
use crate::graph::Attribute::{self, Float, Int, Ints};
use crate::graph::{DType, Shape, Tensor, TensorData};
use crate::onnx::{LoadedModel, Reference, random_inputs};

const IMAGE: &[usize] = &[2, 4, 9, 7];

fn text(value: &str) -> Attribute {
    Attribute::String(value.to_owned())
}

/// Runs a model before any rewrite and compares every value with what was inferred.
#[track_caller]
fn check(net: &mut Net) {
    for node in net.graph.nodes.clone() {
        net.graph.outputs.extend(node.outputs.iter().flatten());
    }
    let model = net.load().unwrap();
    let plain = LoadedModel {
        graph: model.source.clone(),
        ..model
    };
    let inputs = random_inputs(&plain.graph, 5);
    let graph = plain.graph.clone();
    let trace = Reference::new(plain).unwrap().trace(&inputs).unwrap();
    let mut n_compared = 0;
    for node in &graph.nodes {
        for id in node.outputs.iter().flatten() {
            let value = graph.value(*id);
            assert_eq!(*trace[&value.name].shape(), value.shape, "{}", node.op);
            assert_eq!(trace[&value.name].dtype(), value.dtype, "{}", node.op);
            n_compared += 1;
        }
    }
    assert!(n_compared > 0);
}

#[test]
fn convolutions() {
    for (kernel, stride, dilation, pad, group) in [
        (3, 1, 1, 1, 1),
        (3, 2, 1, 0, 2),
        (2, 3, 2, 2, 4),
        (5, 2, 1, 2, 1),
        (1, 1, 1, 0, 1),
    ] {
        let mut net = Net::new(13, IMAGE);
        net.weights("w", &[8, 4 / group, kernel, kernel]);
        let attributes = [
            ("strides", Ints(vec![stride, 1])),
            ("dilations", Ints(vec![dilation, 1])),
            ("pads", Ints(vec![pad, 0, 1, 2])),
            ("group", Int(group as i64)),
        ];
        net.with("y", "Conv", "x w", &attributes);
        check(&mut net);
    }
    let mut net = Net::new(13, &[2, 4, 9]);
    net.weights("w", &[8, 4, 3])
        .with("y", "Conv", "x w", &[("strides", Ints(vec![2]))]);
    check(&mut net);
}

#[test]
fn transposed_convolutions() {
    for (stride, pad, extra) in [(1, 0, 0), (2, 1, 1), (3, 0, 2)] {
        let mut net = Net::new(13, IMAGE);
        net.weights("w", &[4, 3, 3, 3]);
        let attributes = [
            ("strides", Ints(vec![stride, stride])),
            ("pads", Ints(vec![pad, pad, pad, 0])),
            ("output_padding", Ints(vec![extra, 0])),
        ];
        net.with("y", "ConvTranspose", "x w", &attributes);
        check(&mut net);
    }
}

#[test]
fn pools() {
    for op in ["MaxPool", "AveragePool"] {
        for (kernel, stride, ceil, pad) in [(2, 2, 0, 0), (3, 2, 1, 1), (2, 2, 1, 0), (3, 3, 1, 0)]
        {
            let mut net = Net::new(13, IMAGE);
            let attributes = [
                ("kernel_shape", Ints(vec![kernel, kernel])),
                ("strides", Ints(vec![stride, stride])),
                ("pads", Ints(vec![pad; 4])),
                ("ceil_mode", Int(ceil)),
            ];
            net.with("y", op, "x", &attributes);
            check(&mut net);
        }
    }
    for mode in ["SAME_UPPER", "SAME_LOWER", "VALID"] {
        let mut net = Net::new(13, IMAGE);
        let attributes = [
            ("kernel_shape", Ints(vec![3, 2])),
            ("strides", Ints(vec![2, 3])),
            ("auto_pad", text(mode)),
        ];
        net.with("y", "MaxPool", "x", &attributes);
        check(&mut net);
    }
    let mut net = Net::new(13, IMAGE);
    net.node("a", "GlobalAveragePool", "x")
        .node("b", "GlobalMaxPool", "x");
    check(&mut net);
}

#[test]
fn products() {
    let mut net = Net::new(13, &[5, 3]);
    net.weights("w", &[4, 5])
        .weights("c", &[4])
        .weights("v", &[3])
        .weights("b", &[2, 3, 6]);
    let transposed = [("transA", Int(1)), ("transB", Int(1))];
    net.with("a", "Gemm", "x w c", &transposed)
        .node("d", "MatMul", "x v")
        .node("e", "MatMul", "x b");
    check(&mut net);
    let mut net = Net::new(13, &[2, 1, 5, 3]);
    net.weights("b", &[7, 3, 6]).node("e", "MatMul", "x b");
    check(&mut net);
}

#[test]
fn recurrent_cells() {
    for (op, gates, outputs) in [("LSTM", 4, "a b c"), ("GRU", 3, "a b")] {
        let mut net = Net::new(14, &[6, 2, 3]);
        net.weights("w", &[2, gates * 5, 3])
            .weights("r", &[2, gates * 5, 5]);
        let mut attributes = vec![
            ("hidden_size", Int(5)),
            ("direction", text("bidirectional")),
        ];
        if op == "GRU" {
            // The executor has no other.
            attributes.push(("linear_before_reset", Int(1)));
        }
        net.with(outputs, op, "x w r", &attributes);
        check(&mut net);
    }
}

#[test]
fn moves() {
    let mut net = Net::new(13, IMAGE);
    net.ints("shape", &[0, -1, 7])
        .ints("axes", &[1, -1])
        .ints("first", &[-4]);
    net.ints("repeats", &[1, 2, 1, 3])
        .ints("wide", &[3, 2, 4, 9, 7])
        .ints("parts", &[1, 3]);
    net.node("a", "Reshape", "x shape")
        .with("b", "Flatten", "x", &[("axis", Int(-2))]);
    net.with("c", "Transpose", "x", &[("perm", Ints(vec![2, 0, 3, 1]))])
        .node("d", "Transpose", "x");
    net.node("e", "Unsqueeze", "x axes")
        .node("f", "Squeeze", "e axes")
        .node("g", "Tile", "x repeats");
    net.node("h", "Expand", "x wide")
        .with("i", "Concat", "x x", &[("axis", Int(-2))]);
    net.with("j k", "Split", "x parts", &[("axis", Int(1))])
        .node("l m", "Split", "x");
    net.with("p", "DepthToSpace", "x", &[("blocksize", Int(2))]);
    check(&mut net);
}

#[test]
fn slices_and_gathers() {
    let mut net = Net::new(13, IMAGE);
    net.ints("s", &[-1, 1])
        .ints("e", &[i64::MIN + 1, 100])
        .ints("a", &[2, -1])
        .ints("t", &[-2, 3]);
    net.node("b", "Slice", "x s e a t");
    net.constant(
        "i",
        Tensor::new(Shape(vec![2, 1]), TensorData::I64(vec![0, 1])).unwrap(),
    );
    net.with("c", "Gather", "x i", &[("axis", Int(2))]);
    net.constant(
        "n",
        Tensor::new(Shape(vec![3, 2]), TensorData::I64(vec![0; 6])).unwrap(),
    );
    net.node("d", "GatherND", "x n");
    net.constant(
        "k",
        Tensor::new(Shape(vec![2, 4, 1, 7]), TensorData::I64(vec![0; 56])).unwrap(),
    );
    net.with("f", "GatherElements", "x k", &[("axis", Int(2))]);
    net.ints("three", &[3])
        .with("g h", "TopK", "x three", &[("axis", Int(1))]);
    check(&mut net);
    let mut net = Net::new(9, IMAGE);
    let attributes = [
        ("starts", Ints(vec![1])),
        ("ends", Ints(vec![3])),
        ("axes", Ints(vec![2])),
    ];
    net.with("b", "Slice", "x", &attributes);
    check(&mut net);
}

#[test]
fn reductions() {
    let mut net = Net::new(13, IMAGE);
    net.ints("axes", &[1, -1])
        .node("a", "ReduceSum", "x axes")
        .node("b", "ReduceMax", "x");
    net.with(
        "c",
        "ReduceMean",
        "x",
        &[("axes", Ints(vec![3])), ("keepdims", Int(0))],
    );
    net.with(
        "d",
        "ArgMax",
        "x",
        &[("axis", Int(-1)), ("keepdims", Int(0))],
    );
    net.with("e", "ReduceSum", "x", &[("noop_with_empty_axes", Int(1))]);
    net.with("f", "Softmax", "x", &[])
        .with("g", "LogSoftmax", "x", &[("axis", Int(1))]);
    check(&mut net);
}

#[test]
fn normalizations() {
    let mut net = Net::new(17, IMAGE);
    net.weights("s", &[7])
        .weights("c", &[4])
        .positive("v", &[4]);
    net.node("a", "LayerNormalization", "x s")
        .node("b", "InstanceNormalization", "x c c");
    net.node("d", "BatchNormalization", "x c c c v");
    check(&mut net);
}

#[test]
fn sizes_that_grow_and_shrink() {
    let mut net = Net::new(13, IMAGE);
    net.ints("pads", &[0, 1, 0, 2, 0, 0, -1, 0])
        .node("a", "Pad", "x pads");
    net.constant("scales", Tensor::from_f32(vec![1.0, 1.0, 2.0, 1.7]));
    net.ints("sizes", &[2, 4, 5, 20]);
    let nearest = [
        ("mode", text("nearest")),
        ("coordinate_transformation_mode", text("asymmetric")),
        ("nearest_mode", text("floor")),
    ];
    net.with("b", "Resize", "x _ scales", &nearest)
        .with("c", "Resize", "x _ _ sizes", &nearest);
    check(&mut net);
    let mut net = Net::new(9, IMAGE);
    net.constant("scales", Tensor::from_f32(vec![1.0, 1.0, 2.0, 3.0]));
    net.node("b", "Upsample", "x scales");
    check(&mut net);
}

#[test]
fn element_by_element() {
    let mut net = Net::new(14, IMAGE);
    net.weights("v", &[4, 1, 7])
        .scalar("s", 0.3)
        .input("n", DType::I64, &[7]);
    for (idx, op) in ["Relu", "Sigmoid", "Erf", "HardSwish", "Abs", "Exp"]
        .iter()
        .enumerate()
    {
        net.node(&format!("u{idx}"), op, "x");
    }
    for (idx, op) in ["Add", "Mul", "Max", "Pow"].iter().enumerate() {
        net.node(&format!("b{idx}"), op, "v x");
    }
    net.with("l", "LeakyRelu", "x", &[("alpha", Float(0.2))])
        .node("m", "Clip", "x _ s");
    net.node("g", "Greater", "x s")
        .node("w", "Where", "g x s")
        .node("o", "Not", "g");
    net.with("c", "Cast", "n", &[("to", Int(1))])
        .with("d", "Cast", "g", &[("to", Int(7))]);
    net.node("e", "Add", "n n")
        .node("q", "Equal", "n n")
        .node("p", "PRelu", "x v");
    check(&mut net);
}

#[test]
fn sums_over_named_axes() {
    let equation = |text_: &str| [("equation", text(text_))];
    let mut net = Net::new(13, &[2, 3, 4]);
    net.weights("w", &[4, 5]).weights("v", &[2, 4]);
    net.with("a", "Einsum", "x w", &equation("bik, kj -> bij"));
    net.with("b", "Einsum", "x v", &equation("bik,bk->i"));
    net.with("c", "Einsum", "x w", &equation("bik,kj"));
    check(&mut net);
}

#[test]
fn samples_at_a_grid() {
    let mut net = Net::new(16, IMAGE);
    net.weights("grid", &[2, 3, 5, 2])
        .node("y", "GridSample", "x grid");
    check(&mut net);
}

#[test]
fn shape_arithmetic_folds_in_wide_integers() {
    let mut net = Net::new(13, IMAGE);
    net.node("s", "Shape", "x");
    net.ints("wide", &[1 << 33]).ints("axes", &[0]);
    net.node("m", "Mul", "s wide")
        .node("d", "Div", "m wide")
        .node("p", "ReduceProd", "d");
    net.node("y", "Reshape", "x p").output("y");
    let model = net.load().unwrap();
    let y = model.graph.value(model.graph.outputs[0]);
    assert_eq!(y.shape, Shape(vec![IMAGE.iter().product()]));
    assert_eq!(model.graph.nodes.len(), 1);
}
