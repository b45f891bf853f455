//! The worker process with real libraries: good, wrong, crashing, hanging and slow ones.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use metainfer::backend::{Artifact, IoSpec, Place, StepSpec, TraceSpec, View};
use metainfer::digest::Digest;
use metainfer::graph::{DType, Shape};
use metainfer::label::Outcome;
use metainfer::measure::{Worker, WorkerError, WorkerSpec};
use safetensors::tensor::{Dtype, TensorView, serialize};

/// Plenty, also on a busy machine; only the tests of hanging candidates wait for a limit.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

/// Wrong by 3 %.
const WRONG: &str = "*arena.add(i) = 2.06 * *x.add(i) + *weights.add(i);";
pub(crate) const RIGHT: &str = "*arena.add(i) = 2.0 * *x.add(i) + *weights.add(i);";
pub(crate) const CRASH: &str = "core::ptr::null_mut::<f32>().add(i).write_volatile(1.0);";
const ILLEGAL: &str = "if i == 0 { core::arch::asm!(\"ud2\"); }";
pub(crate) const HANG: &str = "loop { core::hint::spin_loop(); }";
const NAN: &str = "*arena.add(i) = f32::NAN;";
/// Right the first time only: leaves something behind for the next run.
const STATEFUL: &str = "*arena.add(4 + i) += 1.0; \
    *arena.add(i) = 2.0 * *x.add(i) + *weights.add(i) + *arena.add(4 + i) - 1.0;";
/// Right as long as what the first run left in the arena is still there.
const REMEMBERING: &str = "use core::sync::atomic::{AtomicBool, Ordering}; \
    static STARTED: AtomicBool = AtomicBool::new(false); \
    if i == 0 && !STARTED.swap(true, Ordering::Relaxed) { *arena.add(4) = 7.0; } \
    let kept = if *arena.add(4) == 7.0 { 0.0 } else { f32::NAN }; \
    *arena.add(i) = 2.0 * *x.add(i) + *weights.add(i) + kept;";
const SLOW: &str = "*arena.add(i) = 2.0 * *x.add(i) + *weights.add(i); \
    let mut n = 0_u32; while n < 2_000_000 { n = core::hint::black_box(n + 1); }";

/// A model of two steps: `h = 2·x + w` and `y = h + 1`, on four numbers, as compiled code whose
/// first step is as given.
pub(crate) struct Fixture {
    dir: tempfile::TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let weights = bytes(&[10.0, 20.0, 30.0, 40.0]);
        fs::File::create_new(dir.path().join("weights")).unwrap();
        write(&dir.path().join("weights"), &weights);
        let fixture = Self { dir };
        fixture.write_reference(&[("x", X), ("h", H), ("y", Y)]);
        fixture
    }

    pub(crate) fn reference(&self) -> PathBuf {
        self.dir.path().join("reference.safetensors")
    }

    /// Makes a file of so many zeros that takes no room on the disk.
    fn sparse(&self, name: &str, n_bytes: u64) -> PathBuf {
        let path = self.dir.path().join(name);
        let file = fs::File::create_new(&path).unwrap();
        file.set_len(n_bytes).unwrap();
        path
    }

    fn write_reference(&self, values: &[(&str, [f32; 4])]) {
        let values: Vec<_> = values.iter().map(|(name, v)| (*name, bytes(v))).collect();
        let views = values.iter().map(|(name, bytes)| {
            let view = TensorView::new(Dtype::F32, vec![1, 4], bytes).unwrap();
            (*name, view)
        });
        write(&self.reference(), &serialize(views, None).unwrap());
    }

    pub(crate) fn artifact(&self, name: &str, first_step: &str) -> Artifact {
        self.build(name, &SOURCE.replace("FIRST_STEP", first_step), 1)
    }

    /// Compiles the model for some threads.
    pub(crate) fn build(&self, name: &str, text: &str, threads: usize) -> Artifact {
        let source = self.dir.path().join(format!("{name}.rs"));
        let library = self.dir.path().join(format!("lib{name}.so"));
        write(&source, text.as_bytes());
        let output = Command::new("rustc")
            .args(["--edition", "2024", "--crate-type", "cdylib", "-O"])
            .args(["-C", "panic=abort", "-o"])
            .args([&library, &source])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let io = |name: &str| IoSpec {
            name: name.to_owned(),
            dtype: DType::F32,
            shape: Shape(vec![1, 4]),
        };
        let step = |value: &str, place| StepSpec {
            name: value.to_owned(),
            subgraph: Some(0),
            conversion: None,
            traces: vec![TraceSpec {
                value: value.to_owned(),
                place,
                dtype: DType::F32,
                view: FLAT,
            }],
        };
        Artifact {
            digest: Digest::of_bytes("metainfer test v1", text.as_bytes()),
            library,
            weights: self.dir.path().join("weights"),
            arena_bytes: 32,
            threads,
            fills: Vec::new(),
            resolutions: Vec::new(),
            inputs: vec![io("x")],
            outputs: vec![io("y")],
            steps: vec![step("h", Place::Arena), step("y", Place::Output(0))],
            compile_ns: 0,
        }
    }
}

