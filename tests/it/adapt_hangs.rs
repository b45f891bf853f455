//! Compilers and kernels that come to no end: the run ends in the time that is configured.

use std::time::{Duration, Instant};

use crate::support::Sandbox;
use crate::support::tiny;

/// What the tool itself may need beside the time that it waits, on a busy machine.
const SLACK: Duration = Duration::from_secs(20);

/// Runs an adaptation that cannot end well, and fails if it takes longer than `at_most`.
#[track_caller]
fn expect_failure(sandbox: &Sandbox, at_most: Duration, expected: &str) {
    let started = Instant::now();
    let run = sandbox.metainfer("adapt --max-evaluations 3").code(101);
    assert!(run.stderr.contains(expected), "{}", run.stderr);
    let taken = started.elapsed();
    assert!(taken < at_most + SLACK, "{taken:?}");
}

#[test]
fn compile_timeout_ends_a_compiler_that_hangs() {
    let mut sandbox = Sandbox::with_tiny(&tiny::two());
    sandbox.file(
        "metainfer.toml",
        "model-dir = \"models\"\n[search]\ncompile-timeout = \"2s\"\n",
    );
    sandbox.script(
        "rustc.sh",
        "case \"$*\" in *program.rs*) exec sleep 600;; esac\nexec rustc \"$@\"",
    );
    let script = sandbox.path("rustc.sh");
    sandbox.variable("RUSTC", script.to_str().unwrap());
    // A batch of kernels, and then each alone, at most two at a time.
    let at_most = Duration::from_secs(3 * 2);
    let expected = "the untuned default of model `tiny` does not run on target `cpu`";
    expect_failure(&sandbox, at_most, expected);
}

#[test]
fn trial_timeout_ends_a_kernel_that_hangs() {
    let mut sandbox = Sandbox::with_tiny(&tiny::two());
    sandbox.file(
        "metainfer.toml",
        "model-dir = \"models\"\n[search]\ntrial-timeout = \"2s\"\n",
    );
    sandbox.script(
        "rustc.sh",
        "for last; do case \"$last\" in\n\
         *program.rs) sed -i '/fn k_/s/$/ loop { core::hint::spin_loop() }/' \"$last\";;\n\
         esac; done\n\
         exec rustc \"$@\"",
    );
    let script = sandbox.path("rustc.sh");
    sandbox.variable("RUSTC", script.to_str().unwrap());
    let expected = "the untuned default of model `tiny` does not run on target `cpu`";
    expect_failure(&sandbox, Duration::from_secs(2 * 2), expected);
}

#[test]
fn a_store_that_somebody_keeps_ends_the_run_in_ten_seconds_and_nothing_is_left() {
    let mut sandbox = Sandbox::with_tiny(&tiny::two());
    let (begun, store) = (sandbox.path("begun"), sandbox.home().join("labels.sqlite"));
    let mark = begun.display();
    sandbox.script(
        "rustc.sh",
        &format!("case \"$*\" in *program.rs*) : >{mark};; esac\nexec rustc \"$@\""),
    );
    let script = sandbox.path("rustc.sh");
    sandbox.variable("RUSTC", script.to_str().unwrap());
    let holder = std::thread::spawn(move || {
        while !begun.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let connection = rusqlite::Connection::open(store).unwrap();
        connection.busy_timeout(Duration::from_secs(5)).unwrap();
        connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
        std::thread::sleep(Duration::from_secs(14));
        connection.execute_batch("ROLLBACK").unwrap();
    });
    let expected = "is locked by another process";
    expect_failure(&sandbox, Duration::from_secs(10), expected);
    holder.join().unwrap();
    let dirs = std::fs::read_dir(sandbox.path("target/metainfer/native")).unwrap();
    let files = dirs.flat_map(|dir| std::fs::read_dir(dir.unwrap().path()).unwrap());
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = names.filter(|name| name.contains('-')).collect();
    assert!(left.is_empty(), "{left:?}");
    sandbox.metainfer("adapt --max-evaluations 3").code(0);
}
