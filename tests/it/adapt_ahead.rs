//! Builds that run ahead of measuring.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use metainfer::adapt::{Canceller, Request, Summary};
use metainfer::backend::{Artifact, Backend, BackendError, Failure, Prepared};
use metainfer::cpu::allowed_cpus;
use metainfer::device::Target;
use metainfer::event::{Event, Reporter};
use metainfer::graph::{Graph, Partition, ValueId};
use metainfer::space::{Candidate, Mapping, SearchSpace};

use crate::support::Sandbox;
use crate::support::inside::{Fault, open, run_with};
use crate::support::tiny;

/// Longest time that a build waits to see a measurement end beside it.
const PATIENCE: Duration = Duration::from_millis(900);

/// What happened: builds begin and end, and evaluations end.
#[derive(Default)]
struct Log {
    state: Mutex<State>,
    evaluated: Condvar,
    /// Cancels the run when so many evaluations have ended.
    cancel_at: Option<(usize, Mutex<Option<Canceller>>)>,
}

#[derive(Default)]
struct State {
    n_evaluated: usize,
    n_building: usize,
    most_building: usize,
    /// Fewest processors that builds had beside which an evaluation ended.
    beside: Vec<Vec<usize>>,
}

impl Reporter for Log {
    fn report(&self, event: &Event<'_>) {
        let Event::EvaluationFinished { .. } = event else {
            return;
        };
        let mut state = self.state.lock().unwrap();
        state.n_evaluated += 1;
        self.evaluated.notify_all();
        if let Some((n, canceller)) = &self.cancel_at
            && state.n_evaluated == *n
            && let Some(canceller) = canceller.lock().unwrap().take()
        {
            canceller.cancel();
        }
    }
}

impl Log {
    /// Builds, and takes so long that an evaluation ends meanwhile if there is one.
    fn watch<T>(&self, build: impl FnOnce() -> T) -> T {
        let n_before = {
            let mut state = self.state.lock().unwrap();
            state.n_building += 1;
            state.most_building = state.most_building.max(state.n_building);
            state.n_evaluated
        };
        let built = build();
        let mut fewest = allowed_cpus();
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.state.lock().unwrap();
        while state.n_evaluated == n_before && Instant::now() < deadline {
            let waited = self.evaluated.wait_timeout(state, Duration::from_millis(2));
            (state, _) = waited.unwrap();
            let cpus = allowed_cpus();
            if cpus.len() < fewest.len() {
                fewest = cpus;
            }
        }
        state.n_building -= 1;
        if state.n_evaluated > n_before {
            state.beside.push(fewest);
        }
        built
    }
}

/// The native backend, watched.
struct Watched<T: ?Sized> {
    inner: Arc<T>,
    log: Arc<Log>,
}

impl Backend for Watched<dyn Backend> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn options(&self) -> &[Mapping] {
        self.inner.options()
    }

    fn version(&self, options: &Mapping) -> String {
        self.inner.version(options)
    }

    fn generator(&self) -> &str {
        self.inner.generator()
    }

    fn toolchain(&self) -> &str {
        self.inner.toolchain()
    }

    fn prepare(
        &self,
        graph: &Graph,
        partition: &Partition,
    ) -> Result<Arc<dyn Prepared>, BackendError> {
        let inner = self.inner.prepare(graph, partition)?;
        let log = Arc::clone(&self.log);
        Ok(Arc::new(Watched { inner, log }))
    }

    fn prepare_plain(&self, graph: &Graph) -> Result<Arc<dyn Prepared>, BackendError> {
        self.inner.prepare_plain(graph)
    }
}

impl Prepared for Watched<dyn Prepared> {
    fn space(&self, subgraph: usize) -> Option<&SearchSpace> {
        self.inner.space(subgraph)
    }

    fn default_candidate(&self, subgraph: usize) -> Candidate {
        self.inner.default_candidate(subgraph)
    }

