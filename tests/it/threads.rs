//! Models on several threads, through all parts: built, run, adapted and deployed.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use metainfer::backend::native::{Native, NativeOptions};
use metainfer::backend::{Artifact, Backend};
use metainfer::device::probe;
use metainfer::graph::partition;
use metainfer::label::Outcome;
use metainfer::lock;
use metainfer::onnx::{LoadOptions, Reference, random_inputs, write_tensors};

use crate::support::Sandbox;
use crate::support::inside::{Fault, Log, run};
use crate::support::tiny::{self, Conv, Tiny};
use crate::worker::worker;

const LIMIT: Duration = Duration::from_mins(5);

/// The model of `fixtures/fashion` in a directory of its own, with reference values.
struct Fixture {
    dir: tempfile::TempDir,
    reference: Reference,
}

impl Fixture {
    fn new() -> Self {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        let input_shapes = BTreeMap::from([("image".to_owned(), vec![1, 1, 28, 28])]);
        let model = fixtures.join("fashion/models/fashion.onnx");
        let reference = Reference::load(&model, &LoadOptions { input_shapes }).unwrap();
        let values = reference.trace(&random_inputs(&reference.model().graph, 1));
        let dir = tempfile::tempdir().unwrap();
        let fixture = Self { dir, reference };
        write_tensors(&fixture.path("reference"), &values.unwrap()).unwrap();
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("{name}.safetensors"))
    }

    /// Builds the defaults for some threads; all that can be divided along `axis` are, but for what
    /// `segments` says to run some rows at a time.
    fn build(&self, threads: usize, axis: &str, segments: &str) -> Artifact {
        let native = Native::open(&NativeOptions {
            isa: probe::host().isa,
            threads,
            rustc: "rustc".into(),
            dir: self.dir.path().to_owned(),
            opt_level: 3,
            timeout: LIMIT,
            templates: BTreeMap::new(),
        });
        let (native, graph) = (native.unwrap(), &self.reference.model().graph);
        let partition = partition(graph);
        let prepared = native.prepare(graph, &partition).unwrap();
        let mut candidates = Vec::new();
        for idx in 0..partition.subgraphs.len() {
            let mut candidate = prepared.default_candidate(idx);
            let is_shared = candidate.mapping.word("share").is_some();
            if let Some(space) = prepared.space(idx) {
                let mut params = space.params().into_iter();
                let share = params.find(|param| param.name == "share");
                assert_eq!(share.is_some(), is_shared);
                assert!(!is_shared || threads > 1);
                if share.is_some_and(|share| share.values.contains(&axis.into())) {
                    candidate.mapping = candidate.mapping.with("share", axis);
                }
            }
            candidates.push(candidate);
        }
        let mut options = native.options()[0].clone();
        if !segments.is_empty() {
            options = options.with("segments", segments);
        }
        let built = prepared.build(&candidates, &options, 2);
        let artifact = built.unwrap().unwrap();
        assert_eq!(artifact.threads, threads);
        let refined = prepared.refinements(&candidates, &options);
        let refined = refined.iter().map(|options| options.int("threads"));
        let expected = (1..threads as i64).map(Some);
        assert!(threads == 1 || refined.eq(expected));
        artifact
    }
}

#[tokio::test]
async fn one_two_and_three_threads_give_the_same_bits_whatever_is_divided() {
    let fixture = Fixture::new();
    let mut worker = worker();
    let mut expected: Option<Vec<u8>> = None;
    // Part of the last one runs some rows at a time, on one of its threads.
    let ways = [
        (1, "rows", ""),
        (2, "rows", ""),
        (2, "channels", ""),
        (3, "rows", ""),
        (3, "channels", ""),
        (2, "rows", "1-2@2"),
    ];
    for (threads, axis, segments) in ways {
        let artifact = fixture.build(threads, axis, segments);
        worker.load(0, artifact, LIMIT).await.unwrap();
        let reference = fixture.path("reference");
        let verified = worker.verify(0, reference.clone(), LIMIT).await.unwrap();
        for (check, step) in verified.steps.iter().zip(0..) {
            let distance = check.relative_l2.unwrap();
            assert!(distance < 1e-5, "{threads} {axis}: step {step}: {distance}");
        }
        // Time and again, as a race is seldom lost.
        for _ in 0..20 {
            let outputs = fixture.path("outputs");
            let ran = worker
                .run(0, reference.clone(), outputs.clone(), LIMIT)
                .await;
            ran.unwrap();
            let bytes = fs::read(outputs).unwrap();
            let expected = expected.get_or_insert_with(|| bytes.clone());
            assert!(bytes == *expected, "{threads} threads by {axis}");
        }
    }
}

