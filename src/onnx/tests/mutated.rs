//! Thousands of damaged models: each is loaded, rewritten and cut, or refused; none of them panics,
//! takes long or takes more memory than is allowed.
//!
//! `tests/fuzz` has the same as targets of libFuzzer, which look for damage instead of drawing it.

use std::process::Command;
use std::time::{Duration, Instant};

use super::mutation::Mutator;
use super::net::Net;
use super::{fashion, options};
use crate::graph::Attribute::{self, Float, Int, Ints, String as Text};
use crate::graph::{DType, Shape, Tensor, TensorData};
use crate::onnx::{encode, survives};

/// Damaged models that are tried.
const ROUNDS: usize = 4000;

/// Longest time that one of them may take, unoptimised and on a busy machine.
const LIMIT: Duration = Duration::from_secs(10);

/// Address space that all of them together may take, KiB: constants that are folded, 1 GiB at most,
/// and what working them out takes.
const MEMORY_KIB: u64 = 4 << 20;

#[test]
fn damaged_models_are_loaded_or_refused() {
    let seeds = seeds();
    let mut mutator = Mutator::new(&seeds, 1);
    let options = options(&[]);
    let mut n_loaded = 0;
    for round in 0..ROUNDS {
        let bytes = mutator.damaged();
        let started = Instant::now();
        n_loaded += usize::from(survives(&bytes, &options).unwrap());
        let took = started.elapsed();
        assert!(took < LIMIT, "round {round} took {took:?}");
    }
    // Else the damage is too coarse to get beyond the decoder, or none is done.
    assert!((ROUNDS / 20..ROUNDS).contains(&n_loaded), "{n_loaded}");
}

#[test]
fn damaged_models_stay_within_the_memory_that_is_allowed() {
    let test = "onnx::tests::mutated::damaged_models_are_loaded_or_refused";
    let limited = format!("ulimit -v {MEMORY_KIB} && exec \"$0\" --exact {test}");
    let output = Command::new("sh")
        .args(["-c", &limited])
        .arg(std::env::current_exe().unwrap())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}{:?}", output.status);
    assert!(stdout.contains("1 passed"), "{stdout}");
}

#[test]
fn damage_is_the_same_each_time() {
    let damage = |number| {
        let mut mutator = Mutator::new(&seeds(), number);
        (0..50).map(|_| mutator.damaged()).collect::<Vec<_>>()
    };
    assert_eq!(damage(7), damage(7));
    assert_ne!(damage(7), damage(8));
}

/// Returns the fixture and small models that have what it lacks.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![std::fs::read(fashion()).unwrap()];
    for net in [shaped(), windows(), quantised(), recurrent(), indexed()] {
        net.load().unwrap();
        seeds.push(encode(&net.graph).unwrap());
    }
    seeds
}

fn f32s(dims: &[usize], value: f32) -> Tensor {
    let shape = Shape(dims.to_vec());
    Tensor::new(shape.clone(), TensorData::F32(vec![value; shape.len()])).unwrap()
}

/// Arithmetic on shapes.
fn shaped() -> Net {
    let mut net = Net::new(13, &[1, 4, 6, 5]);
    net.ints("two", &[2]).ints("zero", &[0]);
    net.ints("minus", &[-1]).ints("ones", &[2, 2, 1]);
    net.ints("repeats", &[2, 1, 3])
        .ints("pads", &[0, 1, 0, 0, 1, 2]);
    for (name, value) in [("low", 0.0), ("high", 9.0), ("step", 2.0)] {
        net.scalar(name, value);
    }
    net.node("s", "Shape", "x");
    net.with("n", "Gather", "s zero", &[("axis", Int(0))]);
    net.node("m", "Mul", "n two");
    net.with("target", "Concat", "m minus", &[("axis", Int(0))]);
    net.node("r", "Reshape", "x target");
    net.node("e", "Expand", "r ones");
    net.node("c", "ConstantOfShape", "ones");
    net.node("a", "Add", "e c").node("t", "Tile", "a repeats");
    net.node("v", "Slice", "t zero two zero");
    net.node("p", "Pad", "v pads")
        .node("y", "Range", "low high step");
    net.output("p").output("y");
    net
}

