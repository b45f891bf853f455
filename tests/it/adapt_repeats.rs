//! Adapting again: what is searched when something changed, and that nothing is if nothing did.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use metainfer::lock::{self, Deployment};
use serde_json::Value;

use crate::support::Sandbox;
use crate::support::tiny::{self, Conv};

/// Adapts and returns the messages.
#[track_caller]
fn adapt(sandbox: &Sandbox, arguments: &str) -> Vec<Value> {
    let run = sandbox.metainfer(&format!("adapt --message-format json {arguments}"));
    run.code(0).messages()
}

/// Returns the first message with a reason.
#[track_caller]
fn message<'a>(messages: &'a [Value], reason: &str) -> &'a Value {
    let found = messages.iter().find(|message| message["reason"] == reason);
    found.unwrap_or_else(|| panic!("no {reason} in {messages:#?}"))
}

#[track_caller]
fn locked(sandbox: &Sandbox, model: &str) -> Deployment {
    let lockfile = lock::decode(&sandbox.read("metainfer.lock")).unwrap();
    let mut deployments = lockfile.deployments.into_iter();
    let found = deployments.find(|(key, _)| key.model == model);
    found.unwrap().1
}

/// Returns the keys of the lines that differ between two lockfiles.
fn changed_keys(old: &str, new: &str) -> Vec<String> {
    assert_eq!(old.lines().count(), new.lines().count());
    let pairs = old.lines().zip(new.lines());
    pairs
        .filter(|(old, new)| old != new)
        .map(|(old, _)| old.split(' ').next().unwrap().to_owned())
        .collect()
}

/// Returns size and time of last change of each file of a directory.
fn state(dir: &Path) -> BTreeMap<PathBuf, (u64, SystemTime)> {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    let state = entries.map(|entry| {
        let metadata = entry.metadata().unwrap();
        let modified = metadata.modified().unwrap();
        (entry.path(), (metadata.len(), modified))
    });
    state.collect()
}

/// Has the tool use a compiler that writes down how it is called.
fn log_compiler_calls(sandbox: &mut Sandbox) -> PathBuf {
    let (script, log) = (sandbox.path("rustc.sh"), sandbox.path("rustc.log"));
    let text = "echo \"$@\" >>\"$(dirname \"$0\")/rustc.log\"\nexec rustc \"$@\"";
    sandbox.script("rustc.sh", text);
    sandbox.variable("RUSTC", script.to_str().unwrap());
    log
}

#[test]
fn adapting_again_without_a_change_evaluates_compiles_and_writes_nothing() {
    let mut sandbox = Sandbox::with_tiny(&tiny::three());
    let log = log_compiler_calls(&mut sandbox);
    let first = adapt(&sandbox, "--max-evaluations 4");
    assert!(message(&first, "adapt-finished")["n_evaluations"].as_u64() >= Some(2));
    assert!(fs::read_to_string(&log).unwrap().contains("--crate-type"));
    let text = sandbox.read("metainfer.lock");
    let (labels, home) = (sandbox.records(), state(&sandbox.home()));
    let built = state(&sandbox.path("target/metainfer/native"));
    fs::remove_file(&log).unwrap();

    let again = adapt(&sandbox, "--max-evaluations 4");
    let finished = message(&again, "adapt-finished");
    assert_eq!(finished["n_evaluations"], 0);
    assert_eq!(finished["lock_changed"], false);
    assert!(again.iter().all(|m| m["reason"] != "adapt-started"));
    assert_eq!(sandbox.read("metainfer.lock"), text);
    assert_eq!(state(&sandbox.home()), home);
    assert_eq!(sandbox.records(), labels);
    assert_eq!(state(&sandbox.path("target/metainfer/native")), built);
    let calls = fs::read_to_string(&log).unwrap();
    assert!(calls.lines().all(|call| call == "-vV"), "{calls}");
}

#[test]
fn one_changed_attribute_searches_the_subgraph_that_contains_it() {
    let middle = Conv::new([16, 8], 3);
    let sandbox = Sandbox::with_tiny(&tiny::three_with(middle, 1));
    adapt(&sandbox, "--max-evaluations 4");
    let (old, before) = (locked(&sandbox, "tiny"), sandbox.records().n_candidates());

    sandbox.model("models/tiny.onnx", &tiny::three_with(middle.dilated(2), 1));
    let messages = adapt(&sandbox, "--max-evaluations 4");
    let started = message(&messages, "adapt-started");
    assert_eq!(started["n_tasks"], 3);
    assert_eq!(started["n_reused_tasks"], 2);
    let (new, after) = (locked(&sandbox, "tiny"), sandbox.records().n_candidates());
    let changed = new.subgraphs[1].structure;
    assert_eq!(old.subgraphs[0].structure, new.subgraphs[0].structure);
    assert_ne!(old.subgraphs[1].structure, changed);
    assert_eq!(old.subgraphs[2].structure, new.subgraphs[2].structure);
    assert_eq!(before.get(&changed), None);
    assert!(after[&changed] >= 3, "{after:?}");
    for subgraph in [&new.subgraphs[0], &new.subgraphs[2]] {
        let structure = subgraph.structure;
        assert_eq!(before[&structure], after[&structure], "{}", subgraph.op);
    }
}

