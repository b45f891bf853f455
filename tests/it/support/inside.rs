//! Adaptations within the test's process, with a backend whose kernels have faults.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metainfer::adapt::{self, Canceller, Error, OpenBackend, Request, Summary};
use metainfer::backend::native::templates::TEMPLATES;
use metainfer::backend::native::{Native, NativeOptions};
use metainfer::backend::{Backend, BackendError};
use metainfer::config::{
    Accept, LimitSettings, Model, Objective, SampleSettings, SearchSettings, TimeoutSettings,
};
use metainfer::device::{Target, probe};
use metainfer::event::{Event, Reporter};
use metainfer::measure::WorkerSpec;
use metainfer::queue::Priority;

use super::Sandbox;

/// What is wrong with kernels of a pointwise convolution that unroll their innermost loop by
/// anything but 4, which is what the default does; or else with the default.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    None,
    WrongNumbers,
    /// As `WrongNumbers`, but of integers, where the default unrolls by 2.
    WrongIntegers,
    Crash,
    Hang,
    CompileError,
    SlowDefault,
    /// All pointwise convolutions are slow.
    Slow,
}

impl Fault {
    /// Returns whether a convolution whose mapping unrolls so is a victim.
    pub(crate) fn hits(unroll: i64) -> bool {
        unroll != 4
    }

    fn templates(self) -> BTreeMap<String, String> {
        let fault = match self {
            Self::None => return BTreeMap::new(),
            Self::WrongIntegers => return wrong_integers(),
            // All weights are shifted by one.
            Self::WrongNumbers => "let w = w.add(1);",
            Self::Crash => "core::ptr::write_volatile(8 as *mut u32, 1);",
            Self::Hang => "loop { core::hint::spin_loop() }",
            Self::CompileError => "compile_error!(\"injected\");",
            // Some 100 µs, which is many times what the whole of a tiny model takes.
            Self::SlowDefault | Self::Slow => {
                "let mut i = 0; while i < 100_000 { i += 1; core::hint::black_box(i); }"
            }
        };
        let victims = match self {
            Self::Slow => ">= 1",
            Self::SlowDefault => "== 4",
            _ => "!= 4",
        };
        let fault = format!("{{% if c.U {victims} and c.KH == 1 %}}{fault}{{% endif %}}");
        // Vectors over channels, and along the width.
        let faulty = ["conv.rs.j2", "conv_width.rs.j2"].map(|kernel| {
            let (_, shipped) = TEMPLATES.iter().find(|(name, _)| *name == kernel).unwrap();
            let is_head = |line: &&str| line.starts_with("pub unsafe extern \"C\" fn KERNEL(");
            let head = shipped.lines().find(is_head).unwrap();
            let text = shipped.replace(head, &format!("{head}\n{fault}"));
            (kernel.to_owned(), text)
        });
        faulty.into()
    }
}

/// Returns a kernel of integers that has its weights shifted by one.
fn wrong_integers() -> BTreeMap<String, String> {
    let name = "qconv.rs.j2";
    let (_, shipped) = TEMPLATES
        .iter()
        .find(|(kernel, _)| *kernel == name)
        .unwrap();
    let begin = "let w = h.add({{ 12 * c.OCP }});";
    assert!(shipped.contains(begin));
    let fault = "{% if c.U != 2 %}let w = w.add(1);{% endif %}";
    let text = shipped.replace(begin, &format!("{begin}\n{fault}"));
    [(name.to_owned(), text)].into()
}

/// What a run reported.
#[derive(Default)]
pub(crate) struct Log {
    /// Ratio and acceptance of the challengers.
    pub(crate) compared: Mutex<Vec<(f64, bool)>>,
    /// Codes and details of warnings.
    pub(crate) warnings: Mutex<Vec<(String, String)>>,
}

impl Reporter for Log {
    fn report(&self, event: &Event<'_>) {
        match event {
            Event::DeploymentCompared { ratio, accepted } => {
                self.compared.lock().unwrap().push((*ratio, *accepted));
            }
            Event::Warning { code, detail, .. } => {
                let warning = ((*code).to_owned(), (*detail).to_owned());
                self.warnings.lock().unwrap().push(warning);
            }
            _ => {}
        }
    }
}

impl Sandbox {
    /// Returns a request to adapt the model `tiny` to this machine. The run is never cancelled.
    pub(crate) fn request(&self, max_evaluations: u32) -> Request {
        let (canceller, cancellation) = Canceller::new();
        drop(canceller);
        Request {
            workspace_root: self.root(),
            scratch: self.path("target/metainfer"),
            home: self.home(),
            models: vec![Model {
                name: "tiny".to_owned(),
                path: self.path("models/tiny.onnx"),
                inputs: BTreeMap::new(),
                samples: SampleSettings::default(),
                accept: Accept::default(),
                objective: Objective::Latency,
            }],
            targets: vec![Target {
                name: "cpu".to_owned(),
                backend: "native".to_owned(),
                profile_name: "host".to_owned(),
                profile: probe::host(),
                threads: 1,
                obstacle: None,
            }],
            is_everything: true,
            search: SearchSettings {
                max_evaluations,
                min_gain: 0.03,
                seed: 0,
            },
            jobs: 2,
            limits: LimitSettings::default(),
            priority: Priority::Normal,
            is_locked: false,
            is_offline: true,
            is_dry_run: false,
            worker: WorkerSpec {
                command: env!("CARGO_BIN_EXE_cargo-metainfer").into(),
                args: vec!["metainfer".into(), "worker".into()],
                cpu: None,
                memory_limit_bytes: None,
            },
            timeouts: TimeoutSettings::default(),
            rustc: "rustc".into(),
            cancellation,
        }
    }
}

/// Runs a request with faulty kernels.
pub(crate) fn run(request: &Request, fault: Fault, log: &Log) -> Result<Summary, Error> {
    let open = |request: &Request, target: &Target| open(request, target, fault);
    run_with(request, log, &open)
}

/// Runs a request with a backend.
pub(crate) fn run_with(
    request: &Request,
    log: &dyn Reporter,
    open: &OpenBackend<'_>,
) -> Result<Summary, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(adapt::run_with(request, log, open))
}

/// Opens the native backend with faulty kernels.
pub(crate) fn open(
    request: &Request,
    target: &Target,
    fault: Fault,
) -> Result<Arc<dyn Backend>, BackendError> {
    let native = Native::open(&NativeOptions {
        isa: target.profile.isa,
        threads: target.threads as usize,
        rustc: request.rustc.clone(),
        dir: request.scratch.join("native"),
        opt_level: 3,
        timeout: Duration::from_mins(1),
        templates: fault.templates(),
    })?;
    Ok(Arc::new(native))
}
