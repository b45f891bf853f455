//! Replaying runs from their journals.

use std::fs;

use crate::support::Sandbox;
use crate::support::tiny;

const JOURNAL: &str = "target/metainfer/journals/tiny@cpu.journal";
const REPLAY: &str = "adapt --replay --max-evaluations 1";

/// Returns the text of a journal of some evaluations.
fn adapted(sandbox: &Sandbox) -> String {
    sandbox
        .metainfer("adapt --max-evaluations 12 --seed 3")
        .code(0);
    sandbox.read(JOURNAL)
}

#[test]
fn replay_decides_the_same_without_a_device_a_compiler_or_a_store() {
    let sandbox = Sandbox::with_tiny(&tiny::two());
    adapted(&sandbox);
    let lock = sandbox.read("metainfer.lock");
    fs::remove_dir_all(sandbox.home()).unwrap();
    fs::remove_dir_all(sandbox.path("target/metainfer/native")).unwrap();
    // The settings are those of the run, and not of the command line.
    let run = sandbox.metainfer(&format!("{REPLAY} --message-format json"));
    let messages = run.code(0).messages();
    let replayed = messages.iter().find(|m| m["reason"] == "replayed").unwrap();
    assert_eq!(replayed["n_evaluations"], 12);
    assert_eq!(replayed["is_complete"], true);
    assert!(!messages.iter().any(|m| m["reason"] == "trial-moved"));
    assert_eq!(sandbox.read("metainfer.lock"), lock);
    assert!(!sandbox.home().join("labels.sqlite").exists());
}

#[test]
fn replay_of_a_second_run_starts_from_what_the_first_left() {
    let sandbox = Sandbox::with_tiny(&tiny::two());
    adapted(&sandbox);
    fs::remove_file(sandbox.path("metainfer.lock")).unwrap();
    sandbox.metainfer("adapt --max-evaluations 20").code(0);
    sandbox.metainfer(REPLAY).code(0);
}

#[test]
fn replay_of_a_torn_journal_goes_as_far_as_the_run_did() {
    let sandbox = Sandbox::with_tiny(&tiny::two());
    let text = adapted(&sandbox);
    let torn = &text[..text.len() * 2 / 3];
    sandbox.file(JOURNAL, torn);
    let run = sandbox.metainfer(&format!("{REPLAY} --message-format json"));
    let messages = run.code(0).messages();
    let replayed = messages.iter().find(|m| m["reason"] == "replayed").unwrap();
    assert_eq!(replayed["is_complete"], false);
    let n_lines = torn.lines().count() - 1;
    assert_eq!(replayed["n_entries"], n_lines);
}

#[test]
fn replay_of_another_run_says_where_they_part() {
    let sandbox = Sandbox::with_tiny(&tiny::two());
    let text = adapted(&sandbox);
    // Two entries are missing, each line being whole.
    let is_glance = |line: &&str| line.contains("\"entry\":\"glanced\"");
    let first = text.lines().find(is_glance).unwrap();
    sandbox.file(JOURNAL, &text.replacen(&format!("{first}\n"), "", 1));
    let run = sandbox.metainfer(&format!("{REPLAY} --message-format json"));
    let messages = run.code(101).messages();
    let error = messages.iter().find(|m| m["level"] == "error").unwrap();
    let text = error["message"].as_str().unwrap();
    let parted = "of the journal is not what the replay is at (a look at the default)";
    assert!(text.contains(parted), "{text}");
}

#[test]
fn replay_without_a_journal_names_it_and_the_remedy() {
    let sandbox = Sandbox::with_tiny(&tiny::two());
    let run = sandbox.metainfer("adapt --replay").code(101);
    run.stderr(
        "error: cannot replay `[ROOT]/target/metainfer/journals/tiny@cpu.journal`: there is none\n\
         help: run `cargo metainfer adapt` first; it keeps a journal of its last run\n",
    );
}

#[test]
fn max_time_ends_a_search_with_the_best_so_far_and_all_of_its_finals() {
    let sandbox = Sandbox::with_tiny(&tiny::two());
    let adapt = "adapt --max-time 1s --max-evaluations 300 --message-format json";
    let messages = sandbox.metainfer(adapt).code(0).messages();
    let finished = messages.iter().find(|m| m["reason"] == "adapt-finished");
    let finished = finished.unwrap();
    assert_eq!(finished["interrupted"], false);
    assert!(finished["n_evaluations"].as_u64().unwrap() < 300);
    assert!(finished["utilisation"].as_f64().unwrap() <= 1.0);
    assert!(!sandbox.read("metainfer.lock").contains("interrupted"));
    let is_final = |m: &&serde_json::Value| m["purpose"] == "final" && m["state"] == "recorded";
    assert!(messages.iter().filter(is_final).count() >= 2);
    sandbox.metainfer(REPLAY).code(0);
}