#[test]
fn a_deployed_model_gives_the_same_bits_on_any_number_of_threads() {
    let sandbox = Sandbox::with_fashion();
    let config = sandbox.read("metainfer.toml");
    let main = "
        fn main() {
            let image: Vec<f32> = (0..784).map(|i| (i % 29) as f32 / 29.0).collect();
            let mut model = fashion::Model::new().unwrap();
            let mut outputs = vec![0.0f32; fashion::OUTPUTS[0].len()];
            for _ in 0..50 {
                let inputs = fashion::Inputs { image: &image };
                let mut outputs = fashion::Outputs { OUTPUT: &mut outputs };
                model.run(&inputs, &mut outputs).unwrap();
            }
            println!(\"{:?}\", outputs.iter().map(|o| o.to_bits()).collect::<Vec<_>>());
        }";
    let mut printed = Vec::new();
    for threads in 1..=3 {
        let target = format!("[[target]]\nname = \"cpu\"\nthreads = {threads}\n");
        sandbox.file("metainfer.toml", &format!("{config}{target}"));
        sandbox.metainfer("deploy --untuned --out out").code(0);
        assert_eq!(sandbox.path("out/src/pool.rs").exists(), threads > 1);
        let program = sandbox.read("out/src/program.rs");
        assert_eq!(program.contains("barrier.wait("), threads > 1);
        let library = sandbox.read("out/src/lib.rs");
        let output = library.split("pub struct Outputs").nth(1).unwrap();
        let output = output.split("pub ").nth(1).unwrap();
        let output = output.split(':').next().unwrap();
        sandbox.file(
            "out/examples/main.rs",
            &main.replace("OUTPUT:", &format!("{output}:")),
        );
        sandbox.file(
            "Cargo.toml",
            "[workspace]\nexclude = [\"out\"]\n[package]\nname = \"demo\"\nversion = \"0.1.0\"\n",
        );
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args([
            "run",
            "--quiet",
            "--offline",
            "--release",
            "--example",
            "main",
        ]);
        let ran = cargo.current_dir(sandbox.path("out")).output().unwrap();
        assert!(
            ran.status.success(),
            "{}",
            String::from_utf8_lossy(&ran.stderr)
        );
        printed.push(String::from_utf8(ran.stdout).unwrap());
    }
    assert!(printed[0].len() > 20, "{}", printed[0]);
    assert_eq!(printed, vec![printed[0].clone(); 3]);
}

#[test]
fn a_target_of_two_threads_is_adapted_checked_and_deployed_as_one() {
    let sandbox = Sandbox::with_tiny(&tiny::three());
    let config = |threads| {
        let target = format!("[[target]]\nname = \"cpu\"\nthreads = {threads}\n");
        sandbox.file(
            "metainfer.toml",
            &format!("model-dir = \"models\"\n{target}"),
        );
    };
    config(2);
    let run = sandbox.metainfer("adapt --max-evaluations 6");
    if probe::host().threads < 2 {
        assert_eq!(run.code, Some(101), "{}", run.stderr);
        return;
    }
    run.code(0);
    let text = sandbox.read("metainfer.lock");
    let deployment = lock::decode(&text)
        .unwrap()
        .deployments
        .into_values()
        .next();
    let deployment = deployment.unwrap();
    assert_eq!(deployment.threads, 2);
    // One of them may be faster alone.
    let is_alone = deployment.options.int("threads") == Some(1);
    let mut mappings = deployment.subgraphs.iter().map(|s| &s.candidate.mapping);
    assert!(mappings.all(|mapping| mapping.word("share").is_some()));
    let labels = sandbox.records().labels;
    assert!(!labels.is_empty());
    assert!(
        labels
            .iter()
            .all(|label| label.task.threads == 2 && label.outcome == Outcome::Ok)
    );

    sandbox.metainfer("check").code(0);
    sandbox.metainfer("deploy --out out").code(0);
    assert_eq!(sandbox.path("out/src/pool.rs").exists(), !is_alone);
    sandbox.metainfer("adapt").code(0);
    assert_eq!(sandbox.read("metainfer.lock"), text);
    config(1);
    let check = sandbox.metainfer("check").code(100);
    let expected = "stale `tiny` on `cpu`: `threads` changed from 2 to 1\n";
    assert_eq!(check.stdout, expected);
}

/// Adapts a model of one convolution to two threads, with kernels that have a fault, and returns the
/// messages of those that ended so.
fn failures(fault: Fault, expected: Outcome) -> Vec<String> {
    let mut tiny = Tiny::new(1);
    let only = tiny.conv("only", tiny.input(), Conv::new([8, 256], 1));
    let sandbox = Sandbox::with_tiny(&tiny.finish(only));
    // The default, two candidates, a composition, and one that is kept for a single thread.
    let mut request = sandbox.request(5);
    request.targets[0].threads = 2;
    request.timeouts.trial_timeout = Duration::from_secs(2);
    run(&request, fault, &Log::default()).unwrap();
    let labels = sandbox.records().labels;
    let failed = labels.into_iter().filter(|label| label.outcome == expected);
    failed.map(|label| label.message).collect()
}

#[test]
fn crashes_and_hangs_of_kernels_that_two_threads_run_are_labelled_and_the_run_goes_on() {
    let crashed = failures(Fault::Crash, Outcome::RunError);
    assert!(!crashed.is_empty());
    let all_say_so = crashed.iter().all(|message| message.contains("SIGSEGV"));
    assert!(all_say_so, "{crashed:?}");
    assert!(!failures(Fault::Hang, Outcome::RunTimeout).is_empty());
}
