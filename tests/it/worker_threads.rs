//! The worker process with libraries of several threads: right, crashing and hanging ones.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::fs;
use std::time::{Duration, Instant};

use metainfer::backend::Artifact;
use metainfer::cpu::allowed_cpus;
use metainfer::label::Outcome;
use metainfer::measure::{Worker, WorkerError, WorkerSpec};

use crate::worker::{CRASH, Fixture, HANG, LIMIT, RIGHT, is_alive, is_gone_soon, spec};

/// The model of the fixture: the first step is divided among the threads, the second one is for the
/// first thread. `n` is their number, and what they do to each element is to be filled in.
const SOURCE: &str = r#"
#![no_std]
mod barrier { BARRIER }
use barrier::Barrier;
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! { loop {} }
unsafe extern "C" { fn sched_yield() -> i32; }

#[cfg(target_arch = "x86_64")]
fn ticks() -> u64 { unsafe { core::arch::x86_64::_rdtsc() } }
#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 { 0 }

#[unsafe(no_mangle)]
pub unsafe extern "C" fn metainfer_steps(
    inputs: *const *const f32, outputs: *const *mut f32, arena: *mut f32, weights: *const f32,
    first: usize, last: usize, counter: *mut u64, thread: usize, barrier: *const Barrier,
) {
    unsafe {
        let n = N_THREADS;
        let wait = || (*barrier).wait(n, || { sched_yield(); });
        let (x, y) = (*inputs, *outputs);
        for step in first..last {
            if !counter.is_null() { *counter.add(step) = ticks(); }
            if step == 0 {
                for i in 4 * thread / n..4 * (thread + 1) / n { EACH }
            } else if thread == 0 {
                for i in 0..4 { *y.add(i) = *arena.add(i) + 1.0; }
            }
            wait();
        }
        if !counter.is_null() { *counter.add(last) = ticks(); }
    }
}
"#;

fn shared(fixture: &Fixture, name: &str, each: &str, threads: usize) -> Artifact {
    let barrier = include_str!("../../templates/threads/barrier.rs");
    // Inner comments are for the head of a file.
    let barrier = barrier.replace("//!", "//");
    let text = SOURCE.replace("BARRIER", &barrier);
    let text = text.replace("N_THREADS", &threads.to_string());
    fixture.build(name, &text.replace("EACH", each), threads)
}

/// Returns the processors that each thread of a process may use, as the system writes them.
fn cpus_of_threads(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let cpus = tasks.map(|task| {
        let status = fs::read_to_string(task.path().join("status")).unwrap();
        let mut lines = status.lines();
        let line = lines.find(|line| line.starts_with("Cpus_allowed_list"));
        line.unwrap().split_whitespace().last().unwrap().to_owned()
    });
    cpus.collect()
}

#[tokio::test]
async fn candidates_of_one_two_and_three_threads_are_verified_profiled_and_compared() {
    let fixture = Fixture::new();
    let mut worker = Worker::spawn(&spec()).unwrap();
    let artifacts = [
        fixture.artifact("one", RIGHT),
        shared(&fixture, "two", RIGHT, 2),
        shared(&fixture, "three", RIGHT, 3),
    ];
    for (slot, artifact) in (0..).zip(artifacts) {
        worker.load(slot, artifact, LIMIT).await.unwrap();
        let verified = worker.verify(slot, fixture.reference(), LIMIT).await;
        let verified = verified.unwrap();
        for check in verified.steps.iter().chain([&verified.run]) {
            assert!(check.compared && check.relative_l2.unwrap() < 1e-6);
        }
        let profile = worker.profile(slot, 3, 10, None, LIMIT).await.unwrap();
        assert!(profile.run_ns.iter().all(|&ns| ns > 0));
        assert!(profile.steps_ns.iter().all(|samples| samples.len() == 10));
    }
    let slots = vec![0, 1, 2];
    let slots_ns = worker.compare(slots, 2, 15, 1, LIMIT).await.unwrap();
    assert!(slots_ns.iter().all(|samples| samples.len() == 15));
}

#[tokio::test]
async fn an_element_that_no_thread_computes_is_seen() {
    let fixture = Fixture::new();
    let mut worker = Worker::spawn(&spec()).unwrap();
    let each = format!("if thread == 0 {{ {RIGHT} }}");
    let artifact = shared(&fixture, "half", &each, 2);
    worker.load(0, artifact, LIMIT).await.unwrap();
    let verified = worker.verify(0, fixture.reference(), LIMIT).await.unwrap();
    assert!(verified.steps[0].relative_l2.unwrap() > 0.1);
}

