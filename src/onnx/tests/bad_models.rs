//! Models that are well-formed files and still unusable.

use std::path::Path;

use super::net::Net;
use crate::fsx;
use crate::graph::{Attribute, DType, Shape, Tensor, TensorData};
use crate::onnx::error::Problem;
use crate::onnx::{LoadOptions, encode, load, load::decode};

const IMAGE: &[usize] = &[1, 4, 6, 5];

#[track_caller]
fn problem(net: &mut Net) -> String {
    net.output("y");
    full(&net.load().unwrap_err())
}

fn full(problem: &Problem) -> String {
    let mut text = problem.to_string();
    let mut source = std::error::Error::source(problem);
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

#[test]
fn an_operator_of_another_domain_is_named_with_its_node() {
    let mut net = Net::new(13, IMAGE);
    net.node("y", "Fuse", "x").output("y");
    net.graph.nodes[0].domain = "com.example".to_owned();
    net.graph.nodes[0].name = "block1/fuse".to_owned();
    let problem = net.load().unwrap_err();
    assert_eq!(
        problem.to_string(),
        "operator `com.example.Fuse` of node `block1/fuse` is not supported: only operators of the \
         standard ONNX domain are"
    );
    let help = problem.at(Path::new("net.onnx")).help().unwrap();
    assert!(help.starts_with("replace the operator before exporting"));
}

#[test]
fn an_operator_nobody_knows_is_named() {
    let mut net = Net::new(13, IMAGE);
    net.node("y", "Frobnicate", "x");
    let text = problem(&mut net);
    assert!(
        text.starts_with("operator `Frobnicate` of node `y` is not supported: "),
        "{text}"
    );
}

#[test]
fn loops_and_random_numbers_are_refused() {
    let mut net = Net::new(13, IMAGE);
    net.node("y", "Loop", "x");
    assert_eq!(
        problem(&mut net),
        "operator `Loop` of node `y` is not supported: loops are not"
    );
    let mut net = Net::new(13, IMAGE);
    net.node("y", "RandomNormalLike", "x");
    assert_eq!(
        problem(&mut net),
        "operator `RandomNormalLike` of node `y` is not supported: its output is random"
    );
}

#[test]
fn outputs_whose_shape_depends_on_data_are_refused() {
    let mut net = Net::new(13, IMAGE);
    net.node("y", "NonZero", "x");
    assert_eq!(
        problem(&mut net),
        "node `y` (NonZero) does not fit its inputs: its output shape depends on the elements of \
         input 0, which is not a constant"
    );
    let mut net = Net::new(13, IMAGE);
    net.input("shape", DType::I64, &[2]);
    net.node("y", "Reshape", "x shape");
    assert_eq!(
        problem(&mut net),
        "node `y` (Reshape) does not fit its inputs: its output shape depends on the elements of \
         input 1, which is not a constant"
    );
}

#[test]
fn shapes_that_disagree_are_named_with_both() {
    let mut net = Net::new(13, IMAGE);
    net.weights("w", &[6, 3, 3, 3]).node("y", "Conv", "x w");
    assert_eq!(
        problem(&mut net),
        "node `y` (Conv) does not fit its inputs: input [1, 4, 6, 5] has 4 channels, weights \
         [6, 3, 3, 3] in 1 groups need 3"
    );
    let mut net = Net::new(13, IMAGE);
    net.weights("w", &[6, 3]).node("y", "Add", "x w");
    assert_eq!(
        problem(&mut net),
        "node `y` (Add) does not fit its inputs: shapes [1, 4, 6, 5] and [6, 3] do not broadcast"
    );
    let mut net = Net::new(13, &[2, 3]);
    net.weights("w", &[4, 5]).node("y", "MatMul", "x w");
    assert_eq!(
        problem(&mut net),
        "node `y` (MatMul) does not fit its inputs: [2, 3] and [4, 5] do not multiply"
    );
    let mut net = Net::new(13, IMAGE);
    net.ints("shape", &[7, -1]).node("y", "Reshape", "x shape");
    assert_eq!(
        problem(&mut net),
        "node `y` (Reshape) does not fit its inputs: [1, 4, 6, 5] does not reshape to [7, -1]"
    );
}

#[test]
fn operators_without_a_rule_are_tried_and_their_complaint_is_passed_on() {
    let build = |dims: &[usize]| {
        let mut net = Net::new(13, &[2, 3]);
        let equation = ("equation", Attribute::String("...j,jk->...k".to_owned()));
        net.weights("w", dims)
            .with("y", "Einsum", "x w", &[equation]);
        net
    };
    let mut net = build(&[3, 5]);
    let model = net.output("y").load().unwrap();
    let output = model.graph.value(model.graph.outputs[0]);
    assert_eq!(output.shape.dims(), [2, 5]);
    let text = problem(&mut build(&[4, 5]));
    assert!(
        text.starts_with("node `y` (Einsum) does not fit its inputs: "),
        "{text}"
    );
}

#[test]
fn weights_that_are_not_numbers_are_counted() {
    let build = |bad: f32| {
        let mut net = Net::new(13, &[1, 3]);
        let data = TensorData::F32(vec![1.0, bad, bad]);
        net.constant("w", Tensor::new(Shape(vec![3, 1]), data).unwrap());
        net.node("y", "MatMul", "x w");
        problem(&mut net)
    };
    let expected = "tensor `w` holds 2 values that are NaN or infinite";
    assert_eq!(build(f32::NAN), expected);
    assert_eq!(build(f32::NEG_INFINITY), expected);
}

#[test]
fn infinite_masks_are_fine() {
    let mut net = Net::new(13, &[1, 3]);
    net.constant("mask", Tensor::from_f32(vec![0.0, f32::NEG_INFINITY, 0.0]));
    net.node("y", "Add", "x mask").output("y");
    net.load().unwrap();
}

#[test]
fn huge_values_are_refused() {
    let mut net = Net::new(13, &[1 << 16, 1 << 16]);
    net.node("y", "Relu", "x");
    assert_eq!(
        problem(&mut net),
        "value `x` has the shape [65536, 65536]: more than 2^31 elements"
    );

    let mut net = Net::new(13, IMAGE);
    net.ints("shape", &[1 << 20, 1 << 20])
        .node("c", "ConstantOfShape", "shape");
    net.node("y", "Add", "c c");
    assert_eq!(
        problem(&mut net),
        "value `c` has the shape [1048576, 1048576]: more than 2^31 elements"
    );
}

#[test]
fn shapes_that_overflow_are_refused() {
    let cases: [(&str, &[i64]); 3] = [
        ("Tile", &[1 << 62, 4, 1, 1]),
        ("Expand", &[1 << 40, 4, 6, 5]),
        ("Tile", &[i64::MAX, i64::MAX, i64::MAX, i64::MAX]),
    ];
    for (op, sizes) in cases {
        let mut net = Net::new(13, IMAGE);
        net.ints("sizes", sizes).node("y", op, "x sizes");
        net.output("y");
        let problem = net.load().unwrap_err();
        let is_clear = matches!(problem, Problem::TooLarge { .. } | Problem::Mismatch { .. });
        assert!(is_clear, "{op} {sizes:?}: {problem:?}");
    }
}

#[test]
fn every_supported_operator_set_is_read() {
    for opset in crate::onnx::OPSETS {
        let mut net = Net::new(opset, IMAGE);
        net.node("y", "Relu", "x").output("y");
        assert_eq!(net.load().unwrap().graph.opset, opset);
    }
}

#[test]
fn a_cycle_names_a_node_in_it() {
    let mut net = Net::new(13, IMAGE);
    net.node("a", "Relu", "x")
        .node("b", "Add", "a x")
        .node("y", "Relu", "b")
        .output("y");
    net.graph.nodes[0].inputs[0] = net.graph.nodes[1].outputs[0];
    let text = full(&net.load().unwrap_err());
    assert_eq!(text, "the graph has a cycle through `a`");
}

#[test]
fn values_defined_twice_or_never_are_named() {
    let mut net = Net::new(13, IMAGE);
    net.node("a", "Relu", "x")
        .node("b", "Relu", "x")
        .node("y", "Add", "a b")
        .output("y");
    net.graph.nodes[1].outputs[0] = net.graph.nodes[0].outputs[0];
    let text = full(&net.load().unwrap_err());
    assert_eq!(text, "value `a` is defined twice");

    let mut net = Net::new(13, IMAGE);
    net.node("a", "Relu", "x")
        .node("y", "Add", "a x")
        .output("y");
    net.graph.nodes.remove(0);
    let text = full(&net.load().unwrap_err());
    assert_eq!(text, "value `a`, read by `y`, is never produced");

    let mut net = Net::new(13, IMAGE);
    net.node("y", "Relu", "x").output("y").output("x");
    net.graph.values[1].name = "z".to_owned();
    net.graph.outputs[1] = net.graph.nodes[0].outputs[0].unwrap();
    net.graph.nodes.clear();
    let text = full(&net.load().unwrap_err());
    assert_eq!(
        text,
        "value `z`, read by `the model's outputs`, is never produced"
    );
}

#[test]
fn operator_sets_too_old_and_too_new_are_refused() {
    for opset in [6, 99] {
        let mut net = Net::new(opset, IMAGE);
        net.node("y", "Relu", "x");
        assert_eq!(
            problem(&mut net),
            format!("operator set {opset} is not supported: 7 to 28 are")
        );
    }
}

#[test]
fn missing_external_data_names_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("net.onnx");
    let mut model = external_model("weights.bin", 0);
    fsx::write_scratch(&path, &model.write_buf().unwrap()).unwrap();
    let error = load(&path, &LoadOptions::default()).unwrap_err();
    let missing = dir.path().join("weights.bin");
    assert_eq!(
        error.problem.to_string(),
        format!(
            "tensor `w` is kept in `{}`, which does not exist",
            missing.display()
        )
    );
    assert_eq!(
        error.help().unwrap(),
        "put `weights.bin` next to the model, or save the model as a single file"
    );

    fsx::write_scratch(&missing, &[0u8; 20]).unwrap();
    let error = load(&path, &LoadOptions::default()).unwrap_err();
    assert_eq!(
        error.problem.to_string(),
        "tensor `w` is kept in `weights.bin`: bytes 0 to 24 are needed, the file has 20"
    );

    model = external_model("../weights.bin", 0);
    let error = decode(&model.write_buf().unwrap(), &path, &LoadOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "tensor `w` is kept in `../weights.bin`: only files in the model's directory are read"
    );
}