const X: [f32; 4] = [1.0, 2.0, 3.0, 4.0];
const H: [f32; 4] = [12.0, 24.0, 36.0, 48.0];
const Y: [f32; 4] = [13.0, 25.0, 37.0, 49.0];

const FLAT: View = View::dense(4);

const SOURCE: &str = r#"
#![no_std]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! { loop {} }

#[cfg(target_arch = "x86_64")]
fn ticks() -> u64 { unsafe { core::arch::x86_64::_rdtsc() } }
#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 { 0 }

#[unsafe(no_mangle)]
pub unsafe extern "C" fn metainfer_steps(
    inputs: *const *const f32, outputs: *const *mut f32, arena: *mut f32, weights: *const f32,
    first: usize, last: usize, counter: *mut u64,
) {
    unsafe {
        let (x, y) = (*inputs, *outputs);
        for step in first..last {
            if !counter.is_null() { *counter.add(step) = ticks(); }
            for i in 0..4 {
                if step == 0 { FIRST_STEP } else { *y.add(i) = *arena.add(i) + 1.0; }
            }
        }
        if !counter.is_null() { *counter.add(last) = ticks(); }
    }
}
"#;

fn bytes(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

fn write(path: &Path, bytes: &[u8]) {
    use std::io::Write;

    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
        .unwrap();
    file.write_all(bytes).unwrap();
}

pub(crate) fn spec() -> WorkerSpec {
    WorkerSpec {
        command: env!("CARGO_BIN_EXE_cargo-metainfer").into(),
        args: vec!["metainfer".into(), "worker".into()],
        cpu: None,
        memory_limit_bytes: None,
    }
}

pub(crate) fn worker() -> Worker {
    Worker::spawn(&spec()).unwrap()
}

/// Returns whether a process exists that has not ended.
pub(crate) fn is_alive(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    !stat.contains(") Z ")
}

pub(crate) async fn is_gone_soon(pid: u32) -> bool {
    let start = Instant::now();
    while is_alive(pid) && start.elapsed() < LIMIT {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    !is_alive(pid)
}

#[tokio::test]
async fn a_right_candidate_is_verified_profiled_and_compared() {
    let fixture = Fixture::new();
    let mut worker = worker();
    let artifact = fixture.artifact("right", RIGHT);
    worker.load(0, artifact.clone(), LIMIT).await.unwrap();
    let verified = worker.verify(0, fixture.reference(), LIMIT).await.unwrap();
    for check in verified.steps.iter().chain([&verified.run]) {
        assert!(check.compared);
        assert!(check.relative_l2.unwrap() < 1e-6);
    }
    assert_eq!(verified.steps.len(), 2);

    let profile = worker.profile(0, 3, 10, None, LIMIT).await.unwrap();
    assert!(!profile.gave_up);
    assert_eq!(profile.run_ns.len(), 10);
    assert_eq!(profile.steps_ns.len(), 2);
    assert!(profile.steps_ns.iter().all(|samples| samples.len() == 10));
    assert!(profile.run_ns.iter().all(|&ns| ns > 0));

    // The same library may be in two slots, with memory of its own each.
    worker.load(7, artifact, LIMIT).await.unwrap();
    let slots_ns = worker.compare(vec![7, 0], 2, 15, 1, LIMIT).await.unwrap();
    assert_eq!(slots_ns.iter().map(Vec::len).collect::<Vec<_>>(), [15, 15]);
}

#[tokio::test]
async fn the_slower_of_two_steps_and_of_two_candidates_is_seen() {
    let fixture = Fixture::new();
    let mut worker = worker();
    worker
        .load(0, fixture.artifact("right", RIGHT), LIMIT)
        .await
        .unwrap();
    worker
        .load(1, fixture.artifact("slow", SLOW), LIMIT)
        .await
        .unwrap();
    let profile = worker.profile(1, 1, 5, None, LIMIT).await.unwrap();
    for sample in 0..5 {
        let (slow_ns, fast_ns) = (profile.steps_ns[0][sample], profile.steps_ns[1][sample]);
        assert!(slow_ns > 10 * fast_ns, "{profile:?}");
        // Both clocks show the same unit: no processor counts 8 000 000 iterations in 0.1 ms, and
        // none spends less wall time than processor time on them.
        assert!(
            slow_ns > 100_000 && slow_ns * 2 > profile.run_ns[sample],
            "{profile:?}"
        );
    }
    let slots_ns = worker.compare(vec![0, 1], 0, 20, 1, LIMIT).await.unwrap();
    let comparison = metainfer::measure::stats::compare(&slots_ns[1], &slots_ns[0], 1).unwrap();
    assert!(comparison.is_faster(0.03), "{comparison:?}");
}

#[tokio::test]
async fn a_slow_candidate_is_given_up_early() {
    let fixture = Fixture::new();
    let mut worker = worker();
    worker
        .load(0, fixture.artifact("slow", SLOW), LIMIT)
        .await
        .unwrap();
    let profile = worker
        .profile(0, 50, 1000, Some(1000), LIMIT)
        .await
        .unwrap();
    assert!(profile.gave_up);
    assert_eq!(profile.run_ns.len(), 3);
    assert!(profile.run_ns.iter().all(|&ns| ns > 1000));
    assert!(profile.steps_ns.iter().all(|samples| samples.len() == 3));
}

#[tokio::test]
async fn a_wrong_step_is_blamed_and_the_next_one_is_not() {
    let fixture = Fixture::new();
    let mut worker = worker();
    worker
        .load(0, fixture.artifact("wrong", WRONG), LIMIT)
        .await
        .unwrap();
    let verified = worker.verify(0, fixture.reference(), LIMIT).await.unwrap();
    let [first, second] = verified.steps[..] else {
        panic!("two steps: {verified:?}");
    };
    let expected = (0.06_f64 * 0.06 * 30.0 / (144.0 + 576.0 + 1296.0 + 2304.0)).sqrt();
    assert!(
        (first.relative_l2.unwrap() - expected).abs() < 1e-6,
        "{first:?}"
    );
    assert!(second.relative_l2.unwrap() < 1e-6);
    assert!(verified.run.relative_l2.unwrap() > 1e-3);
}

#[tokio::test]
async fn numbers_that_are_none_are_no_distance() {
    let fixture = Fixture::new();
    let mut worker = worker();
    worker
        .load(0, fixture.artifact("nan", NAN), LIMIT)
        .await
        .unwrap();
    let verified = worker.verify(0, fixture.reference(), LIMIT).await.unwrap();
    assert_eq!(verified.steps[0].relative_l2, None);
    assert!(verified.steps[1].relative_l2.unwrap() < 1e-6);
    assert_eq!(verified.run.relative_l2, None);
}

#[tokio::test]
async fn a_run_that_disturbs_the_next_one_is_seen() {
    let fixture = Fixture::new();
    let mut worker = worker();
    worker
        .load(0, fixture.artifact("stateful", STATEFUL), LIMIT)
        .await
        .unwrap();
    let verified = worker.verify(0, fixture.reference(), LIMIT).await.unwrap();
    assert!(
        verified
            .steps
            .iter()
            .all(|check| check.relative_l2.unwrap() < 1e-6)
    );
    assert!(verified.run.relative_l2.unwrap() > 1e-3);
}

#[tokio::test]
async fn memory_that_moves_keeps_its_content() {
    let fixture = Fixture::new();
    let mut worker = worker();
    let artifact = fixture.artifact("remembering", REMEMBERING);
    worker.load(0, artifact, LIMIT).await.unwrap();
    worker.profile(0, 1, 10, None, LIMIT).await.unwrap();
    worker.compare(vec![0], 0, 10, 0, LIMIT).await.unwrap();
    let verified = worker.verify(0, fixture.reference(), LIMIT).await.unwrap();
    for check in verified.steps.iter().chain([&verified.run]) {
        assert!(check.relative_l2.unwrap() < 1e-6, "{verified:?}");
    }
}

#[tokio::test]
async fn a_crash_is_a_run_error_and_another_worker_goes_on() {
    let fixture = Fixture::new();
    for (name, step, signal) in [("crash", CRASH, "SIGSEGV"), ("illegal", ILLEGAL, "SIGILL")] {
        let mut worker = worker();
        let pid = worker.pid().unwrap();
        worker
            .load(0, fixture.artifact(name, step), LIMIT)
            .await
            .unwrap();
        let error = worker.profile(0, 0, 1, None, LIMIT).await.unwrap_err();
        assert!(error.to_string().contains(signal), "{error}");
        assert_eq!(error.outcome(), Outcome::RunError);
        assert!(error.is_fatal() && !is_alive(pid));
        let error = worker.profile(0, 0, 1, None, LIMIT).await.unwrap_err();
        assert!(matches!(error, WorkerError::Gone));
    }
    let mut worker = worker();
    worker
        .load(0, fixture.artifact("right", RIGHT), LIMIT)
        .await
        .unwrap();
    worker.profile(0, 0, 1, None, LIMIT).await.unwrap();
}

#[tokio::test]
async fn a_hang_is_a_timeout_and_leaves_no_process() {
    let fixture = Fixture::new();
    let mut worker = worker();
    let pid = worker.pid().unwrap();
    worker
        .load(0, fixture.artifact("hang", HANG), LIMIT)
        .await
        .unwrap();
    let limit = Duration::from_millis(300);
    let start = Instant::now();
    let error = worker.profile(0, 0, 1, None, limit).await.unwrap_err();
    assert!(matches!(error, WorkerError::TimedOut { .. }), "{error}");
    assert_eq!(error.outcome(), Outcome::RunTimeout);
    assert!(start.elapsed() >= limit && start.elapsed() < LIMIT);
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn a_dropped_request_or_worker_leaves_no_process() {
    let fixture = Fixture::new();
    let artifact = fixture.artifact("hang", HANG);
    let mut worker = worker();
    let pid = worker.pid().unwrap();
    worker.load(0, artifact.clone(), LIMIT).await.unwrap();
    let request = worker.profile(0, 0, 1, None, LIMIT);
    let dropped = tokio::time::timeout(Duration::from_millis(50), request).await;
    assert!(dropped.is_err());
    // The answer of the dropped request must not be taken for that of the next one.
    let error = worker.profile(0, 0, 1, None, LIMIT).await.unwrap_err();
    assert!(matches!(error, WorkerError::Gone));
    assert!(!is_alive(pid));

    let mut worker = self::worker();
    let pid = worker.pid().unwrap();
    worker.load(0, artifact, LIMIT).await.unwrap();
    let request = worker.profile(0, 0, 1, None, LIMIT);
    assert!(
        tokio::time::timeout(Duration::from_millis(50), request)
            .await
            .is_err()
    );
    drop(worker);
    assert!(is_gone_soon(pid).await);
}

#[tokio::test]
async fn a_hanging_worker_ends_when_its_tool_is_gone() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::Stdio;

    let fixture = Fixture::new();
    let load = metainfer::measure::protocol::Request::Load {
        slot: 0,
        artifact: Box::new(fixture.artifact("hang", HANG)),
    };
    let profile = r#"{"request":"profile","slot":0,"warmup":0,"repeats":1,"give_up_ns":null}"#;
    let mut child = Command::new(env!("CARGO_BIN_EXE_cargo-metainfer"))
        .args(["metainfer", "worker"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut requests = child.stdin.take().unwrap();
    writeln!(requests, "{}", serde_json::to_string(&load).unwrap()).unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("loaded"), "{line}");
    writeln!(requests, "{profile}").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert!(child.try_wait().unwrap().is_none());
    // What the system does to the pipe when the tool ends, however it ends.
    drop(requests);
    assert!(child.wait().unwrap().success());
}

#[tokio::test]
async fn a_worker_that_was_killed_is_a_lost_device() {
    let mut worker = worker();
    let pid = worker.pid().unwrap();
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.unwrap().success());
    let error = worker.profile(0, 0, 1, None, LIMIT).await.unwrap_err();
    assert!(matches!(error, WorkerError::Crashed { .. }), "{error}");
    assert_eq!(error.outcome(), Outcome::DeviceLost);
}

#[tokio::test]
async fn more_memory_than_allowed_is_out_of_memory_and_the_worker_goes_on() {
    let fixture = Fixture::new();
    let mut worker = Worker::spawn(&WorkerSpec {
        memory_limit_bytes: Some(1 << 30),
        ..spec()
    })
    .unwrap();
    let right = fixture.artifact("right", RIGHT);
    let mut large = right.clone();
    large.arena_bytes = 1 << 31;
    let error = worker.load(0, large.clone(), LIMIT).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::OutOfMemory);
    assert_eq!(
        error.to_string(),
        "cannot allocate 2147483648 bytes; a worker may use 1 GiB, see `search.worker-memory`"
    );
    assert!(!error.is_fatal(), "{error}");
    large.arena_bytes = usize::MAX;
    let error = worker.load(0, large, LIMIT).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::OutOfMemory);
    // Weights are read before there is a place for them.
    let mut heavy = right.clone();
    heavy.weights = fixture.sparse("heavy.bin", 1 << 31);
    let error = worker.load(0, heavy, LIMIT).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::OutOfMemory, "{error}");
    worker.load(0, right, LIMIT).await.unwrap();
    worker.verify(0, fixture.reference(), LIMIT).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_loaded_is_refused_by_name() {
    let fixture = Fixture::new();
    let mut worker = worker();
    let right = fixture.artifact("right", RIGHT);
    let check = async |worker: &mut Worker, artifact: Artifact, outcome: Outcome, text: &str| {
        let error = worker.load(0, artifact, LIMIT).await.unwrap_err();
        assert_eq!(error.outcome(), outcome);
        assert!(error.to_string().contains(text), "{error}");
        assert!(!error.is_fatal());
    };

    let mut odd = right.clone();
    odd.library = fixture.dir.path().join("none.so");
    check(&mut worker, odd, Outcome::RunError, "none.so").await;
    let mut odd = right.clone();
    odd.library = odd.weights.clone();
    check(&mut worker, odd, Outcome::RunError, "weights").await;
    let mut odd = right.clone();
    odd.weights = fixture.dir.path().join("no-weights");
    check(&mut worker, odd, Outcome::DeviceLost, "no-weights").await;
    let mut odd = right.clone();
    odd.steps[0].traces[0].view.offset = 5;
    check(&mut worker, odd, Outcome::RunError, "`h`").await;
    let mut odd = right;
    odd.steps[1].traces[0].place = Place::Output(1);
    check(&mut worker, odd, Outcome::RunError, "`y`").await;

    let error = worker.profile(0, 0, 1, None, LIMIT).await.unwrap_err();
    assert!(error.to_string().contains("slot 0"), "{error}");
}

