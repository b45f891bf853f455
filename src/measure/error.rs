//! How a worker fails its tool.

use std::path::PathBuf;
use std::time::Duration;

use super::protocol::Response;
use crate::label::Outcome;

/// A request that was not answered as hoped.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The worker could not be started.
    #[error("cannot start the measuring worker `{}`", command.display())]
    Spawn {
        /// Its program.
        command: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The worker ended by itself. It is gone.
    #[error("the measuring worker ended: {how}")]
    Crashed {
        /// How, e.g. `signal 11 (SIGSEGV)`.
        how: String,
        /// The signal that ended it.
        signal: Option<i32>,
        /// The last of what it wrote to standard error.
        stderr: String,
    },
    /// The worker did not answer in time and was killed.
    #[error("the measuring worker did not answer within {} s", after.as_secs_f64())]
    TimedOut {
        /// The time it had.
        after: Duration,
    },
    /// The worker said something that is no answer, and was killed.
    #[error("the measuring worker gave no proper answer: {detail}")]
    Protocol {
        /// What is wrong with it.
        detail: String,
    },
    /// The worker is gone since an earlier request, or that request was dropped unanswered.
    #[error("the measuring worker is gone")]
    Gone,
    /// The worker could not do what was asked; it goes on.
    #[error("{message}")]
    Failed {
        /// How the trial ended.
        outcome: Outcome,
        /// Why.
        message: String,
    },
}

impl WorkerError {
    /// Returns how the trial ended that was being run.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Failed { outcome, .. } => *outcome,
            Self::TimedOut { .. } => Outcome::RunTimeout,
            Self::Crashed { stderr, .. } if is_out_of_memory(stderr) => Outcome::OutOfMemory,
            // A candidate ends its worker by a signal, but never by one of those that people and
            // the system send; a worker that exits by itself could not set itself up.
            Self::Crashed {
                signal: None | Some(libc::SIGKILL | libc::SIGTERM | libc::SIGHUP | libc::SIGINT),
                ..
            }
            | Self::Gone
            | Self::Spawn { .. } => Outcome::DeviceLost,
            Self::Crashed { .. } | Self::Protocol { .. } => Outcome::RunError,
        }
    }

    /// Returns a message for the label: the error and the last of what the worker said.
    pub fn message(&self) -> String {
        let mut message = self.to_string();
        if let Self::Crashed { stderr, .. } = self
            && !stderr.is_empty()
        {
            message.push('\n');
            message.push_str(stderr);
        }
        if let Some(source) = std::error::Error::source(self) {
            message.push_str(": ");
            message.push_str(&source.to_string());
        }
        message
    }

    /// Returns whether the worker is gone and another one must be started.
    pub fn is_fatal(&self) -> bool {
        !matches!(self, Self::Failed { .. })
    }

    pub(super) fn unexpected(response: &Response) -> Self {
        let detail = format!("unexpected answer {response:?}");
        Self::Protocol {
            detail: detail.chars().take(200).collect(),
        }
    }
}

/// What the standard library says when an allocation fails that nobody handles.
pub(super) fn is_out_of_memory(stderr: &str) -> bool {
    stderr.contains("memory allocation of")
}
