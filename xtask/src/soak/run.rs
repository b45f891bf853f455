//! One run of the tool, watched.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;

use super::fault::Fault;
use super::proc;
use super::strike::Striker;
use super::workspace::Workspace;

/// No run may take longer.
pub(super) const LONGEST_RUN: Duration = Duration::from_mins(5);

/// How often the tool is looked at.
const TICK: Duration = Duration::from_millis(10);

/// What a run did, as it said itself and as could be seen.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// How it ended; `None` if it had to be ended.
    pub(super) status: Option<ExitStatus>,
    /// What it wrote to standard error.
    pub(super) stderr: String,
    /// What happened to it.
    pub(super) struck: Vec<Fault>,
    /// Evaluations that it reported.
    pub(super) n_evaluations: usize,
    /// Labels that it reported.
    pub(super) n_labels: u64,
    /// The highest number of evaluations that it said were spent, and how many may be.
    pub(super) spent: u64,
    pub(super) budget: u64,
    /// Share of the time in which there was something to measure that the device was measuring.
    pub(super) utilisation: Option<f64>,
    /// Estimates of the time left, after so long each, seconds.
    pub(super) estimates: Vec<(f64, f64)>,
    /// The most memory that the tool had, bytes.
    pub(super) peak_bytes: u64,
    /// What it had after each evaluation, bytes.
    pub(super) memory_bytes: Vec<u64>,
    /// The longest time without a message.
    pub(super) longest_silence: Duration,
    /// How long it took.
    pub(super) wall: Duration,
}

impl Run {
    /// Returns whether it was killed.
    pub(super) fn was_killed(&self) -> bool {
        self.struck.contains(&Fault::ToolKilled)
    }

    /// Returns the exit code, if it had one.
    pub(super) fn code(&self) -> Option<i32> {
        self.status.and_then(|status| status.code())
    }

    /// Returns the signal that ended it.
    pub(super) fn signal(&self) -> Option<i32> {
        self.status.and_then(|status| status.signal())
    }

    /// Returns the estimate of the time left that it gave when half of its time was over, relative
    /// to the time that was left.
    pub(super) fn estimate_over_truth(&self) -> Option<f64> {
        let all = self.wall.as_secs_f64();
        let is_late = |(at, _): &&(f64, f64)| *at >= all / 2.0;
        let (at, estimate) = self.estimates.iter().find(is_late)?;
        let left = all - at;
        (left > 1.0).then(|| estimate / left)
    }

    fn read(&mut self, message: &Value, at: Duration) -> bool {
        let number = |key: &str| message.get(key).and_then(Value::as_u64).unwrap_or_default();
        match message.get("reason").and_then(Value::as_str) {
            Some("evaluation-finished") => {
                self.n_evaluations += 1;
                self.n_labels += number("n_labels");
                self.spent = self.spent.max(number("n_evaluations"));
                self.budget = number("max_evaluations");
                if let Some(left_ms) = message.get("time_left_ms").and_then(Value::as_f64) {
                    self.estimates.push((at.as_secs_f64(), left_ms / 1e3));
                }
                true
            }
            Some("adapt-finished") => {
                self.utilisation = message.get("utilisation").and_then(Value::as_f64);
                false
            }
            _ => false,
        }
    }
}

/// Runs `adapt` and lets somebody hit it, if anybody. `begun` is called after the first evaluation.
pub(super) fn adapt(
    workspace: &Workspace,
    arguments: &[&str],
    mut striker: Option<&mut Striker<'_>>,
    begun: &dyn Fn() -> Result<()>,
) -> Result<Run> {
    let stderr = workspace.dir.join("stderr.txt");
    let mut command =
        workspace.command(&[&["adapt", "--message-format", "json"], arguments].concat());
    if let Some(striker) = &striker {
        striker.clock.give(&mut command);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(File::create(&stderr)?);
    let started = Instant::now();
    let mut child = command.spawn().context("cannot start the tool")?;
    let messages = messages(&mut child);
    let mut run = Run::default();
    let mut last = started;
    run.status = loop {
        match messages.recv_timeout(TICK) {
            Ok(message) => {
                run.longest_silence = run.longest_silence.max(last.elapsed());
                last = Instant::now();
                if run.read(&message, started.elapsed()) {
                    begun()?;
                    run.memory_bytes.extend(proc::memory(child.id(), "VmRSS"));
                    if let Some(striker) = striker.as_deref_mut() {
                        striker.plan();
                    }
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break Some(child.wait()?),
        }
        let peak = proc::memory(child.id(), "VmHWM").unwrap_or_default();
        run.peak_bytes = run.peak_bytes.max(peak);
        if let Some(striker) = striker.as_deref_mut() {
            striker.strike(child.id())?;
        }
        if started.elapsed() > LONGEST_RUN {
            child.kill()?;
            child.wait()?;
            break None;
        }
    };
    run.wall = started.elapsed();
    if let Some(striker) = striker {
        striker.finish()?;
        run.struck.append(&mut striker.struck);
    }
    run.stderr = fs::read_to_string(&stderr).unwrap_or_default();
    Ok(run)
}

/// Reads messages on a thread of its own until there are no more.
fn messages(child: &mut Child) -> Receiver<Value> {
    let (sender, receiver) = channel();
    if let Some(stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            // A line that was cut off by the end of the tool is none.
            let parsed = lines.filter_map(|line| serde_json::from_str(&line).ok());
            for message in parsed {
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
    }
    receiver
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_are_counted_and_estimates_compared_with_the_truth() {
        let mut run = Run::default();
        for n in 1..=4u64 {
            let message = json!({
                "reason": "evaluation-finished", "n_evaluations": n, "max_evaluations": 8,
                "n_labels": 2, "time_left_ms": 1000 * (12 - n),
            });
            assert!(run.read(&message, Duration::from_secs(2 * n)));
        }
        let last = json!({"reason": "adapt-finished", "utilisation": 0.9});
        assert!(!run.read(&last, Duration::from_secs(9)));
        run.wall = Duration::from_secs(10);
        assert_eq!((run.n_evaluations, run.n_labels), (4, 8));
        assert_eq!((run.spent, run.budget, run.utilisation), (4, 8, Some(0.9)));
        // After 6 of 10 s it said 9, and 4 were left.
        assert_eq!(run.estimate_over_truth(), Some(9.0 / 4.0));
    }
}
