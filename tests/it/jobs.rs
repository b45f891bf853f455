//! Looking at what runs are at, and changing it from outside.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::Sandbox;
use crate::support::tiny;

fn jobs(sandbox: &Sandbox, arguments: &str) -> Vec<Value> {
    let run = sandbox.metainfer(&format!("jobs --message-format json {arguments}"));
    let messages = run.code(0).messages().into_iter();
    messages.filter(|m| m["reason"] == "job").collect()
}

/// A run in the background, which ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts an adaptation that takes a while, and waits until it is at work on trials.
fn adapting(sandbox: &Sandbox) -> (Running, Value) {
    let args = ["adapt", "--max-evaluations", "300"];
    let mut command = sandbox.command(&args);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let child = Running(command.spawn().unwrap());
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let running = jobs(sandbox, "");
        if let Some(job) = running.first().filter(|j| j["n_evaluations"] != 0) {
            return (child, job.clone());
        }
        assert!(Instant::now() < deadline, "no job is at work: {running:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_job_is_listed_reprioritised_and_cancelled_with_the_best_so_far() {
    let sandbox = Sandbox::with_tiny(&tiny::two());
    assert_eq!(jobs(&sandbox, "--all"), [] as [Value; 0]);
    let (mut child, job) = adapting(&sandbox);
    assert_eq!(
        (&job["model"], &job["target"]),
        (&"tiny".into(), &"cpu".into())
    );
    assert_eq!(
        (&job["state"], &job["priority"]),
        (&"running".into(), &"normal".into())
    );
    let id = job["id"].as_i64().unwrap();
    sandbox
        .metainfer(&format!("jobs priority {id} low"))
        .code(0);
    assert_eq!(jobs(&sandbox, "")[0]["priority"], "low");
    sandbox.metainfer(&format!("jobs cancel {id}")).code(0);
    assert_eq!(child.0.wait().unwrap().code(), Some(130));
    assert!(
        sandbox
            .read("metainfer.lock")
            .contains("search = \"interrupted\"")
    );
    assert_eq!(jobs(&sandbox, ""), [] as [Value; 0]);
    assert_eq!(jobs(&sandbox, "--all")[0]["state"], "interrupted");
    let late = sandbox.metainfer(&format!("jobs cancel {id}")).code(2);
    late.stderr(&format!(
        "error: no job {id} is running\nhelp: `cargo metainfer jobs` lists those that are\n"
    ));
}

#[test]
fn a_job_whose_run_was_killed_is_lost_until_the_next_run_goes_on() {
    let sandbox = Sandbox::with_tiny(&tiny::two());
    let (mut child, job) = adapting(&sandbox);
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    sandbox.metainfer("adapt --max-evaluations 12").code(0);
    let all = jobs(&sandbox, "--all");
    assert_eq!(all[0]["id"], job["id"]);
    let states: Vec<&Value> = all.iter().map(|job| &job["state"]).collect();
    assert_eq!(states, ["lost", "done"]);
}

#[test]
fn runs_of_two_workspaces_share_the_device_and_what_matters_more_does_not_wait_for_the_end() {
    let slow = Sandbox::with_tiny(&tiny::two());
    let mut quick = Sandbox::with_tiny(&tiny::three());
    let home = slow.home().to_str().unwrap().to_owned();
    quick.variable("METAINFER_HOME", &home);
    let (mut background, job) = adapting(&slow);
    let id = job["id"].as_i64().unwrap();
    slow.metainfer(&format!("jobs priority {id} low")).code(0);
    quick
        .metainfer("adapt --max-evaluations 8 --priority high")
        .code(0);
    let jobs = jobs(&slow, "--all");
    let states: Vec<&Value> = jobs.iter().map(|job| &job["state"]).collect();
    assert_eq!(states, ["running", "done"], "it waited for the other's end");
    assert!(background.0.try_wait().unwrap().is_none());
}
