//! Locks of the fixture, as an adaptation on this machine would write them.

use std::collections::BTreeMap;
use std::time::Duration;

use metainfer::backend::Backend;
use metainfer::backend::native::{Native, NativeOptions};
use metainfer::config::Objective;
use metainfer::device;
use metainfer::digest::Digest;
use metainfer::graph;
use metainfer::label::Stage;
use metainfer::lock::{self, Deployment, DeploymentKey, Figure, LockedSubgraph, Lockfile};
use metainfer::onnx::{self, LoadOptions};
use metainfer::space::Mapping;

use super::Sandbox;

/// Returns a lock of the default choices.
pub(crate) fn locked(sandbox: &Sandbox) -> Deployment {
    let options = LoadOptions {
        input_shapes: [("image".to_owned(), vec![1, 1, 28, 28])].into(),
    };
    let graph = onnx::load(&sandbox.path("models/fashion.onnx"), &options)
        .unwrap()
        .graph;
    let partition = graph::partition(&graph);
    let digests = graph.digests();
    let host = device::probe::host();
    let dir = tempfile::tempdir().unwrap();
    let native = Native::open(&NativeOptions {
        isa: host.isa,
        threads: 1,
        rustc: "rustc".into(),
        dir: dir.path().to_owned(),
        opt_level: 3,
        timeout: Duration::from_mins(1),
        templates: BTreeMap::new(),
    })
    .unwrap();
    let prepared = native.prepare(&graph, &partition).unwrap();
    Deployment {
        file: Digest::of_bytes("test", b"file"),
        structure: digests.structure,
        content: digests.content,
        profile: "host".to_owned(),
        isa: host.isa,
        processor: host.processor.clone(),
        device: host.fingerprint(),
        backend: "native".to_owned(),
        backend_version: Native::generator_version(&BTreeMap::new()).unwrap(),
        toolchain: native.toolchain().to_owned(),
        threads: 1,
        objective: Objective::Latency,
        evidence: Stage::Measured,
        evaluations: 1,
        is_interrupted: false,
        speed_up: Figure::new(1.0).unwrap(),
        latency_ms: Figure::new(1.0).unwrap(),
        divergence: Figure::new(0.0).unwrap(),
        accuracy: None,
        footprint: None,
        options: Mapping::default().with("opt-level", 3),
        subgraphs: partition
            .subgraphs
            .iter()
            .enumerate()
            .map(|(idx, subgraph)| LockedSubgraph {
                op: subgraph.describe(&graph),
                structure: subgraph.digests(&graph).structure,
                candidate: prepared.default_candidate(idx),
            })
            .collect(),
    }
}

/// Writes a lockfile with one deployment.
pub(crate) fn write_lock(sandbox: &Sandbox, model: &str, deployment: Deployment) {
    let key = DeploymentKey {
        model: model.to_owned(),
        target: "cpu".to_owned(),
    };
    let lockfile = Lockfile {
        revision: 0,
        deployments: [(key, deployment)].into(),
    };
    sandbox.file("metainfer.lock", &lock::encode(&lockfile).unwrap());
}
