//! What every value of a model should be, as a file that candidates are compared with.
//!
//! The reference executor is asked first: it shares no code with any backend. What it does not
//! know, such as `Shrink`, is computed by the backend's plainest code, for any processor and
//! with nothing chosen, of the graph as the file has it; the ONNX project's test cases vouch for
//! that code (`cargo xtask conformance`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::job::Job;
use super::{Error, Request, TrialError};
use crate::backend::{Artifact, BackendError, Prepared};
use crate::event::{Event, Reporter};
use crate::fsx;
use crate::graph::{Graph, Tensor, ValueId};
use crate::measure::{Worker, WorkerSpec};
use crate::onnx::{self, Reference, random_inputs, read_tensors, write_tensors};
use crate::space::Candidate;

/// Plain loops may take that many times as long as a worker has for a tuned candidate.
const PATIENCE: u32 = 10;

/// Values of a model by name.
type Values = BTreeMap<String, Tensor>;

/// Computes all values of a model on random inputs, and writes them to a file.
///
/// # Errors
/// If neither the reference executor nor plain code can run the model: what the former says.
pub(super) async fn write_reference(
    request: &Request,
    job: &Job<'_>,
    reporter: &dyn Reporter,
) -> Result<PathBuf, Error> {
    let failed = |source| failure(job, source);
    let dir = job.scratch(request);
    fsx::create_dir_all(&dir)?;
    let path = job.reference(request);
    let inputs = random_inputs(job.source.graph(), request.search.seed);
    let traced =
        Reference::new(job.source.loaded.clone()).and_then(|reference| reference.trace(&inputs));
    let values = match traced {
        Ok(values) => values,
        Err(error) => {
            let Some(values) = plain_values(request, job, &inputs).await? else {
                return Err(failed(error));
            };
            reporter.report(&Event::Warning {
                code: "plain-reference",
                subject: &job.model.name,
                detail: &format!(
                    "compared with plain loops, as {}",
                    innermost(&error).trim_end_matches('.')
                ),
            });
            values
        }
    };
    write_tensors(&path, &values).map_err(failed)?;
    Ok(path)
}

/// Computes all values by plain code; `None` if it does not cover the model.
async fn plain_values(
    request: &Request,
    job: &Job<'_>,
    inputs: &Values,
) -> Result<Option<Values>, Error> {
    let (source, canonical) = (&job.source.loaded.source, job.source.graph());
    let wanted: BTreeSet<&str> = canonical.values.iter().map(|v| v.name.as_str()).collect();
    let mut values = inputs.clone();
    // What rewriting made is computed from what it made it of; all else from the file's own nodes,
    // unless rewriting is what made them executable.
    for graph in [source, canonical] {
        let missing = |id: &ValueId| {
            let name = &graph.value(*id).name;
            wanted.contains(name.as_str()) && !values.contains_key(name)
        };
        let mut traced = graph.clone();
        traced.outputs = made(graph).filter(missing).collect();
        if traced.outputs.is_empty() {
            continue;
        }
        match job.backend.prepare_plain(&traced) {
            Ok(prepared) => {
                let all = 0..traced.nodes.len();
                let candidates = all.map(|idx| prepared.default_candidate(idx)).collect();
                values.extend(run(request, job, prepared, candidates, inputs).await?);
            }
            Err(BackendError::NotCovered { .. }) => {}
            Err(error) => return Err(backend_failure(job, error)),
        }
    }
    let is_complete = made(canonical).all(|id| values.contains_key(&canonical.value(id).name));
    Ok(is_complete.then_some(values))
}

/// Returns the values that nodes of a graph make.
fn made(graph: &Graph) -> impl Iterator<Item = ValueId> {
    let outputs = graph.nodes.iter().flat_map(|node| node.outputs.iter());
    outputs.flatten().copied()
}

/// Builds a graph and runs it once in a worker of its own.
async fn run(
    request: &Request,
    job: &Job<'_>,
    prepared: Arc<dyn Prepared>,
    candidates: Vec<Candidate>,
    inputs: &Values,
) -> Result<Values, Error> {
    let failed = |source| failure(job, source);
    let (builder, options, jobs) = (Arc::clone(&prepared), job.options(), request.jobs.max(1));
    let built =
        tokio::task::spawn_blocking(move || builder.build(&candidates, &options, jobs)).await;
    let artifact = built
        .map_err(|_| Error::Panicked)?
        .map_err(|error| backend_failure(job, error))?
        .map_err(|failure| Error::Default {
            model: job.model.name.clone(),
            target: job.target.name.clone(),
            message: format!("plain loops do not build: {}", failure.message),
        })?;
    let dir = job.scratch(request);
    let [given, gives] = ["plain-inputs", "plain-outputs"].map(|name| dir.join(name));
    write_tensors(&given, inputs).map_err(failed)?;
    let ran = in_worker(request, &artifact, &given, &gives).await;
    prepared.discard(&artifact);
    ran?;
    let values = read_tensors(&gives).map_err(failed)?;
    for path in [&given, &gives] {
        // What stays goes with the directory.
        let _ = fsx::remove_file(path);
    }
    Ok(values)
}

async fn in_worker(
    request: &Request,
    artifact: &Artifact,
    given: &Path,
    gives: &Path,
) -> Result<(), Error> {
    let limit = request.timeouts.trial_timeout * PATIENCE;
    let spec: &WorkerSpec = &request.worker;
    let mut worker = Worker::spawn(spec).map_err(TrialError::from)?;
    let loaded = worker.load(0, artifact.clone(), limit).await;
    loaded.map_err(TrialError::from)?;
    let ran = worker.run(0, given.to_owned(), gives.to_owned(), limit);
    Ok(ran.await.map_err(TrialError::from)?)
}

fn failure(job: &Job<'_>, source: onnx::Error) -> Error {
    Error::Model {
        model: job.model.name.clone(),
        source: Box::new(source),
    }
}

fn backend_failure(job: &Job<'_>, source: BackendError) -> Error {
    Error::Backend {
        model: job.model.name.clone(),
        target: job.target.name.clone(),
        source,
    }
}

/// Returns what is at the bottom of an error.
fn innermost(error: &onnx::Error) -> String {
    let mut source: &dyn std::error::Error = error;
    while let Some(next) = source.source() {
        source = next;
    }
    source.to_string()
}
