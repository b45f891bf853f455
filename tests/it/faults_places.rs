//! Directories, disks, compilers, clocks and configurations that are not as they should be.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use metainfer::label::{Evaluation, Label, Outcome};
use metainfer::lock;
use rusqlite::Connection;

use crate::support::tiny;
use crate::support::{ReadOnly, Sandbox};

#[test]
fn a_read_only_workspace_keeps_what_was_measured_for_the_next_run() {
    let mut sandbox = Sandbox::with_tiny(&tiny::two());
    fs::create_dir(sandbox.path("target")).unwrap();
    sandbox.unprivileged();
    let read_only = ReadOnly::new(&sandbox.root());
    let run = sandbox.metainfer("adapt --max-evaluations 3").code(101);
    drop(read_only);
    assert!(
        run.stderr
            .contains("error: cannot write `[ROOT]/metainfer.lock`"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("help: check the owner"),
        "{}",
        run.stderr
    );
    assert!(!sandbox.path("metainfer.lock").exists());
    let labels = sandbox.records();
    assert!(labels.evaluations.len() >= 2);

    sandbox.metainfer("adapt --max-evaluations 3").code(0);
    let after = sandbox.records();
    assert_eq!(after.labels, labels.labels);
    assert_eq!(after.spent().count(), labels.spent().count());
    lock::decode(&sandbox.read("metainfer.lock")).unwrap();
}

/// Runs the tool with a limit on the size of files, in units of 512 bytes: as a full disk, it
/// fails what is being written, in the tool and in its children.
fn adapt_on_small_disk(sandbox: &Sandbox, n_blocks: u32) -> (Option<i32>, String) {
    let output = on_small_disk(sandbox, n_blocks).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), stderr)
}

fn on_small_disk(sandbox: &Sandbox, n_blocks: u32) -> Command {
    let plain = sandbox.command(&["adapt", "--max-evaluations", "3"]);
    let mut command = Command::new("sh");
    let script = format!("ulimit -f {n_blocks}; exec \"$0\" \"$@\"");
    command.args(["-c", &script]).arg(plain.get_program());
    command.args(plain.get_args()).env_clear();
    command.current_dir(plain.get_current_dir().unwrap());
    let variables = plain.get_envs();
    command.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    command
}

