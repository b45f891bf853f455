//! Models that cannot be adapted: each is a sentence with the file and the remedy, and what is
//! locked stays as it is.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use metainfer::graph::{Attribute, Graph, Shape, TensorData, ValueId};
use metainfer::onnx;
use rten_onnx::onnx::{DataLocation, Dimension, ModelProto, StringStringEntryProto};

use crate::support::Sandbox;
use crate::support::tiny;

/// Returns a workspace with a model that is locked and another one that is not there yet.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_tiny(&tiny::two());
    sandbox.metainfer("adapt --max-evaluations 1").code(0);
    sandbox
}

/// Adapts with `content` as another model, and checks that this ends with a sentence that has all
/// the parts, and that nothing happened to the lock.
#[track_caller]
fn check(sandbox: &Sandbox, content: &[u8], parts: &[&str]) {
    let text = sandbox.read("metainfer.lock");
    sandbox.bytes("models/bad.onnx", content);
    let run = sandbox.metainfer("adapt").code(101);
    let named = "error: cannot adapt model `bad`\n";
    assert!(run.stderr.starts_with(named), "{}", run.stderr);
    for part in parts.iter().chain(&["models/bad.onnx`", "\nhelp: "]) {
        assert!(run.stderr.contains(part), "no {part:?} in\n{}", run.stderr);
    }
    assert_eq!(sandbox.read("metainfer.lock"), text);
    // The other model is as usable as before.
    let run = sandbox.metainfer("adapt --model tiny").code(0);
    assert!(run.stderr.contains("Fresh `tiny`"), "{}", run.stderr);
}

/// As [`check`], with a change of a model that can be adapted.
#[track_caller]
fn check_graph(sandbox: &Sandbox, change: impl FnOnce(&mut Graph), parts: &[&str]) {
    let mut graph = tiny::three();
    change(&mut graph);
    check(sandbox, &onnx::encode(&graph).unwrap(), parts);
}

/// As [`check`], with a change of what is written.
#[track_caller]
fn check_proto(sandbox: &Sandbox, change: impl FnOnce(&mut ModelProto), parts: &[&str]) {
    let bytes = onnx::encode(&tiny::three()).unwrap();
    let mut model = ModelProto::parse_buf(&bytes).unwrap();
    change(&mut model);
    check(sandbox, &model.write_buf().unwrap(), parts);
}

#[test]
fn files_that_are_no_models_are_named() {
    let sandbox = sandbox();
    check(&sandbox, b"", &["empty", "check `path`"]);
    check(
        &sandbox,
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 10000\n",
        &["this is not an ONNX file", "git lfs pull"],
    );
    let whole = onnx::encode(&tiny::three()).unwrap();
    let half = &whole[..whole.len() / 2];
    check(&sandbox, half, &["truncated", "copy or download"]);
    sandbox.sparse("models/bad.onnx", 2 << 30);
    let run = sandbox.metainfer("adapt").code(101);
    assert!(run.stderr.contains("end at 2 GiB"), "{}", run.stderr);
    assert!(run.stderr.contains("external data"), "{}", run.stderr);
}

#[test]
fn parts_that_are_missing_are_named() {
    let sandbox = sandbox();
    let external = |model: &mut ModelProto| {
        let tensor = &mut model.graph.as_mut().unwrap().initializer[0];
        tensor.raw_data = None;
        tensor.data_location = Some(DataLocation::EXTERNAL);
        tensor.external_data = vec![StringStringEntryProto {
            key: Some("location".to_owned()),
            value: Some("bad.weights".to_owned()),
        }];
    };
    let parts = [
        "tensor `a.w`",
        "bad.weights`, which does not exist",
        "next to the model",
    ];
    check_proto(&sandbox, external, &parts);
    let dynamic = |model: &mut ModelProto| {
        let input = &mut model.graph.as_mut().unwrap().input[0];
        let tensor = input.r#type.as_mut().unwrap().tensor_type.as_mut().unwrap();
        let shape = tensor.shape.as_mut().unwrap();
        shape.dim[0] = Dimension {
            dim_value: None,
            dim_param: Some("batch".to_owned()),
        };
    };
    let parts = [
        "input `x` has the dynamic shape [batch, 8, 8, 8]",
        "`inputs = { x = [",
    ];
    check_proto(&sandbox, dynamic, &parts);
}