#[test]
fn external_data_is_read_at_its_offset() {
    let dir = tempfile::tempdir().unwrap();
    let values: Vec<f32> = (0..6).map(|v| v as f32 + 0.5).collect();
    let mut bytes = vec![0xff; 8];
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    fsx::write_scratch(&dir.path().join("weights.bin"), &bytes).unwrap();
    let model = external_model("weights.bin", 8).write_buf().unwrap();
    let path = dir.path().join("net.onnx");
    let model = decode(&model, &path, &LoadOptions::default()).unwrap();
    let weights = model
        .source
        .values
        .iter()
        .find(|value| value.name == "w")
        .unwrap();
    assert_eq!(weights.data.as_ref().unwrap().as_f32().unwrap(), values);
}

/// `y = x · w` with `w` as `[3, 2]` in a file.
fn external_model(location: &str, offset: u64) -> rten_onnx::onnx::ModelProto {
    use rten_onnx::onnx::{DataLocation, ModelProto, StringStringEntryProto};
    let mut net = Net::new(13, &[1, 3]);
    net.weights("w", &[3, 2])
        .node("y", "MatMul", "x w")
        .output("y");
    let mut model = ModelProto::parse_buf(&encode(&net.graph).unwrap()).unwrap();
    let entry = |key: &str, value: String| StringStringEntryProto {
        key: Some(key.to_owned()),
        value: Some(value),
    };
    let tensor = &mut model.graph.as_mut().unwrap().initializer[0];
    tensor.raw_data = None;
    tensor.data_location = Some(DataLocation::EXTERNAL);
    tensor.external_data = vec![
        entry("location", location.to_owned()),
        entry("offset", offset.to_string()),
    ];
    model
}

