//! Whether what is locked in the end is as good as it would be without faults.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use metainfer::backend::native::{Native, NativeOptions};
use metainfer::backend::{Artifact, Backend};
use metainfer::device::probe;
use metainfer::graph::{self, Graph, Partition};
use metainfer::label::Latency;
use metainfer::lock::{self, Deployment};
use metainfer::measure::{Worker, WorkerSpec};
use metainfer::onnx::{self, LoadOptions};
use metainfer::space::Candidate;

use super::workspace::Workspace;

/// Rounds in which two deployments are timed in turn.
const ROUNDS: u32 = 400;
/// Time of a request.
const LIMIT: Duration = Duration::from_mins(1);

/// Reads the one deployment of a lockfile.
pub(super) fn locked(workspace: &Workspace) -> Result<Deployment> {
    let text = fs::read_to_string(workspace.lock()).context("there is no lockfile")?;
    let mut deployments = lock::decode(&text)?.deployments.into_values();
    match (deployments.next(), deployments.next()) {
        (Some(deployment), None) => Ok(deployment),
        _ => bail!("not one deployment is locked"),
    }
}

/// A model and a backend to build it with, without faults.
pub(super) struct Builds {
    graph: Graph,
    partition: Partition,
    native: Native,
}

impl Builds {
    /// Opens a backend in a directory of its own.
    pub(super) fn new(model: &Path, dir: &Path) -> Result<Self> {
        let graph = onnx::load(model, &LoadOptions::default())?.graph;
        let native = Native::open(&NativeOptions {
            isa: probe::host().isa,
            threads: 1,
            rustc: "rustc".into(),
            dir: dir.to_owned(),
            opt_level: 2,
            timeout: LIMIT,
            templates: BTreeMap::new(),
        })?;
        Ok(Self {
            partition: graph::partition(&graph),
            graph,
            native,
        })
    }

    /// Returns the symbols of the kernels that a deployment consists of, without what they all begin
    /// with.
    pub(super) fn kernels(&self, deployment: &Deployment) -> Result<BTreeSet<String>> {
        let candidates = candidates(deployment);
        let Self {
            graph,
            partition,
            native,
        } = self;
        let program = native.program(graph, partition, Some(&candidates), &deployment.options)?;
        let program = match program {
            Ok(program) => program,
            Err(failure) => bail!("what is locked cannot be built: {}", failure.message),
        };
        let symbols = program.kernels.into_keys();
        Ok(symbols
            .map(|symbol| symbol.trim_start_matches("k_").to_owned())
            .collect())
    }

    /// Times deployments in turn; returns the latency of each over that of the first.
    pub(super) fn race(&self, deployments: &[&Deployment]) -> Result<Vec<f64>> {
        let prepared = self.native.prepare(&self.graph, &self.partition)?;
        let mut artifacts: Vec<Artifact> = Vec::new();
        for deployment in deployments {
            match prepared.build(&candidates(deployment), &deployment.options, 2)? {
                Ok(artifact) => artifacts.push(artifact),
                Err(failure) => bail!("what is locked cannot be built: {}", failure.message),
            }
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let samples = runtime.block_on(async {
            let mut worker = Worker::spawn(&WorkerSpec::of_this_program()?)?;
            for (slot, artifact) in (0..).zip(&artifacts) {
                worker.load(slot, artifact.clone(), LIMIT).await?;
            }
            let slots = (0..artifacts.len() as u32).collect();
            anyhow::Ok(worker.compare(slots, 20, ROUNDS, 0, LIMIT).await?)
        })?;
        for artifact in &artifacts {
            prepared.discard(artifact);
        }
        let latency = |samples: &Vec<u64>| Latency::of(samples).map_or(f64::NAN, |l| l.p25_ns);
        let latencies: Vec<f64> = samples.iter().map(latency).collect();
        Ok(latencies.iter().map(|ns| ns / latencies[0]).collect())
    }
}

fn candidates(deployment: &Deployment) -> Vec<Candidate> {
    let subgraphs = deployment.subgraphs.iter();
    subgraphs.map(|locked| locked.candidate.clone()).collect()
}
