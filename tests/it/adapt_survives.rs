//! Adaptations that are killed, interrupted, or not alone.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use metainfer::label::{Label, Outcome};
use metainfer::lock::{self, Deployment};
use metainfer::measure::Device;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::Sandbox;
use crate::support::records::Records;
use crate::support::tiny;

/// A run of the tool in the background.
struct Running {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Running {
    fn start(sandbox: &Sandbox, arguments: &str) -> Self {
        let args: Vec<&str> = arguments.split_whitespace().collect();
        let mut command = sandbox.command(&args);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr }
    }

    /// Returns the next line that it says; empty when there are no more.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line
    }

    fn interrupt(&self) {
        let mut kill = Command::new("kill");
        let pid = self.child.id().to_string();
        assert!(kill.args(["-INT", &pid]).status().unwrap().success());
    }

    /// Waits for its end; returns the exit code and the rest of what it said.
    fn end(mut self) -> (Option<i32>, Vec<String>) {
        let rest = self.stderr.lines().map(Result::unwrap).collect();
        (self.child.wait().unwrap().code(), rest)
    }
}

fn locked(sandbox: &Sandbox) -> Option<Deployment> {
    let text = fs::read_to_string(sandbox.path("metainfer.lock")).ok()?;
    let lockfile = lock::decode(&text).unwrap();
    lockfile.deployments.into_values().next()
}

/// Returns the processes that are at work in a directory.
fn processes_in(dir: &Path) -> Vec<String> {
    let dir = fs::canonicalize(dir).unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let at_work = processes.filter(|process| {
        let cwd = fs::read_link(process.path().join("cwd"));
        cwd.is_ok_and(|cwd| cwd.starts_with(&dir))
    });
    let describe = |process: fs::DirEntry| {
        let command = fs::read_to_string(process.path().join("cmdline"));
        command.unwrap_or_default().replace('\0', " ")
    };
    at_work.map(describe).collect()
}

