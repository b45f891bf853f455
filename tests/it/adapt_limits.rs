//! What a run may use of the disk and of memory, and what it says of it.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::fs;
use std::path::PathBuf;

use metainfer::lock;
use serde_json::Value;

use crate::support::tiny;
use crate::support::{Run, Sandbox};

/// Returns the objects of kernels that a workspace keeps.
fn objects(sandbox: &Sandbox) -> Vec<PathBuf> {
    let native = sandbox.path("target/metainfer/native");
    let dirs = fs::read_dir(native).unwrap().flatten();
    let files = dirs.flat_map(|dir| fs::read_dir(dir.path()).unwrap().flatten());
    let paths = files.map(|file| file.path());
    let is_object = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "o");
    paths.filter(is_object).collect()
}

/// Returns the messages of a run that have a reason.
fn messages(run: &Run, reason: &str) -> Vec<Value> {
    let messages = run.messages().into_iter();
    messages
        .filter(|message| message["reason"] == reason)
        .collect()
}

/// Returns whether a run says that it needs more than the budget of the disk.
fn warns(run: &Run) -> bool {
    let diagnostics = messages(run, "diagnostic").into_iter();
    diagnostics
        .filter(|message| message["code"] == "disk-budget")
        .count()
        > 0
}

#[test]
fn a_budget_of_the_disk_is_kept_and_costs_time_only() {
    let sandbox = Sandbox::with_tiny(&tiny::two());
    let run = sandbox.metainfer("adapt --max-evaluations 12 --max-disk 1KiB --message-format json");
    let run = run.code(0);
    lock::decode(&sandbox.read("metainfer.lock")).unwrap();
    assert_eq!(objects(&sandbox), [] as [PathBuf; 0]);
    assert!(warns(&run), "{}", run.stdout);
    let finished = &messages(&run, "adapt-finished")[0];
    assert_eq!(finished["max_disk_bytes"], 1024);
    assert!(finished["disk_bytes"].as_u64().unwrap() > 1024);

    // What is gone is made again.
    fs::remove_file(sandbox.path("metainfer.lock")).unwrap();
    let run = sandbox.metainfer("adapt --max-evaluations 12 --message-format json");
    let run = run.code(0);
    assert_ne!(objects(&sandbox), [] as [PathBuf; 0]);
    assert!(!warns(&run), "{}", run.stdout);
}

#[test]
fn messages_say_what_is_used_and_how_long_it_will_take() {
    let sandbox = Sandbox::with_tiny(&tiny::two());
    let run = sandbox.metainfer(
        "adapt --max-evaluations 12 --max-time 1h --max-disk 1GiB --message-format json",
    );
    let run = run.code(0);
    let evaluated = messages(&run, "evaluation-finished");
    assert!(evaluated.len() > 4, "{}", run.stdout);
    assert_eq!(evaluated[0]["time_left_ms"], Value::Null);
    let mut elapsed_ms = 0;
    for message in &evaluated {
        let now = message["elapsed_ms"].as_u64().unwrap();
        assert!(now >= elapsed_ms, "{message}");
        elapsed_ms = now;
        assert_eq!(message["max_time_ms"], 3_600_000);
        assert_eq!(message["max_compile_time_ms"], Value::Null);
        assert_eq!(message["max_disk_bytes"], 1 << 30);
    }
    let last = evaluated.last().unwrap();
    assert!(last["time_left_ms"].is_u64(), "{last}");
    assert!(last["compile_time_ms"].as_u64().unwrap() > 0, "{last}");
    let finished = &messages(&run, "adapt-finished")[0];
    assert!(finished["elapsed_ms"].as_u64().unwrap() >= elapsed_ms);
    let bytes = finished["disk_bytes"].as_u64().unwrap();
    assert!((1..1 << 30).contains(&bytes), "{finished}");
    assert!(finished["half_way_actual_ms"].is_u64(), "{finished}");

    let jobs = sandbox
        .metainfer("jobs --all --message-format json")
        .code(0);
    assert_eq!(messages(&jobs, "job")[0]["disk_bytes"], bytes);
}

#[test]
fn what_needs_more_memory_than_a_worker_may_use_names_the_key() {
    let mut sandbox = Sandbox::with_tiny(&tiny::two());
    sandbox.variable("CARGO_METAINFER_WORKER_MEMORY", "16 MiB");
    let run = sandbox.metainfer("adapt --max-evaluations 3").code(101);
    let key = "a worker may use 16 MiB, see `search.worker-memory`";
    assert!(run.stderr.contains(key), "{}", run.stderr);
    assert!(!sandbox.path("metainfer.lock").exists());
    sandbox
        .metainfer("adapt --max-evaluations 3 --worker-memory 4GiB")
        .code(0);
}

#[test]
fn developers_see_spans_and_events_if_they_ask_for_them() {
    let mut sandbox = Sandbox::with_tiny(&tiny::two());
    sandbox.variable("CARGO_METAINFER_LOG", "metainfer=debug");
    let run = sandbox.metainfer("adapt --max-evaluations 3").code(0);
    for text in [
        "adaptation{model=tiny target=cpu key=",
        "trial{artifact=",
        "compile started",
        "compile finished outcome=\"ok\"",
        "measure finished is_ok=true",
    ] {
        assert!(run.stderr.contains(text), "{text}: {}", run.stderr);
    }
    sandbox.variable("CARGO_METAINFER_LOG", "a=b=c");
    let run = sandbox.metainfer("adapt").code(2);
    assert!(
        run.stderr.contains("`CARGO_METAINFER_LOG` must be"),
        "{}",
        run.stderr
    );
    sandbox.variable("CARGO_METAINFER_LOG", "");
    let run = sandbox.metainfer("check").code(0);
    assert!(!run.stderr.contains("adaptation"), "{}", run.stderr);
}