#[test]
fn graphs_that_cannot_be_run_are_named_with_node_or_value() {
    let sandbox = sandbox();
    check_graph(
        &sandbox,
        |graph| "TfIdfVectorizer".clone_into(&mut graph.nodes[1].op),
        &[
            "`TfIdfVectorizer` of node `node_a.relu`",
            "replace the operator",
        ],
    );
    check_graph(
        &sandbox,
        |graph| {
            let weights = graph.values.iter_mut().find(|value| value.name == "b.w");
            let value = weights.unwrap();
            let tensor = value.data.as_ref().unwrap();
            let mut data = tensor.as_f32().unwrap().to_vec();
            data[3] = f32::NAN;
            let tensor = metainfer::graph::Tensor::new(value.shape.clone(), TensorData::F32(data));
            value.data = Some(tensor.unwrap().into());
        },
        &[
            "tensor `b.w` holds 1 values that are NaN",
            "export the model again",
        ],
    );
    check_graph(
        &sandbox,
        |graph| {
            let pads = Attribute::Ints(vec![0, 0, 0]);
            graph.nodes[0].attributes.insert("pads".to_owned(), pads);
        },
        &[
            "node `node_a` (Conv) does not fit its inputs",
            "onnx.checker",
        ],
    );
    check_graph(
        &sandbox,
        |graph| graph.values[graph.inputs[0].0].shape = Shape(vec![1, 8, 0, 8]),
        &[
            "input `x` has the dynamic shape [1, 8, 0, 8]",
            "fix the shape",
        ],
    );
    check_graph(
        &sandbox,
        |graph| {
            // The first convolution reads what the last one gives.
            let last: ValueId = graph.outputs[0];
            graph.nodes[0].inputs[0] = Some(last);
        },
        &["cycle through `", "onnx.checker"],
    );
}

#[test]
fn what_the_backend_does_not_cover_is_named_with_the_node() {
    let sandbox = sandbox();
    let text = sandbox.read("metainfer.lock");
    let mut tiny = tiny::Tiny::new(1);
    let a = tiny.conv("a", tiny.input(), tiny::Conv::new([8, 8], 1));
    let mut graph = tiny.finish(a);
    let y = graph.outputs[0];
    graph.nodes.push(metainfer::graph::Node {
        name: "node_sorted".to_owned(),
        op: "CumSum".to_owned(),
        domain: String::new(),
        attributes: std::collections::BTreeMap::new(),
        inputs: vec![Some(y), Some(ValueId(graph.values.len()))],
        outputs: vec![Some(ValueId(graph.values.len() + 1))],
    });
    // Kernels run along axes that are known when they are built.
    graph.inputs.push(ValueId(graph.values.len()));
    graph.values.push(metainfer::graph::Value {
        name: "axis".to_owned(),
        dtype: metainfer::graph::DType::I64,
        shape: Shape(Vec::new()),
        data: None,
    });
    let mut sorted = graph.values[y.0].clone();
    "sorted".clone_into(&mut sorted.name);
    graph.values.push(sorted);
    graph.outputs = vec![ValueId(graph.values.len() - 1)];
    sandbox.model("models/bad.onnx", &graph);
    let run = sandbox.metainfer("adapt").code(101);
    for part in [
        "model `bad`",
        "CumSum",
        "node_sorted",
        "help: export the model",
    ] {
        assert!(run.stderr.contains(part), "no {part:?} in\n{}", run.stderr);
    }
    assert_eq!(sandbox.read("metainfer.lock"), text);
}
