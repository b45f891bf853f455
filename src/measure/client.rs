//! The tool's side of a worker.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::WorkerError;
use super::error::is_out_of_memory;
use super::protocol::{Request, Response};
use crate::config::Size;
use crate::label::Outcome;

/// How to start a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerSpec {
    /// The program: this tool.
    pub command: PathBuf,
    /// Its first arguments, which make it a worker.
    pub args: Vec<OsString>,
    /// Logical processor that it stays on.
    pub cpu: Option<usize>,
    /// Address space that it may use, bytes.
    pub memory_limit_bytes: Option<u64>,
}

/// A running worker process. It is killed when dropped, and ends by itself when this process does.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    requests: ChildStdin,
    responses: Lines<BufReader<ChildStdout>>,
    stderr: Option<JoinHandle<String>>,
    /// Address space that it may use, bytes.
    memory_limit_bytes: Option<u64>,
    /// Set while a request is on its way: whoever drops it leaves an answer behind.
    is_busy: bool,
}

/// Time for the remains of a worker that is ending already.
const GRACE: Duration = Duration::from_secs(5);

/// Bytes of standard error that are kept.
const MAX_STDERR: usize = 2048;

impl WorkerSpec {
    /// Describes a worker that is this very program.
    ///
    /// # Errors
    /// [`io::Error`] if the system does not say where the program is.
    pub fn of_this_program() -> io::Result<Self> {
        Ok(Self {
            command: std::env::current_exe()?,
            args: vec!["metainfer".into(), "worker".into()],
            cpu: None,
            memory_limit_bytes: None,
        })
    }
}

impl Worker {
    /// Starts a worker.
    ///
    /// # Errors
    /// [`WorkerError::Spawn`] if the program cannot be run. That it cannot work shows with the
    /// first request.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn spawn(spec: &WorkerSpec) -> Result<Self, WorkerError> {
        let spawn_error = |source| WorkerError::Spawn {
            command: spec.command.clone(),
            source,
        };
        let mut command = Command::new(&spec.command);
        command.args(&spec.args);
        if let Some(cpu) = spec.cpu {
            command.args(["--cpu", &cpu.to_string()]);
        }
        if let Some(bytes) = spec.memory_limit_bytes {
            command.args(["--memory-limit", &bytes.to_string()]);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for the tool, which decides what becomes of the trial.
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(spawn_error)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(requests), Some(stdout), Some(stderr)) = pipes else {
            return Err(spawn_error(io::Error::other("a pipe is missing")));
        };
        Ok(Self {
            child,
            requests,
            responses: BufReader::new(stdout).lines(),
            stderr: Some(tokio::spawn(tail(stderr))),
            memory_limit_bytes: spec.memory_limit_bytes,
            is_busy: false,
        })
    }

    /// Returns the process, while there is one.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Sends a request and waits for the answer, at most for `limit`. The worker is gone after an
    /// error, unless it is [`WorkerError::Failed`], and after this future was dropped.
    ///
    /// # Errors
    /// [`WorkerError`]; `Failed` stands for the answer of that name.
    pub async fn request(
        &mut self,
        request: &Request,
        limit: Duration,
    ) -> Result<Response, WorkerError> {
        if self.is_busy || self.child.id().is_none() {
            self.kill().await;
            return Err(WorkerError::Gone);
        }
        self.is_busy = true;
        let answer = match timeout(limit, self.exchange(request)).await {
            Ok(Ok(Some(line))) => line,
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
                self.kill().await;
                let detail = error.to_string();
                return Err(WorkerError::Protocol { detail });
            }
            Ok(Ok(None) | Err(_)) => return Err(self.autopsy().await),
            Err(_) => {
                self.kill().await;
                return Err(WorkerError::TimedOut { after: limit });
            }
        };
        match serde_json::from_str(&answer) {
            Ok(Response::Failed { outcome, message }) => {
                self.is_busy = false;
                let message = self.explained(outcome == Outcome::OutOfMemory, message);
                Err(WorkerError::Failed { outcome, message })
            }
            Ok(response) => {
                self.is_busy = false;
                Ok(response)
            }
            Err(error) => {
                self.kill().await;
                let detail = error.to_string();
                Err(WorkerError::Protocol { detail })
            }
        }
    }

    /// Kills the worker and waits until it is gone.
    pub async fn kill(&mut self) {
        // An error means that it is gone already.
        let _ = self.child.kill().await;
    }

    async fn exchange(&mut self, request: &Request) -> io::Result<Option<String>> {
        let mut line = serde_json::to_string(request)?;
        line.push('\n');
        self.requests.write_all(line.as_bytes()).await?;
        self.responses.next_line().await
    }

    /// Finds out how the worker ended.
    async fn autopsy(&mut self) -> WorkerError {
        let status = timeout(GRACE, self.child.wait()).await;
        let Ok(Ok(status)) = status else {
            self.kill().await;
            let detail = "it closed its standard output".to_owned();
            return WorkerError::Protocol { detail };
        };
        let stderr = match self.stderr.take() {
            Some(task) => timeout(GRACE, task).await.ok().and_then(Result::ok),
            None => None,
        };
        let stderr = stderr.unwrap_or_default();
        WorkerError::Crashed {
            how: describe(status),
            signal: status.signal(),
            stderr: self.explained(is_out_of_memory(&stderr), stderr),
        }
    }

    /// Adds to a message what to do if there was not enough memory.
    fn explained(&self, is_out_of_memory: bool, message: String) -> String {
        match self.memory_limit_bytes {
            Some(bytes) if is_out_of_memory => format!(
                "{message}; a worker may use {}, see `search.worker-memory`",
                Size(bytes)
            ),
            _ => message,
        }
    }
}

fn describe(status: ExitStatus) -> String {
    let Some(signal) = status.signal() else {
        return status.to_string();
    };
    let name = match signal {
        libc::SIGABRT => " (SIGABRT)",
        libc::SIGBUS => " (SIGBUS)",
        libc::SIGFPE => " (SIGFPE)",
        libc::SIGILL => " (SIGILL: an instruction that this processor does not have)",
        libc::SIGKILL => " (SIGKILL)",
        libc::SIGSEGV => " (SIGSEGV)",
        libc::SIGTERM => " (SIGTERM)",
        libc::SIGXCPU => " (SIGXCPU)",
        _ => "",
    };
    format!("signal {signal}{name}")
}

/// Reads all and keeps the end.
async fn tail(mut stderr: ChildStderr) -> String {
    let mut kept = Vec::new();
    let mut buffer = [0; 1024];
    while let Ok(n @ 1..) = stderr.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..n]);
        let surplus = kept.len().saturating_sub(MAX_STDERR);
        kept.drain(..surplus);
    }
    String::from_utf8_lossy(&kept).trim().to_owned()
}
