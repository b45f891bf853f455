//! A job, and labels of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::adapt::job::{Job, Source, open_native};
use crate::adapt::session::{Locked, Session};
use crate::adapt::{Canceller, Request};
use crate::config::{
    Accept, LimitSettings, Model, Objective, SampleSettings, SearchSettings, TimeoutSettings,
};
use crate::device::{DeviceProfile, Isa, Target, probe};
use crate::digest::Digest;
use crate::graph::Shape;
use crate::label::{Clock, Context, Cost, Label, Measurement, Outcome, Provenance, Stage};
use crate::measure::WorkerSpec;
use crate::queue::Priority;
use crate::space::{Candidate, Mapping};

/// What a job borrows.
pub(super) struct Setup {
    request: Request,
    source: Source,
    _dir: tempfile::TempDir,
}

impl Setup {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = "fixtures/fashion/models/fashion.onnx";
        let model = Model {
            name: "fashion".to_owned(),
            path: Path::new(env!("CARGO_MANIFEST_DIR")).join(path),
            inputs: BTreeMap::from([("image".to_owned(), Shape(vec![1, 1, 28, 28]))]),
            samples: SampleSettings::default(),
            accept: Accept::default(),
            objective: Objective::Latency,
        };
        let target = Target {
            name: "cpu".to_owned(),
            backend: "native".to_owned(),
            profile_name: "x86-64-v4".to_owned(),
            profile: DeviceProfile {
                isa: Isa::X86V4,
                ..probe::host()
            },
            threads: 1,
            obstacle: None,
        };
        let source = Source::load(&model).unwrap();
        let request = Request {
            workspace_root: dir.path().to_owned(),
            scratch: dir.path().join("target"),
            home: dir.path().join("home"),
            models: vec![model],
            targets: vec![target],
            is_everything: true,
            search: SearchSettings {
                max_evaluations: 20,
                min_gain: 0.03,
                seed: 0,
            },
            jobs: 1,
            limits: LimitSettings::default(),
            priority: Priority::Normal,
            is_locked: false,
            is_offline: true,
            is_dry_run: false,
            worker: WorkerSpec {
                command: PathBuf::from("false"),
                args: Vec::new(),
                cpu: None,
                memory_limit_bytes: None,
            },
            timeouts: TimeoutSettings::default(),
            rustc: PathBuf::from("rustc"),
            cancellation: Canceller::new().1,
        };
        Self {
            request,
            source,
            _dir: dir,
        }
    }

    pub(super) fn job(&self) -> Job<'_> {
        let (model, target) = (&self.request.models[0], &self.request.targets[0]);
        Job::new(&self.request, model, target, &self.source, &open_native).unwrap()
    }
}

/// Starts a session with nothing locked.
pub(super) fn session(job: &Job<'_>, seed: u64) -> Session {
    Session::new(job, 20, seed, &BTreeMap::new())
}

/// Starts a session with a mapping locked for a task.
pub(super) fn session_with_lock(job: &Job<'_>, task: usize, mapping: &Mapping) -> Session {
    let locked = Locked {
        candidate: candidate(mapping),
        is_final: true,
    };
    let structure = job.tasks[task].key.structure;
    Session::new(job, 20, 0, &BTreeMap::from([(structure, locked)]))
}

pub(super) fn candidate(mapping: &Mapping) -> Candidate {
    Candidate {
        mapping: mapping.clone(),
        ..Candidate::default()
    }
}

/// Returns a label that says that a mapping took so long.
pub(super) fn label(job: &Job<'_>, task: usize, mapping: &Mapping, ns: u64) -> Label {
    Label {
        task: job.tasks[task].key.clone(),
        candidate: candidate(mapping),
        stage: Stage::Measured,
        outcome: Outcome::Ok,
        message: String::new(),
        measurement: Measurement::of(vec![ns; 8], Clock::Tsc, Context::Chain),
        energy_mj: None,
        divergence: None,
        content: None,
        cost: Cost::default(),
        provenance: Provenance {
            tool: "0".to_owned(),
            toolchain: "rustc".to_owned(),
            artifact: Some(Digest::of_bytes("test", b"artifact")),
            time_ms: 1,
        },
    }
}

/// Has every task with something to choose take a microsecond by default.
pub(super) fn learn_defaults(job: &Job<'_>, session: &mut Session) {
    for (task, occurrences) in job.tasks.iter().map(|task| &task.occurrences).enumerate() {
        let default = job.prepared.default_candidate(occurrences[0]).mapping;
        let label = label(job, task, &default, 1000);
        session.learn(task, &label, 1.0);
    }
}

/// Returns a subgraph in the middle of the model that can have its values in any layout, and its
/// default with both of them channels-last.
pub(super) fn switched(job: &Job<'_>) -> (usize, Mapping) {
    let any = (1..job.task_of.len()).find_map(|subgraph| {
        let space = job.prepared.space(subgraph)?;
        let default = job.prepared.default_candidate(subgraph).mapping;
        let is_blocked = ["layout_in", "layout_out"]
            .into_iter()
            .all(|name| default.word(name) == Some("nchw16c"));
        let nhwc = default.with("layout_in", "nhwc").with("layout_out", "nhwc");
        (is_blocked && space.is_valid(&nhwc).is_ok()).then_some((subgraph, nhwc))
    });
    any.unwrap()
}
