//! What is chosen for a deployment as a whole: its optimisation level and its threads.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use metainfer::adapt::{OpenBackend, Request};
use metainfer::backend::{Artifact, Backend, BackendError, Failure, Prepared};
use metainfer::device::{Target, probe};
use metainfer::graph::{Graph, Partition, ValueId};
use metainfer::label::Purpose;
use metainfer::lock::{self, Deployment};
use metainfer::space::{Candidate, Mapping, SearchSpace};

use crate::support::Sandbox;
use crate::support::inside::{Fault, Log, open, run_with};
use crate::support::tiny;

/// Compiles fast kernels under some options, and slow ones under all others.
struct Uneven {
    slow: Arc<dyn Backend>,
    fast: Arc<dyn Backend>,
    options: Vec<Mapping>,
    is_fast: fn(&Mapping) -> bool,
}

struct Model {
    slow: Arc<dyn Prepared>,
    fast: Arc<dyn Prepared>,
    is_fast: fn(&Mapping) -> bool,
}

fn level(level: i64) -> Mapping {
    Mapping::default().with("opt-level", level)
}

impl Uneven {
    fn open(
        request: &Request,
        target: &Target,
        options: Vec<Mapping>,
        is_fast: fn(&Mapping) -> bool,
    ) -> Result<Arc<dyn Backend>, BackendError> {
        Ok(Arc::new(Self {
            slow: open(request, target, Fault::Slow)?,
            fast: open(request, target, Fault::None)?,
            options,
            is_fast,
        }))
    }

    /// Is slow at level 2, at which candidates are searched, and fast at level 1.
    fn by_level(request: &Request, target: &Target) -> Result<Arc<dyn Backend>, BackendError> {
        let is_fast = |options: &Mapping| options.int("opt-level") == Some(1);
        Self::open(request, target, vec![level(2), level(1)], is_fast)
    }

    /// Is fast on one thread.
    fn alone(request: &Request, target: &Target) -> Result<Arc<dyn Backend>, BackendError> {
        let is_fast = |options: &Mapping| options.int("threads") == Some(1);
        Self::open(request, target, vec![level(3)], is_fast)
    }

    /// Is fast on as many threads as the target has.
    fn together(request: &Request, target: &Target) -> Result<Arc<dyn Backend>, BackendError> {
        let is_fast = |options: &Mapping| options.int("threads").is_none();
        Self::open(request, target, vec![level(3)], is_fast)
    }
}

impl Backend for Uneven {
    fn name(&self) -> &str {
        self.fast.name()
    }

    fn options(&self) -> &[Mapping] {
        &self.options
    }

    fn accepts(&self, options: &Mapping) -> bool {
        self.fast.accepts(options)
    }

    fn version(&self, options: &Mapping) -> String {
        self.fast.version(options)
    }

    fn generator(&self) -> &str {
        self.fast.generator()
    }

    fn toolchain(&self) -> &str {
        self.fast.toolchain()
    }

    fn prepare(
        &self,
        graph: &Graph,
        partition: &Partition,
    ) -> Result<Arc<dyn Prepared>, BackendError> {
        Ok(Arc::new(Model {
            slow: self.slow.prepare(graph, partition)?,
            fast: self.fast.prepare(graph, partition)?,
            is_fast: self.is_fast,
        }))
    }

    fn prepare_plain(&self, graph: &Graph) -> Result<Arc<dyn Prepared>, BackendError> {
        self.fast.prepare_plain(graph)
    }
}

impl Prepared for Model {
    fn space(&self, subgraph: usize) -> Option<&SearchSpace> {
        self.fast.space(subgraph)
    }

    fn default_candidate(&self, subgraph: usize) -> Candidate {
        self.fast.default_candidate(subgraph)
    }

    fn main_values(&self, subgraph: usize) -> Option<[ValueId; 2]> {
        self.fast.main_values(subgraph)
    }

    fn layouts(&self, subgraph: usize, mapping: &Mapping) -> Option<[String; 2]> {
        self.fast.layouts(subgraph, mapping)
    }

    fn build(
        &self,
        candidates: &[Candidate],
        options: &Mapping,
        jobs: usize,
    ) -> Result<Result<Artifact, Failure>, BackendError> {
        let chosen = if (self.is_fast)(options) {
            &self.fast
        } else {
            &self.slow
        };
        chosen.build(candidates, options, jobs)
    }

    /// Numbers of threads alone: there are no segments.
    fn refinements(&self, candidates: &[Candidate], options: &Mapping) -> Vec<Mapping> {
        let mut found = self.fast.refinements(candidates, options);
        found.retain(|options| options.word("segments").is_none());
        found
    }

    fn discard(&self, artifact: &Artifact) {
        self.fast.discard(artifact);
    }
}

