//! The one error of the command line, and how every other error becomes one.

use std::error::Error as StdError;
use std::fmt;

use super::ExitCode;
use super::env::VariableError;
use crate::adapt;
use crate::backend::BackendError;
use crate::config::{EditError, SettingsError};
use crate::deploy::DeployError;
use crate::device::ProfileError;
use crate::fsx::FsError;
use crate::lock::LockError;
use crate::onnx;
use crate::store::StoreError;

/// What kind of failure: it decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The command line is wrong.
    Usage,
    /// The command could not finish.
    Failed,
}

/// A failure as the user gets to see it: a sentence, its causes, and what to do.
#[derive(Debug)]
pub struct Error {
    /// Decides the exit code.
    pub kind: Kind,
    /// What went wrong, with its causes.
    pub source: Box<dyn StdError + Send + Sync>,
    /// What to try next, each a command or a key.
    pub help: Vec<String>,
}

impl Error {
    /// Builds an error of the command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message.into())
    }

    /// Builds an error that ends the command.
    pub fn failed(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(Kind::Failed, source)
    }

    /// Adds a line of help.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// Adds a line of help if there is one.
    #[must_use]
    pub fn maybe_help(mut self, help: Option<String>) -> Self {
        self.help.extend(help);
        self
    }

    /// Says what was being done when the error came up.
    #[must_use]
    pub fn context(mut self, doing: impl Into<String>) -> Self {
        self.source = Box::new(Context {
            doing: doing.into(),
            source: self.source,
        });
        self
    }

    /// Returns the exit code.
    pub fn exit_code(&self) -> ExitCode {
        match self.kind {
            Kind::Usage => ExitCode::Usage,
            Kind::Failed => ExitCode::Failed,
        }
    }

    fn new(kind: Kind, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self {
            kind,
            source: source.into(),
            help: Vec::new(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

/// A sentence laid over a cause.
#[derive(Debug, thiserror::Error)]
#[error("{doing}")]
struct Context {
    doing: String,
    source: Box<dyn StdError + Send + Sync>,
}

impl From<FsError> for Error {
    fn from(error: FsError) -> Self {
        let help = error.help();
        Self::failed(error).maybe_help(help)
    }
}

impl From<VariableError> for Error {
    fn from(error: VariableError) -> Self {
        Self::new(Kind::Usage, error)
    }
}

impl From<SettingsError> for Error {
    fn from(error: SettingsError) -> Self {
        let help = match &error {
            SettingsError::Duplicate { what, .. } => {
                format!("rename one: `name` of its `[[{what}]]`")
            }
            SettingsError::NoFile { .. } => {
                "add `path = \"….onnx\"`, or set `model-dir`".to_owned()
            }
            SettingsError::FileName { .. } => {
                "rename the file, or add a `[[model]]` with its `path` and a `name`".to_owned()
            }
            SettingsError::Disagreement { first, .. } => {
                format!("select one with `-p {first}`, or move the key to the workspace")
            }
        };
        Self::failed(error).help(help)
    }
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Self {
        let help = error.help();
        Self::failed(error).help(help)
    }
}

impl From<BackendError> for Error {
    fn from(error: BackendError) -> Self {
        let help = backend_help(&error);
        Self::failed(error).maybe_help(help)
    }
}

impl From<DeployError> for Error {
    fn from(error: DeployError) -> Self {
        let help = error.help();
        Self::failed(error).maybe_help(help)
    }
}

impl From<ProfileError> for Error {
    fn from(error: ProfileError) -> Self {
        Self::failed(error).help("`templates/devices/x86-64-v3.toml` shows every key")
    }
}

impl From<onnx::Error> for Error {
    fn from(error: onnx::Error) -> Self {
        let help = error.help();
        Self::failed(error).maybe_help(help)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let help = error.help();
        Self::failed(error).maybe_help(help)
    }
}

impl From<adapt::Error> for Error {
    fn from(error: adapt::Error) -> Self {
        let help = match &error {
            adapt::Error::Model { source, .. } => source.help(),
            adapt::Error::Backend { source, .. } => backend_help(source),
            adapt::Error::Stale { .. } => Some(
                "run `cargo metainfer adapt` without `--locked`, and commit the lock".to_owned(),
            ),
            adapt::Error::Lock(error) => Some(error.help()),
            adapt::Error::Files(error) => error.help(),
            adapt::Error::Store(error) => error.help(),
            adapt::Error::NoJournal { .. } => Some(
                "run `cargo metainfer adapt` first; it keeps a journal of its last run".to_owned(),
            ),
            adapt::Error::Samples { .. } => {
                Some("see `calibration` and `validation` of its `[[model]]`".to_owned())
            }
            adapt::Error::Default { .. }
            | adapt::Error::Device(_)
            | adapt::Error::JournalEnds { .. }
            | adapt::Error::Diverged { .. }
            | adapt::Error::Interrupted
            | adapt::Error::Panicked => None,
        };
        Self::failed(error).maybe_help(help)
    }
}

impl From<EditError> for Error {
    fn from(error: EditError) -> Self {
        Self::failed(error).help("add the models by hand")
    }
}

impl From<cargo_metadata::Error> for Error {
    fn from(error: cargo_metadata::Error) -> Self {
        let cause = match error {
            cargo_metadata::Error::CargoMetadata { stderr } => {
                stderr.trim().trim_start_matches("error: ").to_owned()
            }
            other => other.to_string(),
        };
        Self::failed(cause)
            .context("cannot read the Cargo workspace")
            .help("run inside a Cargo package, or pass --manifest-path PATH")
    }
}

/// Returns what to do about a backend that does not work.
fn backend_help(error: &BackendError) -> Option<String> {
    match error {
        BackendError::NotCovered { .. } => {
            Some("export the model with other operators, or leave it out with --model".to_owned())
        }
        BackendError::Toolchain { .. } => {
            Some("install Rust from https://rustup.rs, or set the variable `RUSTC`".to_owned())
        }
        BackendError::Files(error) => error.help(),
        BackendError::Templates { .. } => None,
    }
}
