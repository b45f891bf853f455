//! What ends an adaptation before anything is measured, or keeps it from starting.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use metainfer::digest::Digest;
use metainfer::fsx::{Attempt, FileLock};

use crate::support::locked::{locked, write_lock};
use crate::support::{ReadOnly, Sandbox};

/// Returns a workspace whose lock is fresh: adapting it takes no evaluation.
fn fresh() -> Sandbox {
    let sandbox = Sandbox::with_fashion();
    write_lock(&sandbox, "fashion", locked(&sandbox));
    sandbox
}

#[test]
fn a_fresh_lock_is_kept_byte_for_byte_without_an_evaluation() {
    let sandbox = fresh();
    // The digest of the file's bytes is the one thing that the helper makes up.
    sandbox.metainfer("adapt").code(0);
    let text = sandbox.read("metainfer.lock");
    let run = sandbox.metainfer("adapt --locked --offline").code(0);
    assert!(
        run.stderr.starts_with("       Fresh `fashion` on `cpu`: "),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("0 evaluations"), "{}", run.stderr);
    assert_eq!(sandbox.read("metainfer.lock"), text);
}

#[test]
fn locked_refuses_to_write_a_stale_lockfile() {
    let sandbox = Sandbox::with_fashion();
    let mut deployment = locked(&sandbox);
    deployment.structure = Digest::of_bytes("test", b"other");
    write_lock(&sandbox, "fashion", deployment);
    let text = sandbox.read("metainfer.lock");
    for flag in ["--locked", "--frozen"] {
        let run = sandbox.metainfer(&format!("adapt {flag}")).code(101);
        assert!(
            run.stderr
                .starts_with("error: the lock of model `fashion` on target `cpu` is stale: "),
            "{}",
            run.stderr
        );
        assert!(run.stderr.contains("without `--locked`"), "{}", run.stderr);
        assert_eq!(sandbox.read("metainfer.lock"), text);
    }
}

#[test]
fn a_newer_lockfile_is_refused_with_both_versions_and_left_alone() {
    let sandbox = fresh();
    let text = sandbox
        .read("metainfer.lock")
        .replace("\nversion = 1\n", "\nversion = 2\n");
    sandbox.file("metainfer.lock", &text);
    sandbox.metainfer("adapt").code(101).stderr(
        "error: cannot use the lockfile `metainfer.lock`\n\nCaused by:\n  \
         version 2 is newer than 1, the newest that this release reads\n\n\
         help: update the tool: cargo install cargo-metainfer\n",
    );
    assert_eq!(sandbox.read("metainfer.lock"), text);
}

#[test]
fn merge_markers_are_refused_and_left_alone() {
    let sandbox = fresh();
    let text = format!("<<<<<<< HEAD\n{}", sandbox.read("metainfer.lock"));
    sandbox.file("metainfer.lock", &text);
    let run = sandbox.metainfer("adapt").code(101);
    assert!(
        run.stderr.contains("line 1: unresolved merge conflict"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("git checkout --ours metainfer.lock"),
        "{}",
        run.stderr
    );
    assert_eq!(sandbox.read("metainfer.lock"), text);
}

#[test]
fn no_compiler_is_an_error_that_names_it() {
    let mut sandbox = Sandbox::with_fashion();
    sandbox.variable("RUSTC", "/nonexistent/rustc");
    let run = sandbox.metainfer("adapt").code(101);
    assert!(
        run.stderr.contains("`/nonexistent/rustc`"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("help: install Rust"), "{}", run.stderr);
    assert!(!sandbox.path("metainfer.lock").exists());
}

#[test]
fn a_read_only_user_directory_is_named_and_nothing_is_locked() {
    let mut sandbox = Sandbox::with_fashion();
    let home = sandbox.path("home");
    std::fs::create_dir(&home).unwrap();
    sandbox.variable("METAINFER_HOME", home.to_str().unwrap());
    sandbox.unprivileged();
    let read_only = ReadOnly::new(&home);
    let run = sandbox.metainfer("adapt").code(101);
    drop(read_only);
    assert!(run.stderr.contains("[ROOT]/home"), "{}", run.stderr);
    assert!(run.stderr.contains("help: "), "{}", run.stderr);
    assert!(!sandbox.path("metainfer.lock").exists());
}

#[test]
fn a_read_only_target_directory_is_named_and_nothing_is_locked() {
    let mut sandbox = Sandbox::with_fashion();
    std::fs::create_dir(sandbox.path("target")).unwrap();
    sandbox.unprivileged();
    let read_only = ReadOnly::new(&sandbox.path("target"));
    let run = sandbox.metainfer("adapt").code(101);
    drop(read_only);
    assert!(
        run.stderr.contains("[ROOT]/target/metainfer`"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("help: check the owner"),
        "{}",
        run.stderr
    );
    assert!(!sandbox.path("metainfer.lock").exists());
}

#[test]
fn a_second_adapt_in_the_workspace_waits_and_says_for_whom() {
    let sandbox = fresh();
    std::fs::create_dir_all(sandbox.path("target/metainfer")).unwrap();
    let path = sandbox.path("target/metainfer/adapt.lock");
    let Attempt::Locked(lock) = FileLock::try_lock(&path, "somebody else").unwrap() else {
        panic!("the lock is free");
    };
    let mut child = spawn(&sandbox, "adapt");
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.starts_with("    Blocking waiting for `"), "{line}");
    let holder = format!("held by `somebody else` (process {})\n", std::process::id());
    assert!(line.ends_with(&holder), "{line}");
    assert_eq!(child.try_wait().unwrap(), None);

    drop(lock);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn an_interrupt_keeps_the_best_so_far_and_exits_130() {
    let sandbox = Sandbox::with_fashion();
    let mut child = spawn(&sandbox, "adapt");
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.starts_with("    Adapting `fashion`"), "{line}");
    let pid = child.id().to_string();
    let mut kill = std::process::Command::new("kill");
    // Two signals at once are one interrupt.
    assert!(kill.args(["-INT", &pid]).status().unwrap().success());
    assert!(kill.status().unwrap().success());
    let rest: Vec<String> = stderr.lines().map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    assert!(rest[0].starts_with("    Stopping "), "{rest:?}");
    assert!(rest[1].starts_with(" Interrupted `fashion`"), "{rest:?}");

    // The lock is whole and says that there is more to find.
    sandbox
        .metainfer("check")
        .code(100)
        .stdout("stale `fashion` on `cpu`: the search was interrupted\n");
    let run = sandbox.metainfer("adapt --max-evaluations 2").code(0);
    assert!(run.stderr.contains("Adapting"), "{}", run.stderr);
    sandbox.metainfer("check").code(0);
}

fn spawn(sandbox: &Sandbox, arguments: &str) -> Child {
    let args: Vec<&str> = arguments.split_whitespace().collect();
    let mut command = sandbox.command(&args);
    command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the tool starts")
}
