//! Models of half precision: what they become, and that their numbers stay.

use super::net::{Net, check_values};
use crate::graph::{Attribute, DType, Tensor, TensorData, f16_to_f32, f64_to_f16};
use crate::onnx::{LoadedModel, Reference, random_inputs};

const TO_F16: [(&str, Attribute); 1] = [("to", Attribute::Int(10))];
const TO_F32: [(&str, Attribute); 1] = [("to", Attribute::Int(1))];

/// Makes all constants so far of half precision.
fn halve(net: &mut Net) {
    for value in &mut net.graph.values {
        let Some(numbers) = value.data.as_deref().and_then(Tensor::as_f32) else {
            continue;
        };
        let bits = numbers.iter().map(|&v| f64_to_f16(v.into())).collect();
        let halves = Tensor::new(value.shape.clone(), TensorData::F16(bits)).unwrap();
        value.dtype = DType::F16;
        value.data = Some(halves.into());
    }
}

/// Adds a convolution of a value and a `HardSwish` as exporters write it, all of half precision.
fn layers(net: &mut Net, x: &str) {
    net.weights("w", &[4, 3, 3, 3]).weights("b", &[4]);
    net.scalar("three", 3.0)
        .scalar("zero", 0.0)
        .scalar("six", 6.0);
    halve(net);
    net.node("c", "Conv", &format!("{x} w b"))
        .node("a", "Add", "c three")
        .node("clip", "Clip", "a zero six")
        .node("m", "Mul", "c clip")
        .node("s", "Div", "m six");
}

#[track_caller]
fn check(net: &Net, ops: &[&str], halves: &[&str]) -> LoadedModel {
    let model = net.load().unwrap();
    let found: Vec<&str> = model.graph.nodes.iter().map(|node| &*node.op).collect();
    assert_eq!(found, ops);
    let values = model.graph.values.iter();
    let of_half = values.filter(|value| value.dtype == DType::F16);
    let names: Vec<&str> = of_half.map(|value| &*value.name).collect();
    assert_eq!(names, halves);
    model
}

#[test]
fn model_of_halves_has_the_operators_of_its_twin_between_conversions() {
    let mut net = Net::new(17, &[1, 3, 6, 5]);
    net.graph.values[0].dtype = DType::F16;
    layers(&mut net, "x");
    net.output("s");
    let model = check(&net, &["Cast", "Conv", "HardSwish", "Cast"], &["x", "s"]);
    check_values(&model);
    // The reference rounds once, at the end.
    let inputs = random_inputs(&model.graph, 1);
    let reference = Reference::new(model).unwrap();
    let values = reference.run(&inputs, &["s/f32", "s", "x", "x/f32"]);
    let values = values.unwrap();
    for (half, single) in [("s", "s/f32"), ("x", "x/f32")] {
        let TensorData::F16(halves) = values[half].data() else {
            panic!("{half} is {}", values[half].dtype());
        };
        let singles = values[single].as_f32().unwrap().iter();
        let rounded: Vec<u16> = singles.map(|&v| f64_to_f16(v.into())).collect();
        assert_eq!(*halves, rounded);
    }
    let singles = values["s/f32"].as_f32().unwrap();
    let is_rounded = |v: &f32| f16_to_f32(f64_to_f16((*v).into())).to_bits() == v.to_bits();
    assert!(!singles.iter().all(is_rounded));
}

#[test]
fn inputs_that_are_rounded_stay_so_and_outputs_that_are_not_are_not() {
    let mut net = Net::new(17, &[1, 3, 6, 5]);
    net.with("half", "Cast", "x", &TO_F16);
    layers(&mut net, "half");
    net.with("y", "Cast", "s", &TO_F32).output("y");
    let rounded = "half/f16";
    let model = check(&net, &["Cast", "Cast", "Conv", "HardSwish"], &[rounded]);
    check_values(&model);
    let inputs = random_inputs(&model.graph, 1);
    let reference = Reference::new(model).unwrap();
    let values = reference.run(&inputs, &["half", rounded]).unwrap();
    let x = inputs["x"].as_f32().unwrap();
    let half = values["half"].as_f32().unwrap();
    assert_ne!(x, half);
    for (x, half) in x.iter().zip(half) {
        assert_eq!(
            f16_to_f32(f64_to_f16((*x).into())).to_bits(),
            half.to_bits()
        );
    }
}

#[test]
fn constants_and_inputs_may_be_outputs_of_half_precision() {
    let mut net = Net::new(17, &[2, 3]);
    net.graph.values[0].dtype = DType::F16;
    net.weights("w", &[2, 3]);
    halve(&mut net);
    net.node("y", "Add", "x w").output("y");
    net.output("x").output("w");
    let model = net.load().unwrap();
    let port = |name: &str| model.graph.values.iter().find(|v| v.name == name).unwrap();
    for name in ["x", "w", "y"] {
        assert_eq!(port(name).dtype, DType::F16, "{name}");
    }
    let inputs = random_inputs(&model.graph, 1);
    let reference = Reference::new(model).unwrap();
    let values = reference.run(&inputs, &["x", "w", "y"]).unwrap();
    assert_eq!(values["x"], inputs["x"]);
    assert!(values.values().all(|value| value.dtype() == DType::F16));
}

#[test]
fn booleans_need_no_rounding_and_integers_do() {
    let mut net = Net::new(17, &[2, 3]);
    net.graph.values[0].dtype = DType::F16;
    net.input("mask", DType::Bool, &[2, 3]);
    net.input("count", DType::I32, &[2, 3]);
    net.with("m", "Cast", "mask", &TO_F16)
        .with("n", "Cast", "count", &TO_F16)
        .node("p", "Mul", "x m")
        .node("y", "Mul", "p n");
    net.output("y");
    let model = net.load().unwrap();
    let casts = model.graph.nodes.iter().filter(|node| node.op == "Cast");
    let types: Vec<i64> = casts.map(|node| node.int("to", 0)).collect();
    // Of x, the mask, the count in two steps, and y; in the order of the graph.
    assert_eq!(types.iter().filter(|&&to| to == 10).count(), 2);
    assert_eq!(types.len(), 5);
}

#[test]
fn graph_that_says_f16_itself_stays_as_it_is() {
    let mut net = Net::new(17, &[2, 3]);
    net.graph.values[0].dtype = DType::F16;
    net.positive("w", &[3]);
    halve(&mut net);
    // Means of half precision.
    let attributes = [("stash_type", Attribute::Int(10))];
    net.with("y", "LayerNormalization", "x w", &attributes)
        .output("y");
    check(&net, &["LayerNormalization"], &["w", "x", "y"]);
}
