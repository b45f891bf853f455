//! A real model through all parts: decoded, built with its defaults, and run by a worker.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use metainfer::backend::native::{Native, NativeOptions};
use metainfer::backend::{Artifact, Backend};
use metainfer::device::probe;
use metainfer::graph::partition;
use metainfer::label::Latency;
use metainfer::onnx::{LoadOptions, Reference, random_inputs, write_tensors};

use crate::worker::worker;

const LIMIT: Duration = Duration::from_mins(5);

/// Builds a model untuned in `dir`, where its reference values are put too.
fn build(model: &Path, input: &str, shape: &[usize], dir: &Path) -> Artifact {
    let options = LoadOptions {
        input_shapes: BTreeMap::from([(input.to_owned(), shape.to_vec())]),
    };
    let reference = Reference::load(model, &options).unwrap();
    let graph = &reference.model().graph;
    let values = reference.trace(&random_inputs(graph, 1)).unwrap();
    write_tensors(&dir.join("reference.safetensors"), &values).unwrap();

    let native = Native::open(&NativeOptions {
        isa: probe::host().isa,
        threads: 1,
        rustc: "rustc".into(),
        dir: dir.to_owned(),
        opt_level: 3,
        timeout: LIMIT,
        templates: BTreeMap::new(),
    });
    let partition = partition(graph);
    let native = native.unwrap();
    let prepared = native.prepare(graph, &partition).unwrap();
    let n_subgraphs = partition.subgraphs.len();
    let candidates: Vec<_> = (0..n_subgraphs)
        .map(|idx| prepared.default_candidate(idx))
        .collect();
    prepared
        .build(&candidates, &native.options()[0], 2)
        .unwrap()
        .unwrap()
}

#[tokio::test]
async fn the_fixture_gives_the_reference_numbers_in_each_step_and_as_a_whole() {
    let dir = tempfile::tempdir().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let model = fixtures.join("fashion/models/fashion.onnx");
    let artifact = build(&model, "image", &[1, 1, 28, 28], dir.path());
    let n_steps = artifact.steps.len();
    let mut worker = worker();
    worker.load(0, artifact, LIMIT).await.unwrap();
    let reference = dir.path().join("reference.safetensors");
    let verified = worker.verify(0, reference, LIMIT).await.unwrap();
    assert_eq!(verified.steps.len(), n_steps);
    for (check, step) in verified.steps.iter().zip(0..) {
        let distance = check.relative_l2.unwrap();
        assert!(distance < 1e-5, "step {step}: {distance}");
    }
    assert!(verified.run.compared && verified.run.relative_l2.unwrap() < 1e-4);

    let profile = worker.profile(0, 3, 20, None, LIMIT).await.unwrap();
    let p25_ns = |samples: &[u64]| Latency::of(samples).unwrap().p25_ns;
    let steps_ns: f64 = profile.steps_ns.iter().map(|step_ns| p25_ns(step_ns)).sum();
    // The steps are all that a run is made of, though two clocks see it.
    let share = steps_ns / p25_ns(&profile.run_ns);
    assert!((0.5..1.5).contains(&share), "{share}");
}