#[tokio::test]
async fn a_reference_that_does_not_fit_is_refused_by_name_and_read_again_when_it_changed() {
    let fixture = Fixture::new();
    let mut worker = worker();
    worker
        .load(0, fixture.artifact("right", RIGHT), LIMIT)
        .await
        .unwrap();
    fixture.write_reference(&[("x", X), ("y", Y)]);
    let error = worker
        .verify(0, fixture.reference(), LIMIT)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("no value `h`"), "{error}");
    assert_eq!(error.outcome(), Outcome::DeviceLost);
    write(&fixture.reference(), b"no safetensors");
    let error = worker
        .verify(0, fixture.reference(), LIMIT)
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("reference.safetensors"),
        "{error}"
    );
    fixture.write_reference(&[("x", X), ("h", H), ("y", [0.0; 4])]);
    let verified = worker.verify(0, fixture.reference(), LIMIT).await.unwrap();
    assert!(verified.steps[0].relative_l2.unwrap() < 1e-6);
    // Where the reference is zero, the distance is that to zero.
    assert!(verified.steps[1].relative_l2.unwrap() > 10.0);
}

#[tokio::test]
async fn a_worker_stays_on_its_processor_and_says_if_it_cannot() {
    let cpus = metainfer::cpu::allowed_cpus();
    let cpu = *cpus.last().unwrap();
    let mut worker = Worker::spawn(&WorkerSpec {
        cpu: Some(cpu),
        ..spec()
    })
    .unwrap();
    // An answer shows that it has started.
    assert!(worker.profile(0, 0, 1, None, LIMIT).await.is_err());
    let status = fs::read_to_string(format!("/proc/{}/status", worker.pid().unwrap())).unwrap();
    let allowed = status
        .lines()
        .find(|line| line.starts_with("Cpus_allowed_list"));
    assert_eq!(
        allowed.unwrap().split_whitespace().last().unwrap(),
        cpu.to_string()
    );

    let mut worker = Worker::spawn(&WorkerSpec {
        cpu: Some(100_000),
        ..spec()
    })
    .unwrap();
    let error = worker.profile(0, 0, 1, None, LIMIT).await.unwrap_err();
    assert!(
        error.message().contains("cannot stay on processor 100000"),
        "{}",
        error.message()
    );
    assert_eq!(error.outcome(), Outcome::DeviceLost);
}