#[test]
fn functions_of_the_model_are_refused_where_they_are_called() {
    let mut net = Net::new(13, IMAGE);
    net.node("y", "Fuse", "x").output("y");
    net.graph.nodes[0].domain = "com.example".to_owned();
    let mut bytes = encode(&net.graph).unwrap();
    // Field 25: a function with a name (1) and a domain (10).
    let function = [b"\x0a\x04Fuse".as_slice(), b"\x52\x0bcom.example"].concat();
    bytes.extend([0xca, 0x01, function.len() as u8]);
    bytes.extend(function);
    let problem = decode(&bytes, Path::new("net.onnx"), &LoadOptions::default()).unwrap_err();
    assert_eq!(
        problem.to_string(),
        "operator `com.example.Fuse` of node `y` is not supported: it is a function of the model; \
         export with functions inlined"
    );
}

#[test]
fn tensors_may_be_in_typed_fields() {
    use rten_onnx::onnx::ModelProto;
    let mut net = Net::new(13, &[1, 3]);
    net.weights("w", &[3, 2]).ints("shape", &[2, 1]);
    net.node("m", "MatMul", "x w")
        .node("y", "Reshape", "m shape")
        .output("y");
    let plain = net.load().unwrap().graph.digests();
    let mut model = ModelProto::parse_buf(&encode(&net.graph).unwrap()).unwrap();
    let tensors = &mut model.graph.as_mut().unwrap().initializer;
    for tensor in tensors.iter_mut() {
        tensor.raw_data = None;
    }
    tensors[0].float_data = net.graph.values[1]
        .data
        .as_ref()
        .unwrap()
        .as_f32()
        .unwrap()
        .to_vec();
    tensors[1].int64_data = vec![2, 1];
    let bytes = model.write_buf().unwrap();
    let model = decode(&bytes, Path::new("net.onnx"), &LoadOptions::default()).unwrap();
    assert_eq!(model.graph.digests(), plain);
}