/// Windows of all kinds.
fn windows() -> Net {
    let mut net = Net::new(13, &[1, 4, 6, 5]);
    net.weights("w", &[2, 4, 3, 3]).weights("v", &[2, 1, 2, 2]);
    let window = [
        ("pads", Ints(vec![1, 1, 1, 1])),
        ("strides", Ints(vec![1, 2])),
        ("dilations", Ints(vec![1, 1])),
        ("group", Int(1)),
    ];
    net.with("c", "Conv", "x w", &window);
    let strides = ("strides", Ints(vec![2, 1]));
    net.with("t", "ConvTranspose", "c v", &[("group", Int(2)), strides]);
    let kernel = ("kernel_shape", Ints(vec![2, 2]));
    let pool = [kernel.clone(), ("ceil_mode", Int(1))];
    net.with("p", "MaxPool", "t", &pool);
    let same: [(&str, Attribute); 2] = [kernel, ("auto_pad", Text("SAME_UPPER".to_owned()))];
    net.with("a", "AveragePool", "p", &same);
    net.constant("scales", f32s(&[4], 1.5));
    let mode = [("mode", Text("linear".to_owned()))];
    net.with("z", "Resize", "a _ scales", &mode);
    net.with("h", "HardSigmoid", "z", &[("alpha", Float(0.3))]);
    net.with("y", "Softmax", "h", &[("axis", Int(-1))]);
    net.output("y");
    net
}

/// Integers with scales.
fn quantised() -> Net {
    let mut net = Net::new(13, &[1, 4, 6, 5]);
    net.scalar("scale", 0.1);
    let bytes = |dims: &[usize]| {
        let shape = Shape(dims.to_vec());
        let data = (0..shape.len()).map(|i| (i % 17) as i8 - 8).collect();
        Tensor::new(shape, TensorData::I8(data)).unwrap()
    };
    let zero = TensorData::U8(vec![3]);
    net.constant("zero", Tensor::new(Shape::default(), zero).unwrap());
    net.constant("w", bytes(&[2, 4, 3, 3]));
    net.constant("w0", bytes(&[]))
        .constant("ws", f32s(&[2], 0.02));
    net.constant("wz", bytes(&[2]));
    net.node("q", "QuantizeLinear", "x scale zero");
    net.node("c", "QLinearConv", "q scale zero w scale w0 scale zero");
    net.node("i", "ConvInteger", "q w zero w0");
    net.with("d", "DequantizeLinear", "w ws wz", &[("axis", Int(0))]);
    net.node("f", "Conv", "x d");
    net.node("y", "DequantizeLinear", "c scale zero");
    net.output("y").output("i").output("f");
    net
}

/// Recurrence, and sums over named axes.
fn recurrent() -> Net {
    let mut net = Net::new(14, &[3, 1, 4]);
    net.weights("w", &[1, 8, 4]).weights("r", &[1, 8, 2]);
    net.with("l h c", "LSTM", "x w r", &[("hidden_size", Int(2))]);
    let equation = ("equation", Text("sdbh,sdbg->bhg".to_owned()));
    net.with("e", "Einsum", "l l", &[equation]);
    net.ints("axis", &[0]).node("y", "CumSum", "e axis");
    net.output("y").output("h");
    net
}

/// Indices and what they choose.
fn indexed() -> Net {
    let mut net = Net::new(13, &[2, 5]);
    net.input("at", DType::I64, &[2, 1]);
    net.ints("k", &[3]).ints("pairs", &[0, 1]);
    net.with("t i", "TopK", "x k", &[("axis", Int(-1))]);
    net.with("g", "GatherElements", "x at", &[("axis", Int(1))]);
    net.node("n", "GatherND", "x at");
    net.with("o", "ArgMax", "t", &[("axis", Int(0))]);
    net.with("y", "Concat", "t g", &[("axis", Int(1))]);
    net.output("y").output("n").output("o").output("i");
    net
}
