//! The Rust compiler.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A Rust compiler and what it calls itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    /// The executable.
    pub rustc: PathBuf,
    /// Its version line, e.g. `rustc 1.95.0 (59807616e 2026-04-14)`.
    pub version: String,
    /// The platform it runs on, e.g. `x86_64-unknown-linux-gnu`.
    pub host: String,
}

/// No usable compiler.
#[derive(Debug, thiserror::Error)]
pub enum ToolchainError {
    /// It could not be started.
    #[error("cannot run the Rust compiler `{}`", rustc.display())]
    Spawn {
        /// The executable.
        rustc: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It does not say its version.
    #[error("`{} -vV` did not print a version and a host", rustc.display())]
    Version {
        /// The executable.
        rustc: PathBuf,
    },
}

impl Toolchain {
    /// Asks a compiler for its version. Takes about 20 ms.
    ///
    /// # Errors
    /// [`ToolchainError`] if there is none or it does not answer.
    pub fn discover(rustc: &Path) -> Result<Self, ToolchainError> {
        let output =
            Command::new(rustc)
                .arg("-vV")
                .output()
                .map_err(|source| ToolchainError::Spawn {
                    rustc: rustc.to_owned(),
                    source,
                })?;
        let text = String::from_utf8_lossy(&output.stdout);
        let host = text.lines().find_map(|line| line.strip_prefix("host: "));
        match (text.lines().next(), host) {
            (Some(version), Some(host)) if output.status.success() => Ok(Self {
                rustc: rustc.to_owned(),
                version: version.to_owned(),
                host: host.to_owned(),
            }),
            _ => Err(ToolchainError::Version {
                rustc: rustc.to_owned(),
            }),
        }
    }
}