#[test]
fn an_interrupt_is_heard_while_a_full_disk_is_waited_for() {
    let sandbox = Sandbox::with_tiny(&tiny::two());
    let mut command = on_small_disk(&sandbox, 500);
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    // It waits for more than five seconds in all before it gives up.
    std::thread::sleep(Duration::from_millis(3500));
    let mut kill = Command::new("kill");
    let pid = child.id().to_string();
    assert!(kill.args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(!sandbox.path("metainfer.lock").exists());
}

#[test]
fn a_full_disk_is_said_so_and_blamed_on_no_candidate() {
    let mut n_failed = 0;
    // What does not fit any more: the label store, what the compiler writes, the linker's output.
    for n_blocks in [8, 100, 500, 1200] {
        let sandbox = Sandbox::with_tiny(&tiny::two());
        let (code, stderr) = adapt_on_small_disk(&sandbox, n_blocks);
        if code == Some(0) {
            continue;
        }
        n_failed += 1;
        assert_eq!(code, Some(101), "{n_blocks}: {stderr}");
        assert!(
            stderr.contains("help: free some space"),
            "{n_blocks}: {stderr}"
        );
        assert!(!sandbox.path("metainfer.lock").exists());
        for label in sandbox.records().labels {
            assert_eq!(label.outcome, Outcome::Ok, "{n_blocks}: {}", label.message);
        }
        sandbox.metainfer("adapt --max-evaluations 3").code(0);
        lock::decode(&sandbox.read("metainfer.lock")).unwrap();
    }
    assert!(n_failed >= 2, "{n_failed}");
}

#[test]
fn a_disk_that_is_full_for_a_while_ends_no_run() {
    let mut sandbox = Sandbox::with_tiny(&tiny::two());
    let text = "case \"$*\" in *rlib*)\n\
                for i in 1 2; do mkdir \"$0.full$i\" 2>/dev/null && \
                { echo 'error: No space left on device' >&2; exit 1; }; done;;\n\
                esac\nexec rustc \"$@\"";
    sandbox.script("rustc.sh", text);
    let script = sandbox.path("rustc.sh");
    sandbox.variable("RUSTC", script.to_str().unwrap());
    sandbox.metainfer("adapt --max-evaluations 2").code(0);
    assert!(sandbox.path("rustc.sh.full2").exists());
    lock::decode(&sandbox.read("metainfer.lock")).unwrap();
    for label in sandbox.records().labels {
        assert_eq!(label.outcome, Outcome::Ok, "{}", label.message);
    }
}

#[test]
fn what_the_compiler_refused_is_not_compiled_by_a_later_run() {
    let mut sandbox = Sandbox::with_tiny(&tiny::two());
    let text = "case \"$*\" in *rlib*)\n\
                echo x >>\"$0.log\"; echo 'error: not this one' >&2; exit 1;;\n\
                esac\nexec rustc \"$@\"";
    sandbox.script("rustc.sh", text);
    let script = sandbox.path("rustc.sh");
    sandbox.variable("RUSTC", script.to_str().unwrap());
    let first = sandbox.metainfer("adapt").code(101);
    assert!(first.stderr.contains("not this one"), "{}", first.stderr);
    let log = sandbox.path("rustc.sh.log");
    assert!(log.exists());
    fs::remove_file(&log).unwrap();

    let again = sandbox.metainfer("adapt").code(101);
    assert_eq!(again.stderr, first.stderr);
    assert!(!log.exists(), "it was compiled again");
}

#[test]
fn no_rustc_and_no_cargo_on_the_path_are_named() {
    let mut sandbox = Sandbox::with_tiny(&tiny::two());
    let empty = sandbox.path("empty");
    fs::create_dir(&empty).unwrap();
    sandbox.variable("PATH", empty.to_str().unwrap());
    let run = sandbox.metainfer("adapt").code(101);
    assert!(run.stderr.contains("`cargo`"), "{}", run.stderr);
    assert!(run.stderr.contains("help: "), "{}", run.stderr);

    let mut sandbox = Sandbox::with_tiny(&tiny::two());
    sandbox.variable("RUSTC", "rustc-that-is-not-there");
    let run = sandbox.metainfer("adapt").code(101);
    let expected = "the compiler `rustc-that-is-not-there`";
    assert!(run.stderr.contains(expected), "{}", run.stderr);
    assert!(run.stderr.contains("help: install Rust"), "{}", run.stderr);
    assert!(!sandbox.path("metainfer.lock").exists());
}

#[test]
fn a_misspelt_key_is_a_warning_and_the_adaptation_goes_on() {
    let sandbox = Sandbox::with_tiny(&tiny::two());
    sandbox.file(
        "metainfer.toml",
        "model-dir = \"models\"\n[search]\nmax-evaluation = 7\nmax-evaluations = 1\n",
    );
    let run = sandbox.metainfer("adapt").code(0);
    assert!(
        run.stderr
            .starts_with("warning: unknown key `search.max-evaluation`\n --> metainfer.toml:3:1\n"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("Locked `tiny`"), "{}", run.stderr);
    assert!(sandbox.records().spent().count() <= 1);
}

/// Moves the time of everything in the label store, as if the clock had been wrong.
fn move_clock(sandbox: &Sandbox, by_ms: u64) {
    let records = sandbox.records();
    let path = sandbox.home().join("labels.sqlite");
    let connection = Connection::open(path).unwrap();
    let empty = "DELETE FROM label; DELETE FROM evaluation;";
    connection.execute_batch(empty).unwrap();
    for mut label in records.labels {
        label.provenance.time_ms += by_ms;
        insert_label(&connection, &label);
    }
    for mut evaluation in records.evaluations {
        evaluation.time_ms += by_ms;
        insert_evaluation(&connection, &evaluation);
    }
}

fn insert_label(connection: &Connection, label: &Label) {
    let statement = "INSERT INTO label (id, task, time_ms, record) VALUES (?1, ?2, ?3, ?4)";
    let values = (
        label.id().0.as_bytes().to_vec(),
        label.task.digest().as_bytes().to_vec(),
        label.provenance.time_ms.cast_signed(),
        label.encode(),
    );
    connection.execute(statement, values).unwrap();
}

fn insert_evaluation(connection: &Connection, evaluation: &Evaluation) {
    let statement =
        "INSERT INTO evaluation (id, adaptation, time_ms, record) VALUES (?1, ?2, ?3, ?4)";
    let values = (
        evaluation.id().0.as_bytes().to_vec(),
        evaluation.adaptation.as_bytes().to_vec(),
        evaluation.time_ms.cast_signed(),
        evaluation.encode(),
    );
    connection.execute(statement, values).unwrap();
}

#[test]
fn a_clock_that_was_ahead_changes_no_budget_and_repeats_nothing() {
    let mut sandbox = Sandbox::with_tiny(&tiny::two());
    sandbox.metainfer("adapt --max-evaluations 3").code(0);
    move_clock(&sandbox, 365 * 24 * 3_600_000);
    let n_before = sandbox.records().evaluations.len();

    // Another adaptation, which cannot lock what it decides: it goes on in the run after it.
    fs::remove_file(sandbox.path("metainfer.lock")).unwrap();
    sandbox.unprivileged();
    let read_only = ReadOnly::new(&sandbox.root());
    sandbox.metainfer("adapt --max-evaluations 3").code(101);
    drop(read_only);
    let n_between = sandbox.records().evaluations.len();
    assert!(n_between > n_before);
    sandbox.metainfer("adapt --max-evaluations 4").code(0);

    let records = sandbox.records();
    let spent = records.evaluations.len() - n_before - 1;
    assert!(spent <= 4, "{spent}");
    let artifacts: BTreeSet<_> = records.evaluations[n_before..]
        .iter()
        .map(|evaluation| evaluation.artifact)
        .collect();
    // The confirmation names an artifact that was evaluated before.
    assert_eq!(artifacts.len(), spent, "evaluated twice");
    let times: Vec<u64> = records.evaluations.iter().map(|e| e.time_ms).collect();
    assert!(times.is_sorted(), "{times:?}");
    lock::decode(&sandbox.read("metainfer.lock")).unwrap();
}