    fn main_values(&self, subgraph: usize) -> Option<[ValueId; 2]> {
        self.inner.main_values(subgraph)
    }

    fn layouts(&self, subgraph: usize, mapping: &Mapping) -> Option<[String; 2]> {
        self.inner.layouts(subgraph, mapping)
    }

    fn build(
        &self,
        candidates: &[Candidate],
        options: &Mapping,
        jobs: usize,
    ) -> Result<Result<Artifact, Failure>, BackendError> {
        self.log
            .watch(|| self.inner.build(candidates, options, jobs))
    }

    fn discard(&self, artifact: &Artifact) {
        self.inner.discard(artifact);
    }
}

/// Adapts with four compilers.
fn adapt(sandbox: &Sandbox, change: impl FnOnce(&mut Request), log: Log) -> (Summary, Arc<Log>) {
    let mut request = Request {
        jobs: 4,
        ..sandbox.request(16)
    };
    change(&mut request);
    let log = Arc::new(log);
    let open = |request: &Request, target: &Target| -> Result<Arc<dyn Backend>, BackendError> {
        let inner = open(request, target, Fault::None)?;
        let log = Arc::clone(&log);
        Ok(Arc::new(Watched { inner, log }))
    };
    let summary = run_with(&request, log.as_ref(), &open).unwrap();
    (summary, log)
}

/// Fails if something was evaluated twice, or libraries are left.
#[track_caller]
fn check(sandbox: &Sandbox) {
    let records = sandbox.records();
    let artifacts: BTreeSet<_> = records.spent().map(|e| e.artifact).collect();
    assert_eq!(artifacts.len(), records.spent().count(), "evaluated twice");
    assert!(artifacts.len() <= 16);
    let native = sandbox.path("target/metainfer/native");
    let dirs = std::fs::read_dir(native).unwrap().flatten();
    for file in dirs.flat_map(|dir| std::fs::read_dir(dir.path()).unwrap().flatten()) {
        let path = file.path();
        let extension = path.extension().unwrap_or_default();
        assert!(
            extension == "o" || extension == "list",
            "{}",
            path.display()
        );
    }
}

#[test]
fn builds_go_on_beside_measuring_and_off_its_core() {
    let sandbox = Sandbox::with_tiny(&tiny::two());
    let (summary, log) = adapt(&sandbox, |_| {}, Log::default());
    check(&sandbox);
    assert!(summary.n_evaluations > 8, "{summary:?}");
    let state = log.state.lock().unwrap();
    assert_eq!(state.n_building, 0);
    assert!(state.beside.len() >= 2, "{:?}", state.beside);
    let cpus = allowed_cpus();
    if let [_, .., device] = cpus[..] {
        // A build may see the end of a measurement only, and not its time.
        let off_core = state.beside.iter().filter(|cpus| !cpus.contains(&device));
        assert!(off_core.count() >= 2, "{:?}", state.beside);
    }
    assert!(state.most_building <= 4, "no more than there are compilers");
}

#[test]
fn an_interrupt_leaves_no_build_behind_and_the_next_run_goes_on() {
    let sandbox = Sandbox::with_tiny(&tiny::two());
    let (canceller, cancellation) = Canceller::new();
    let log = Log {
        cancel_at: Some((3, Mutex::new(Some(canceller)))),
        ..Log::default()
    };
    let change = |request: &mut Request| request.cancellation = cancellation;
    let (summary, log) = adapt(&sandbox, change, log);
    assert!(summary.interrupted);
    assert!(summary.n_evaluations <= 5, "{summary:?}");
    assert_eq!(log.state.lock().unwrap().n_building, 0);
    check(&sandbox);
    assert!(
        sandbox
            .read("metainfer.lock")
            .contains("search = \"interrupted\"")
    );

    let (again, _) = adapt(&sandbox, |_| {}, Log::default());
    check(&sandbox);
    assert!(!again.interrupted);
    assert!(summary.n_evaluations + again.n_evaluations <= 16);
}