fn locked(sandbox: &Sandbox) -> Deployment {
    let lockfile = lock::decode(&sandbox.read("metainfer.lock")).unwrap();
    lockfile.deployments.into_values().next().unwrap()
}

fn adapt(sandbox: &Sandbox, max_evaluations: u32) -> u32 {
    let request = sandbox.request(max_evaluations);
    let summary = run_with(&request, &Log::default(), &Uneven::by_level);
    summary.unwrap().n_evaluations
}

#[test]
fn the_level_that_wins_the_vote_is_locked_kept_and_deployed() {
    let sandbox = Sandbox::with_tiny(&tiny::two());
    assert!(adapt(&sandbox, 4) <= 4);
    let (text, deployment) = (sandbox.read("metainfer.lock"), locked(&sandbox));
    assert_eq!(deployment.options, level(1));
    assert!(deployment.speed_up.get() > 1.5);
    let records = sandbox.records();
    let at = |level: &str| {
        let labels = records.labels.iter();
        let labels = labels.filter(|label| label.task.backend_version.ends_with(level));
        let artifacts: BTreeSet<_> = labels.map(|l| l.provenance.artifact).collect();
        artifacts
            .into_iter()
            .map(Option::unwrap)
            .collect::<Vec<_>>()
    };
    let ([fast], searched) = (&at("-O1")[..], at("-O2")) else {
        panic!("one deployment was built at level 1");
    };
    let final_of = |purpose| {
        let mut evaluations = records.evaluations.iter();
        let evaluation = evaluations.find(|e| e.purpose == purpose && e.artifact == *fast);
        evaluation.is_some()
    };
    assert!(final_of(Purpose::Final) && final_of(Purpose::Confirm));
    assert!(!searched.contains(fast) && searched.len() >= 2);

    // Nothing changed: nothing is evaluated, by the real backend either.
    assert_eq!(adapt(&sandbox, 4), 0);
    sandbox.metainfer("adapt").code(0);
    assert_eq!(sandbox.read("metainfer.lock"), text);
    sandbox.metainfer("check").code(0);

    sandbox.metainfer("deploy --out out").code(0);
    assert!(sandbox.read("out/README.md").contains("\nopt-level = 1\n"));
    let other = text.replace("options.opt-level = 1", "options.opt-level = 3");
    sandbox
        .git("init --quiet")
        .git("add -A")
        .git("commit --quiet -m one");
    sandbox.file("metainfer.lock", &other);
    let run = sandbox.metainfer("diff").code(0);
    assert!(run.stdout.contains("opt-level  1 → 3"), "{}", run.stdout);
    sandbox.metainfer("deploy --out out").code(0);
    assert!(sandbox.read("out/README.md").contains("\nopt-level = 3\n"));
}

#[test]
fn a_locked_level_is_compared_and_checked_as_it_is_locked() {
    let sandbox = Sandbox::with_tiny(&tiny::two());
    adapt(&sandbox, 4);
    let old = locked(&sandbox);
    // Even without an evaluation to spare: the default takes the one there is.
    let mut lockfile = lock::decode(&sandbox.read("metainfer.lock")).unwrap();
    for deployment in lockfile.deployments.values_mut() {
        deployment.is_interrupted = true;
    }
    sandbox.file("metainfer.lock", &lock::encode(&lockfile).unwrap());
    assert_eq!(adapt(&sandbox, 1), 1);
    let new = locked(&sandbox);
    assert_eq!(new.options, level(1));
    assert_eq!(new.subgraphs, old.subgraphs);
    assert!(!new.is_interrupted && new.speed_up.get() > 1.5);

    // New weights are checked at the level that is locked.
    sandbox.model("models/tiny.onnx", &tiny::two_with(2));
    assert_eq!(adapt(&sandbox, 4), 0);
    let checked = locked(&sandbox);
    assert_eq!(
        (checked.options, checked.subgraphs),
        (level(1), new.subgraphs)
    );
    assert_ne!(checked.content, new.content);
}

/// Adapts a model, of which a pointwise convolution can be uneven, to a target of two threads.
fn adapt_for_two(sandbox: &Sandbox, max_evaluations: u32, open: &OpenBackend<'_>) -> u32 {
    let mut request = sandbox.request(max_evaluations);
    request.targets[0].threads = 2;
    let summary = run_with(&request, &Log::default(), open);
    summary.unwrap().n_evaluations
}