#[tokio::test]
async fn a_program_that_is_missing_or_no_worker_is_told_apart() {
    let missing = WorkerSpec {
        command: "/nonexistent/worker".into(),
        ..spec()
    };
    let error = Worker::spawn(&missing).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/worker"));
    let shell = |script: &str| WorkerSpec {
        command: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        ..spec()
    };
    let mut worker = Worker::spawn(&shell("read request; echo hello")).unwrap();
    let error = worker.profile(0, 0, 1, None, LIMIT).await.unwrap_err();
    assert!(matches!(error, WorkerError::Protocol { .. }), "{error}");
    assert_eq!(error.outcome(), Outcome::RunError);
    let mut worker = Worker::spawn(&shell("echo no luck >&2; exit 3")).unwrap();
    let error = worker.profile(0, 0, 1, None, LIMIT).await.unwrap_err();
    assert!(
        error.message().contains("exit status: 3\nno luck"),
        "{}",
        error.message()
    );
    assert_eq!(error.outcome(), Outcome::DeviceLost);
}

#[tokio::test]
async fn a_run_on_given_inputs_writes_outputs_as_they_are_typed() {
    let fixture = Fixture::new();
    let mut worker = worker();
    let mut artifact = fixture.artifact("right", RIGHT);
    // Four numbers of f32 are as many bytes as these.
    artifact.steps[1].traces.clear();
    let outputs = fixture.dir.path().join("outputs.safetensors");
    for (dtype, name, len) in [
        (DType::F32, Dtype::F32, 4),
        (DType::F16, Dtype::F16, 8),
        (DType::I64, Dtype::I64, 2),
        (DType::U8, Dtype::U8, 16),
        (DType::Bool, Dtype::BOOL, 16),
    ] {
        artifact.outputs[0].dtype = dtype;
        artifact.outputs[0].shape = Shape(vec![len, 1]);
        worker.load(0, artifact.clone(), LIMIT).await.unwrap();
        worker
            .run(0, fixture.reference(), outputs.clone(), LIMIT)
            .await
            .unwrap();
        let written = fs::read(&outputs).unwrap();
        let tensors = safetensors::SafeTensors::deserialize(&written).unwrap();
        assert_eq!(tensors.names(), ["y"]);
        let y = tensors.tensor("y").unwrap();
        assert_eq!((y.dtype(), y.shape()), (name, &[len, 1][..]));
        assert_eq!(y.data(), bytes(&Y));
    }
}

#[tokio::test]
async fn a_run_shows_what_it_leaves_unwritten_and_refuses_other_inputs() {
    let fixture = Fixture::new();
    let mut worker = worker();
    let mut artifact = fixture.artifact("right", RIGHT);
    artifact.outputs[0].shape = Shape(vec![1, 5]);
    let outputs = fixture.dir.path().join("outputs.safetensors");
    worker.load(0, artifact.clone(), LIMIT).await.unwrap();
    worker
        .run(0, fixture.reference(), outputs.clone(), LIMIT)
        .await
        .unwrap();
    let written = fs::read(&outputs).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&written).unwrap();
    let data = tensors.tensor("y").unwrap().data();
    assert_eq!(data[..16], bytes(&Y));
    assert!(f32::from_le_bytes(data[16..].try_into().unwrap()).is_nan());

    artifact.inputs[0].name = "z".to_owned();
    worker.load(0, artifact, LIMIT).await.unwrap();
    let refused = worker.run(0, fixture.reference(), outputs, LIMIT).await;
    let error = refused.unwrap_err();
    assert!(
        !error.is_fatal() && error.to_string().contains("`z`"),
        "{error}"
    );
}