#[tokio::test]
async fn a_crash_of_any_thread_is_a_run_error() {
    let fixture = Fixture::new();
    for thread in [1, 2] {
        let mut worker = Worker::spawn(&spec()).unwrap();
        let pid = worker.pid().unwrap();
        let each = format!("if thread == {thread} {{ {CRASH} }}");
        let artifact = shared(&fixture, &format!("crash{thread}"), &each, 3);
        worker.load(0, artifact, LIMIT).await.unwrap();
        let error = worker.profile(0, 0, 1, None, LIMIT).await.unwrap_err();
        assert!(error.to_string().contains("SIGSEGV"), "{error}");
        assert_eq!(error.outcome(), Outcome::RunError);
        assert!(error.is_fatal() && !is_alive(pid));
    }
}

#[tokio::test]
async fn a_hang_of_another_thread_is_a_timeout_and_leaves_no_process() {
    let fixture = Fixture::new();
    let each = format!("if thread == 1 {{ {HANG} }}");
    let artifact = shared(&fixture, "hang", &each, 2);
    let mut worker = Worker::spawn(&spec()).unwrap();
    let pid = worker.pid().unwrap();
    worker.load(0, artifact.clone(), LIMIT).await.unwrap();
    let limit = Duration::from_millis(300);
    let start = Instant::now();
    let error = worker.profile(0, 0, 1, None, limit).await.unwrap_err();
    assert!(matches!(error, WorkerError::TimedOut { .. }), "{error}");
    assert_eq!(error.outcome(), Outcome::RunTimeout);
    assert!(start.elapsed() >= limit && !is_alive(pid));

    // Nor does one that nobody waits for any more.
    let mut worker = Worker::spawn(&spec()).unwrap();
    let pid = worker.pid().unwrap();
    worker.load(0, artifact, LIMIT).await.unwrap();
    let request = worker.profile(0, 0, 1, None, LIMIT);
    let dropped = tokio::time::timeout(Duration::from_millis(50), request).await;
    assert!(dropped.is_err());
    drop(worker);
    assert!(is_gone_soon(pid).await);
}

#[tokio::test]
async fn each_thread_stays_on_a_processor_of_its_own() {
    let fixture = Fixture::new();
    let cpus = allowed_cpus();
    let spec = WorkerSpec {
        cpu: cpus.last().copied(),
        ..spec()
    };
    let mut worker = Worker::spawn(&spec).unwrap();
    let artifact = shared(&fixture, "two", RIGHT, 2);
    worker.load(0, artifact, LIMIT).await.unwrap();
    worker.profile(0, 1, 1, None, LIMIT).await.unwrap();
    let used = cpus_of_threads(worker.pid().unwrap());
    // The one that reads requests, the one that runs, and the one that helps.
    assert_eq!(used.len(), 3);
    let last = cpus.last().unwrap().to_string();
    assert_eq!(
        used.iter().filter(|cpu| **cpu == last).count(),
        1 + usize::from(cpus.len() == 1)
    );
    if let [.., first, _] = cpus[..] {
        let is_single = |cpu: &&String| cpu.parse::<usize>().is_ok();
        assert_eq!(used.iter().filter(is_single).count(), 2, "{used:?} {first}");
    }
}

#[tokio::test]
async fn threads_that_cannot_be_started_are_a_lost_device_and_the_worker_goes_on() {
    let fixture = Fixture::new();
    let spec = WorkerSpec {
        memory_limit_bytes: Some(1 << 30),
        ..spec()
    };
    let mut worker = Worker::spawn(&spec).unwrap();
    let artifact = shared(&fixture, "two", RIGHT, 2);
    // Their stacks are more than the worker may have.
    let many = Artifact {
        threads: 2000,
        ..artifact.clone()
    };
    let error = worker.load(0, many, LIMIT).await.unwrap_err();
    assert!(
        error.to_string().contains("cannot start 2000 threads"),
        "{error}"
    );
    assert_eq!(error.outcome(), Outcome::DeviceLost);
    assert!(!error.is_fatal());
    worker.load(0, artifact, LIMIT).await.unwrap();
    worker.verify(0, fixture.reference(), LIMIT).await.unwrap();
}
