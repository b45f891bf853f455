//! What candidates are compared with: the reference executor, or plain loops where it cannot.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::collections::BTreeMap;

use metainfer::graph::{Graph, Tensor};
use metainfer::lock;
use metainfer::measure::Worker;
use metainfer::onnx::{
    LoadOptions, LoadedModel, Reference, load, random_inputs, read_tensors, write_tensors,
};

use crate::support::Sandbox;
use crate::support::inside::{Fault, Log, open, run};
use crate::support::tiny::{self, Conv, Tiny};

/// Loads the model of a sandbox.
fn model(sandbox: &Sandbox) -> LoadedModel {
    load(&sandbox.path("models/tiny.onnx"), &LoadOptions::default()).unwrap()
}

/// Runs the nodes of a graph as plain loops and returns what they make.
fn plain(
    sandbox: &Sandbox,
    graph: &Graph,
    inputs: &BTreeMap<String, Tensor>,
) -> BTreeMap<String, Tensor> {
    let mut graph = graph.clone();
    let made = graph.nodes.iter().flat_map(|node| node.outputs.iter());
    graph.outputs = made.flatten().copied().collect();
    let request = sandbox.request(1);
    let backend = open(&request, &request.targets[0], Fault::None).unwrap();
    let prepared = backend.prepare_plain(&graph).unwrap();
    let all = 0..graph.nodes.len();
    let candidates: Vec<_> = all.map(|idx| prepared.default_candidate(idx)).collect();
    let artifact = prepared.build(&candidates, &backend.default_options(), 2);
    let artifact = artifact.unwrap().unwrap();
    let (given, gives) = (sandbox.path("given"), sandbox.path("gives"));
    write_tensors(&given, inputs).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        let mut worker = Worker::spawn(&request.worker).unwrap();
        let limit = request.timeouts.trial_timeout;
        worker.load(0, artifact, limit).await.unwrap();
        worker.run(0, given, gives.clone(), limit).await.unwrap();
    });
    read_tensors(&gives).unwrap()
}

/// Returns the relative L2 distance of two tensors.
fn distance(actual: &Tensor, expected: &Tensor) -> f64 {
    let (actual, expected) = (actual.as_f32().unwrap(), expected.as_f32().unwrap());
    let square = |v: f32| f64::from(v) * f64::from(v);
    let differences = actual.iter().zip(expected).map(|(a, b)| square(a - b));
    let norm: f64 = expected.iter().map(|&v| square(v)).sum();
    (differences.sum::<f64>() / norm).sqrt()
}

#[test]
fn plain_loops_give_what_the_reference_executor_gives() {
    for graph in [tiny::branches(), tiny::dense()] {
        let sandbox = Sandbox::with_tiny(&graph);
        let model = model(&sandbox);
        let inputs = random_inputs(&model.graph, 3);
        let values = plain(&sandbox, &model.source, &inputs);
        let names: Vec<&str> = values.keys().map(String::as_str).collect();
        assert!(!names.is_empty());
        let expected = Reference::new(model.clone()).unwrap();
        for (name, expected) in expected.run(&inputs, &names).unwrap() {
            assert!(distance(&values[&name], &expected) < 1e-6, "{name}");
        }
    }
}

#[test]
fn model_that_the_reference_executor_cannot_load_is_adapted() {
    let sandbox = Sandbox::with_tiny(&tiny::unusual());
    assert!(
        Reference::new(model(&sandbox)).is_err(),
        "the executor knows the operator by now: use another one here"
    );
    let log = Log::default();
    run(&sandbox.request(3), Fault::None, &log).unwrap();
    let warnings = log.warnings.lock().unwrap();
    let plain: Vec<&str> = warnings
        .iter()
        .filter(|(code, _)| code == "plain-reference")
        .map(|(_, detail)| detail.as_str())
        .collect();
    assert_eq!(plain.len(), 1, "{warnings:?}");
    assert!(plain[0].contains("Shrink"), "{plain:?}");
    let lockfile = lock::decode(&sandbox.read("metainfer.lock")).unwrap();
    let deployment = lockfile.deployments.values().next().unwrap();
    assert!(deployment.divergence.get() < 1e-3, "{deployment:?}");
}

#[test]
fn wrong_numbers_are_rejected_by_plain_loops_too() {
    let sandbox = Sandbox::with_tiny(&tiny::unusual());
    run(&sandbox.request(12), Fault::WrongNumbers, &Log::default()).unwrap();
    let labels = sandbox.records().labels;
    let wrong = labels
        .iter()
        .filter(|label| label.outcome == metainfer::label::Outcome::WrongOutput);
    assert!(wrong.count() > 0, "no faulty candidate was found out");
}

#[test]
fn executor_is_asked_where_it_knows_all_operators() {
    let mut tiny = Tiny::new(1);
    let y = tiny.conv("a", tiny.input(), Conv::new([8, 8], 1));
    let sandbox = Sandbox::with_tiny(&tiny.finish(y));
    let log = Log::default();
    run(&sandbox.request(2), Fault::None, &log).unwrap();
    let warnings = log.warnings.lock().unwrap();
    assert!(warnings.iter().all(|(code, _)| code != "plain-reference"));
}