#[test]
fn other_names_and_another_node_order_change_the_digest_of_the_file_only() {
    let graph = tiny::branches();
    let sandbox = Sandbox::with_tiny(&graph);
    adapt(&sandbox, "--max-evaluations 3");
    let (text, labels) = (sandbox.read("metainfer.lock"), sandbox.records());

    let mut other = tiny::renamed(graph);
    let ops: Vec<&str> = other.nodes.iter().map(|node| node.op.as_str()).collect();
    assert_eq!(ops, ["Conv", "Relu", "Conv", "Relu", "Add", "Conv"]);
    other.nodes[..4].rotate_left(2);
    sandbox.model("models/tiny.onnx", &other);
    let messages = adapt(&sandbox, "");
    assert_eq!(message(&messages, "adapt-finished")["n_evaluations"], 0);
    assert_eq!(sandbox.records(), labels);
    let new = sandbox.read("metainfer.lock");
    assert_eq!(changed_keys(&text, &new), ["file"]);
    adapt(&sandbox, "--locked");
    assert_eq!(sandbox.read("metainfer.lock"), new);
}

#[test]
fn retrained_weights_are_checked_and_not_measured() {
    let middle = Conv::new([16, 8], 1);
    let sandbox = Sandbox::with_tiny(&tiny::three_with(middle, 1));
    adapt(&sandbox, "--max-evaluations 3");
    let (text, labels) = (sandbox.read("metainfer.lock"), sandbox.records());
    let old = locked(&sandbox, "tiny");

    sandbox.model("models/tiny.onnx", &tiny::three_with(middle, 2));
    let messages = adapt(&sandbox, "");
    let finished = message(&messages, "adapt-finished");
    assert_eq!(finished["n_evaluations"], 0);
    assert_eq!(finished["lock_changed"], true);
    assert_eq!(sandbox.records(), labels);
    let new = locked(&sandbox, "tiny");
    assert_ne!(old.content, new.content);
    assert!(new.divergence.get() > 0.0 && new.divergence.get() < 1e-4);
    let mut keys = changed_keys(&text, &sandbox.read("metainfer.lock"));
    keys.retain(|key| key != "divergence");
    assert_eq!(keys, ["file", "content"]);
}

#[test]
fn what_another_model_has_tuned_is_not_searched_again() {
    let sandbox = Sandbox::with_tiny(&tiny::three());
    adapt(&sandbox, "--max-evaluations 3");
    // The other model consists of the first two convolutions.
    let mut graph = tiny::Tiny::new(5);
    let a = graph.conv("p", graph.input(), Conv::new([8, 16], 3).relu());
    let b = graph.conv("q", a, Conv::new([16, 8], 1));
    sandbox.model("models/other.onnx", &graph.finish(b));
    let messages = adapt(&sandbox, "--model other --max-evaluations 6");
    let started = message(&messages, "adapt-started");
    assert_eq!(started["n_tasks"], 2);
    assert_eq!(started["n_reused_tasks"], 2);
    // The default, what is locked, and compositions of what is known: nothing is proposed.
    let other = locked(&sandbox, "other");
    for subgraph in &other.subgraphs {
        let labels = sandbox.records().labels;
        let of_task = |structure| move |l: &&metainfer::label::Label| l.task.structure == structure;
        let known = labels.iter().filter(of_task(subgraph.structure));
        assert!(known.clone().any(|l| l.candidate == subgraph.candidate));
        assert!(known.count() >= 3);
    }
    assert!(locked(&sandbox, "tiny").evaluations <= 3);
}

#[test]
fn dry_run_says_what_would_be_searched_and_measures_nothing() {
    let sandbox = Sandbox::with_tiny(&tiny::three());
    let run = sandbox
        .metainfer("adapt --dry-run --max-evaluations 7")
        .code(0);
    assert!(
        run.stderr
            .contains("`tiny` to `cpu`: 3 subgraphs in 3 tasks"),
        "{}",
        run.stderr
    );
    assert!(!sandbox.path("metainfer.lock").exists());
    assert!(!sandbox.home().join("labels.sqlite").exists());
    let messages = adapt(&sandbox, "--dry-run");
    assert_eq!(message(&messages, "adapt-started")["n_reused_tasks"], 0);
    assert!(messages.iter().all(|m| m["reason"] != "adapt-finished"));
}

#[test]
fn what_is_no_longer_in_the_project_is_removed_from_the_lock() {
    let sandbox = Sandbox::with_tiny(&tiny::two());
    adapt(&sandbox, "--max-evaluations 1");
    fs::remove_file(sandbox.path("models/tiny.onnx")).unwrap();
    sandbox.model("models/other.onnx", &tiny::two());
    let run = sandbox.metainfer("adapt --locked").code(101);
    assert!(run.stderr.contains("is stale"), "{}", run.stderr);

    // A selection says nothing of what is not in it.
    adapt(&sandbox, "--model other --max-evaluations 1");
    locked(&sandbox, "tiny");
    let run = sandbox.metainfer("check").code(100);
    assert!(run.stdout.contains("not in the project"), "{}", run.stdout);
    let run = sandbox.metainfer("adapt --locked").code(101);
    let orphan = "the lock of model `tiny` on target `cpu` is stale: locked, but not";
    assert!(run.stderr.contains(orphan), "{}", run.stderr);
    locked(&sandbox, "tiny");

    let messages = adapt(&sandbox, "");
    let removed = message(&messages, "deployment-removed");
    assert_eq!(removed["model"], "tiny");
    assert_eq!(message(&messages, "adapt-finished")["n_evaluations"], 0);
    sandbox.metainfer("check").code(0);
    let lockfile = lock::decode(&sandbox.read("metainfer.lock")).unwrap();
    assert_eq!(lockfile.deployments.len(), 1);
    locked(&sandbox, "other");
}
