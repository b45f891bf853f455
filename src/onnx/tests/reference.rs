//! The reference executor.

use std::collections::BTreeMap;

use super::net::{Net, check_values, distance};
use super::{fashion, load_fashion, options};
use crate::graph::{DType, Tensor};
use crate::onnx::{Reference, random_inputs, write_tensors};

#[test]
fn rewriting_the_fixture_preserves_every_value() {
    check_values(&load_fashion());
}

#[test]
fn decoding_agrees_with_the_executors_own_decoder() {
    let model = load_fashion();
    let inputs = random_inputs(&model.graph, 3);
    let ours = Reference::new(model)
        .unwrap()
        .run(&inputs, &["logits"])
        .unwrap();
    let theirs = rten::Model::load_file(fashion()).unwrap();
    let image = inputs["image"].as_f32().unwrap().to_vec();
    let image = rten::Value::from_shape(&[1, 1, 28, 28], image).unwrap();
    let logits = theirs.run_one(image.into(), None).unwrap();
    let (_, logits): ([usize; 2], Vec<f32>) = logits.into_shape_vec().unwrap();
    let logits = Tensor::from_f32(logits).reshaped([1, 10].into()).unwrap();
    assert!(distance(&ours["logits"], &logits) < 1e-6);
}

#[test]
fn the_same_inputs_give_the_same_bits() {
    let reference = Reference::load(&fashion(), &options(&[("image", &[2, 1, 28, 28])])).unwrap();
    let inputs = random_inputs(&reference.model().graph, 1);
    assert_eq!(inputs, random_inputs(&reference.model().graph, 1));
    assert_ne!(inputs, random_inputs(&reference.model().graph, 2));
    let first = reference.trace(&inputs).unwrap();
    assert_eq!(first, reference.trace(&inputs).unwrap());
    assert_eq!(first["logits"].shape().dims(), [2, 10]);
}

#[test]
fn constants_and_inputs_can_be_asked_for() {
    let reference = Reference::new(load_fashion()).unwrap();
    let inputs = random_inputs(&reference.model().graph, 1);
    let values = reference.run(&inputs, &["image", "t0"]).unwrap();
    assert_eq!(values["image"], inputs["image"]);
    assert_eq!(values["t0"].shape().dims(), [16, 1, 3, 3]);
}

#[test]
fn values_that_do_not_exist_and_missing_inputs_are_errors() {
    let reference = Reference::new(load_fashion()).unwrap();
    let inputs = random_inputs(&reference.model().graph, 1);
    let error = reference.run(&inputs, &["nothing"]).unwrap_err();
    assert_eq!(error.problem.to_string(), "there is no value `nothing`");
    let error = reference.run(&BTreeMap::new(), &["logits"]).unwrap_err();
    assert_eq!(
        error.problem.to_string(),
        "input `image` must be f32 [1, 1, 28, 28]"
    );
}

#[test]
fn integer_inputs_index_their_table() {
    let mut net = Net::new(13, &[1, 4]);
    net.input("ids", DType::I64, &[64]);
    net.weights("table", &[5, 4])
        .node("rows", "Gather", "table ids")
        .node("y", "Add", "rows x");
    net.output("y");
    let model = net.load().unwrap();
    let ids = random_inputs(&model.graph, 1)["ids"].to_i64().unwrap();
    assert!(ids.iter().all(|id| (0..5).contains(id)));
    assert!(ids.contains(&4));
    check_values(&model);
}

#[test]
fn traces_are_written_as_safetensors() {
    let reference = Reference::new(load_fashion()).unwrap();
    let inputs = random_inputs(&reference.model().graph, 1);
    let trace = reference.trace(&inputs).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.safetensors");
    write_tensors(&path, &trace).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let read = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(read.len(), trace.len());
    let logits = read.tensor("logits").unwrap();
    assert_eq!(logits.shape(), [1, 10]);
    assert_eq!(logits.data(), trace["logits"].data().to_le_bytes());
    for name in ["image", "t3", "t76"] {
        assert!(read.tensor(name).is_ok(), "{name}");
    }
}