#[test]
fn fewer_threads_that_are_faster_are_locked_kept_and_deployed() {
    let sandbox = Sandbox::with_tiny(&tiny::three());
    // Also where there is hardly anything to spend: one evaluation is kept for them.
    assert!(adapt_for_two(&sandbox, 4, &Uneven::alone) <= 4);
    let (text, deployment) = (sandbox.read("metainfer.lock"), locked(&sandbox));
    assert_eq!(deployment.options, level(3).with("threads", 1));
    assert_eq!(deployment.threads, 2);
    assert!(deployment.speed_up.get() > 1.5);
    let labels = sandbox.records().labels;
    let mut alone = labels.iter().map(|label| &label.task.backend_version);
    assert!(alone.any(|version| version.ends_with("-O3-1t")));

    assert_eq!(adapt_for_two(&sandbox, 4, &Uneven::alone), 0);
    assert_eq!(sandbox.read("metainfer.lock"), text);
    let config = "model-dir = \"models\"\n[[target]]\nname = \"cpu\"\nthreads = 2\n";
    sandbox.file("metainfer.toml", config);
    if probe::host().threads >= 2 {
        sandbox.metainfer("deploy --out out").code(0);
        assert!(!sandbox.path("out/src/pool.rs").exists());
    }
}

#[test]
fn fewer_threads_that_are_slower_are_measured_and_not_locked() {
    let sandbox = Sandbox::with_tiny(&tiny::three());
    assert!(adapt_for_two(&sandbox, 6, &Uneven::together) <= 6);
    let deployment = locked(&sandbox);
    assert_eq!((deployment.options, deployment.threads), (level(3), 2));
    let records = sandbox.records();
    let labels = records.labels.iter();
    let alone = labels.filter(|label| label.task.backend_version.ends_with("-O3-1t"));
    let alone: BTreeSet<_> = alone.map(|l| l.provenance.artifact.unwrap()).collect();
    let spent = records.spent().filter(|e| alone.contains(&e.artifact));
    assert_eq!((alone.len(), spent.count()), (1, 1));
}

#[test]
fn fewer_threads_than_are_locked_must_be_faster_by_the_gain_that_is_asked_for() {
    let sandbox = Sandbox::with_tiny(&tiny::three());
    adapt_for_two(&sandbox, 4, &Uneven::together);
    let mut lockfile = lock::decode(&sandbox.read("metainfer.lock")).unwrap();
    for deployment in lockfile.deployments.values_mut() {
        deployment.is_interrupted = true;
    }
    sandbox.file("metainfer.lock", &lock::encode(&lockfile).unwrap());
    let mut request = sandbox.request(20);
    request.targets[0].threads = 2;
    // Nobody is a hundred times as fast.
    request.search.min_gain = 0.99;
    run_with(&request, &Log::default(), &Uneven::alone).unwrap();
    assert_eq!(locked(&sandbox).options, level(3));
}

/// Returns by directory of objects which levels kernels were compiled at and which libraries were
/// linked, from what a compiler was called with.
fn calls_by_dir(log: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut levels: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for call in log.lines().filter(|call| call.contains("--crate-name")) {
        let words: Vec<&str> = call.split(' ').collect();
        let level = words.iter().find_map(|w| w.strip_prefix("opt-level="));
        let objects = words.iter().filter_map(|w| w.strip_prefix("link-arg="));
        // Each call makes its file in a directory of its own.
        let made = words.last().unwrap();
        let made = Path::new(made).parent().unwrap().parent().unwrap();
        // Objects are in the directory of the call while they are linked.
        let dirs = objects.map(|object| Path::new(object).parent().unwrap());
        let dirs = dirs.map(|dir| dir.parent().unwrap());
        for dir in dirs.chain([made]) {
            let dir = dir.to_str().unwrap().to_owned();
            levels
                .entry(dir)
                .or_default()
                .insert(level.unwrap().to_owned());
        }
    }
    levels
}

#[test]
fn every_level_is_built_from_objects_of_its_own_and_counts_as_an_evaluation() {
    let mut sandbox = Sandbox::with_tiny(&tiny::two());
    let text = "echo \"$@\" >>\"$(dirname \"$0\")/rustc.log\"\nexec rustc \"$@\"";
    sandbox.script("rustc.sh", text);
    let script = sandbox.path("rustc.sh");
    sandbox.variable("RUSTC", script.to_str().unwrap());
    sandbox.metainfer("adapt --max-evaluations 30").code(0);
    let log = fs::read_to_string(sandbox.path("rustc.log")).unwrap();
    let mut levels: Vec<BTreeSet<String>> = calls_by_dir(&log).into_values().collect();
    levels.sort();
    assert_eq!(
        levels,
        ["1", "2", "3"].map(|level| BTreeSet::from([level.to_owned()]))
    );

    let records = sandbox.records();
    let deployment = locked(&sandbox);
    assert_eq!(deployment.evaluations as usize, records.spent().count());
    for level in ["-O1", "-O3"] {
        let labels = records.labels.iter();
        let labels = labels.filter(|label| label.task.backend_version.ends_with(level));
        let artifacts: BTreeSet<_> = labels.map(|l| l.provenance.artifact.unwrap()).collect();
        let spent = records.spent().filter(|e| artifacts.contains(&e.artifact));
        assert_eq!((artifacts.len(), spent.count()), (1, 1), "{level}");
    }
}