/// Returns the measuring processes of a run.
fn workers_of(tool: u32) -> Vec<String> {
    let parent = format!("\nPPid:\t{tool}\n");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let workers = processes.filter(|process| {
        let read = |file| fs::read_to_string(process.path().join(file)).unwrap_or_default();
        read("status").contains(&parent) && read("cmdline").contains("\0worker\0")
    });
    workers
        .map(|process| process.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Waits until nothing is at work in the workspace any more, and fails if that takes long.
#[track_caller]
fn expect_no_orphans(sandbox: &Sandbox) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let left = processes_in(&sandbox.root());
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{left:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Fails if there are files of builds that only a process at work has a use for.
#[track_caller]
fn expect_no_leftovers(sandbox: &Sandbox) {
    let native = sandbox.path("target/metainfer/native");
    let dirs = fs::read_dir(native).unwrap().flatten();
    let files = dirs.flat_map(|dir| fs::read_dir(dir.path()).unwrap().flatten());
    let is_kept = |path: &PathBuf| {
        let extension = path.extension().unwrap_or_default();
        let is_of_process = path.file_stem().unwrap().to_str().unwrap().contains('-');
        !is_of_process && (extension == "o" || extension == "list")
    };
    let files = files.map(|file| file.path());
    let left: Vec<PathBuf> = files.filter(|path| !is_kept(path)).collect();
    assert!(left.is_empty(), "{left:#?}");
}

#[test]
fn killed_at_twenty_random_moments_it_loses_nothing_and_repeats_nothing() {
    const BUDGET: usize = 30;
    let arguments = format!("adapt -q --max-evaluations {BUDGET}");
    let sandbox = Sandbox::with_tiny(&tiny::two());
    let mut rng = ChaCha8Rng::seed_from_u64(20);
    let mut before = Records::default();
    let mut n_kills = 0;
    let mut longest_ms = 900;
    while n_kills < 20 {
        let mut running = Running::start(&sandbox, &arguments);
        std::thread::sleep(Duration::from_millis(rng.random_range(20..longest_ms)));
        running.child.kill().unwrap();
        let (code, said) = running.end();
        n_kills += usize::from(code.is_none());
        let after = sandbox.records();
        let (n_evaluations, n_labels) = (before.evaluations.len(), before.labels.len());
        assert_eq!(after.evaluations[..n_evaluations], before.evaluations);
        assert_eq!(after.labels[..n_labels], before.labels);
        // On a busy machine runs need longer to get anywhere.
        longest_ms = if after.evaluations.len() > n_evaluations {
            900
        } else {
            (longest_ms * 5 / 4).min(5000)
        };
        before = after;
        locked(&sandbox);
        if code.is_some() {
            assert_eq!(code, Some(0), "{said:?}");
            break;
        }
    }
    sandbox.metainfer(&arguments).code(0);
    assert!(n_kills > 5, "it was too fast to be killed");

    let (deployment, records) = (locked(&sandbox).unwrap(), sandbox.records());
    let artifacts: BTreeSet<_> = records.spent().map(|e| e.artifact).collect();
    assert_eq!(artifacts.len(), records.spent().count(), "evaluated twice");
    assert!(artifacts.len() <= BUDGET, "{}", artifacts.len());
    assert_eq!(deployment.evaluations as usize, artifacts.len());
    assert!(!deployment.is_interrupted);
    assert_eq!(records.evaluations.len(), artifacts.len() + 1);
    for subgraph in &deployment.subgraphs {
        let structure = subgraph.structure;
        let labels = records.labels.iter();
        let labels = labels.filter(|label| label.task.structure == structure);
        let all: Vec<_> = labels
            .map(|label| (&label.candidate, label.provenance.artifact))
            .collect();
        let different: BTreeSet<_> = all.iter().collect();
        assert_eq!(all.len(), different.len(), "labelled twice");
    }
    expect_no_orphans(&sandbox);
    expect_no_leftovers(&sandbox);
}

#[test]
fn a_second_interrupt_ends_it_at_once() {
    let mut sandbox = Sandbox::with_tiny(&tiny::two());
    // A compiler that does not come to an end: what is being done cannot be finished.
    sandbox.script(
        "rustc.sh",
        "case \"$*\" in *program.rs*) exec sleep 60;; esac\nexec rustc \"$@\"",
    );
    let script = sandbox.path("rustc.sh");
    sandbox.variable("RUSTC", script.to_str().unwrap());
    let mut running = Running::start(&sandbox, "adapt");
    assert!(running.line().starts_with("    Adapting `tiny`"));
    running.interrupt();
    let line = running.line();
    assert!(line.starts_with("    Stopping "), "{line}");
    // Signals that come together are one interrupt.
    std::thread::sleep(Duration::from_millis(500));
    running.interrupt();
    let (code, rest) = running.end();
    assert_eq!(code, Some(130));
    assert_eq!(rest, [""; 0]);
    assert!(!sandbox.path("metainfer.lock").exists());
    expect_no_orphans(&sandbox);
    // What is left of it is in nobody's way.
    sandbox.variable("RUSTC", "rustc");
    sandbox.metainfer("adapt --max-evaluations 1").code(0);
    expect_no_leftovers(&sandbox);
}

/// Has kernels compiled by a wrapper, which does not come to an end as long as there is a file
/// named `hang`, nor does what it starts.
fn hang_on_demand(sandbox: &mut Sandbox) {
    let script = "case \"$*\" in *program.rs*) [ -e HANG ] && { sleep 60 & wait; };; esac\n\
        exec rustc \"$@\"";
    let hang = sandbox.path("hang");
    sandbox.script("rustc.sh", &script.replace("HANG", hang.to_str().unwrap()));
    let script = sandbox.path("rustc.sh");
    sandbox.variable("RUSTC", script.to_str().unwrap());
}

#[test]
fn nothing_that_a_compiler_started_outlives_a_tool_that_is_killed() {
    let mut sandbox = Sandbox::with_tiny(&tiny::two());
    hang_on_demand(&mut sandbox);
    sandbox.file("hang", "");
    let mut running = Running::start(&sandbox, "adapt");
    assert!(running.line().starts_with("    Adapting `tiny`"));
    let sleeps = || {
        let processes = processes_in(&sandbox.path("target"));
        processes
            .iter()
            .any(|command| command.starts_with("sleep 60"))
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    while !sleeps() {
        assert!(Instant::now() < deadline, "no compiler was started");
        std::thread::sleep(Duration::from_millis(5));
    }
    running.child.kill().unwrap();
    assert_eq!(running.end().0, None);
    expect_no_orphans(&sandbox);
}

#[test]
fn an_interrupt_ends_compilers_whose_work_is_not_needed_any_more() {
    let mut sandbox = Sandbox::with_tiny(&tiny::two());
    hang_on_demand(&mut sandbox);
    let mut running = Running::start(&sandbox, "adapt -vv --max-evaluations 60");
    while !running.line().starts_with("   Evaluated 2: ") {}
    sandbox.file("hang", "");
    std::thread::sleep(Duration::from_secs(2));
    fs::remove_file(sandbox.path("hang")).unwrap();
    let started = Instant::now();
    running.interrupt();
    let (code, rest) = running.end();
    assert_eq!(code, Some(130), "{rest:?}");
    let took = started.elapsed();
    assert!(took < Duration::from_secs(30), "{took:?}");
    let kept = rest.iter().any(|line| line.contains("best so far kept"));
    assert!(kept, "{rest:?}");
    let blames = |line: &String| line.contains("stopped") || line.contains("rustc");
    assert!(!rest.iter().any(blames), "{rest:?}");
    let blamed = sandbox
        .records()
        .labels
        .into_iter()
        .find(|label| label.outcome != Outcome::Ok);
    assert_eq!(blamed, None);
    expect_no_orphans(&sandbox);
    expect_no_leftovers(&sandbox);
}

#[test]
fn an_interrupted_search_goes_on_with_what_is_left_of_its_budget() {
    let sandbox = Sandbox::with_tiny(&tiny::two());
    let mut running = Running::start(&sandbox, "adapt -vv --max-evaluations 60");
    while !running.line().starts_with("   Evaluated 3: ") {}
    running.interrupt();
    let (code, rest) = running.end();
    assert_eq!(code, Some(130), "{rest:?}");
    let kept = rest.iter().any(|line| line.contains("best so far kept"));
    assert!(kept, "{rest:?}");
    let (first, n_spent) = (locked(&sandbox).unwrap(), sandbox.records().spent().count());
    assert!(first.is_interrupted);
    assert_eq!(first.evaluations as usize, n_spent);

    let budget = n_spent + 2;
    let arguments = format!("adapt --max-evaluations {budget}");
    sandbox.metainfer(&arguments).code(0);
    let records = sandbox.records();
    let artifacts: BTreeSet<_> = records.spent().map(|e| e.artifact).collect();
    assert_eq!(artifacts.len(), records.spent().count(), "evaluated twice");
    assert!(artifacts.len() <= budget);
    assert!(!locked(&sandbox).unwrap().is_interrupted);
}

#[test]
fn a_worker_that_somebody_kills_is_replaced_and_nobody_is_blamed() {
    let sandbox = Sandbox::with_tiny(&tiny::two());
    let mut running = Running::start(&sandbox, "adapt -vv --max-evaluations 12");
    let mut n_killed = 0;
    loop {
        let line = running.line();
        if line.is_empty() {
            break;
        }
        if line.starts_with("   Evaluated ") {
            for worker in workers_of(running.child.id()) {
                let mut kill = Command::new("kill");
                let killed = kill.args(["-KILL", &worker]).status().unwrap();
                n_killed += usize::from(killed.success());
            }
        }
    }
    let (code, _) = running.end();
    assert_eq!(code, Some(0));
    assert!(n_killed > 3, "{n_killed}");
    let records = sandbox.records();
    let blamed: Vec<_> = records
        .labels
        .iter()
        .filter(|label| label.outcome != Outcome::Ok)
        .collect();
    assert_eq!(blamed, [] as [&Label; 0]);
    let mut lost = records.evaluations.iter();
    assert!(lost.all(|e| matches!(e.outcome, Outcome::Ok | Outcome::DeviceLost)));
    assert!(!locked(&sandbox).unwrap().is_interrupted);
}

#[test]
fn a_compiler_that_somebody_kills_is_started_again_even_for_the_default() {
    let mut sandbox = Sandbox::with_tiny(&tiny::two());
    let killed = sandbox.path("killed");
    let mark = killed.display();
    sandbox.script(
        "rustc.sh",
        &format!(
            "case \"$*\" in *program.rs*) [ -e {mark} ] || {{ : >{mark}; kill -KILL $$; }};; esac\n\
             exec rustc \"$@\""
        ),
    );
    let script = sandbox.path("rustc.sh");
    sandbox.variable("RUSTC", script.to_str().unwrap());
    sandbox.metainfer("adapt --max-evaluations 2").code(0);
    let records = sandbox.records();
    let lost = records
        .evaluations
        .iter()
        .filter(|e| e.outcome != Outcome::Ok);
    assert_eq!(lost.count(), 0);
}

#[test]
fn two_adaptations_of_one_workspace_take_turns() {
    let sandbox = Sandbox::with_tiny(&tiny::two());
    let mut first = Running::start(&sandbox, "adapt --max-evaluations 3");
    assert!(first.line().starts_with("    Adapting `tiny`"));
    let mut second = Running::start(&sandbox, "adapt --max-evaluations 3");
    let line = second.line();
    let holder = format!(
        "adapt.lock`, held by `cargo metainfer adapt` (process {})\n",
        first.child.id()
    );
    assert!(line.starts_with("    Blocking waiting for `"), "{line}");
    assert!(line.ends_with(&holder), "{line}");
    let (code, said) = first.end();
    assert_eq!(code, Some(0), "{said:?}");
    let (code, said) = second.end();
    assert_eq!(code, Some(0), "{said:?}");
    assert!(said[0].starts_with("       Fresh `tiny`"), "{said:?}");
    assert!(said[0].contains("(0 evaluations"), "{said:?}");
}

#[test]
fn a_busy_device_is_waited_for_until_an_interrupt() {
    let sandbox = Sandbox::with_tiny(&tiny::two());
    let device = Device::try_hold(&sandbox.home(), "somebody else");
    let _device = device.unwrap().unwrap();
    let mut running = Running::start(&sandbox, "adapt");
    let line = running.line();
    let expected = "    Blocking waiting for `cpu`, held by `somebody else` (process ";
    assert!(line.starts_with(expected), "{line}");
    running.interrupt();
    let (code, said) = running.end();
    assert_eq!(code, Some(130), "{said:?}");
    assert!(!sandbox.path("metainfer.lock").exists());
}
