//! A workspace with one model, and commands of the tool in it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::compiler::{ROUND, SEED};
use crate::shell;

/// Name of the model.
pub(super) const MODEL: &str = "net";
/// Name of the target.
const TARGET: &str = "cpu";

/// Time of one call of the compiler, seconds. What is generated takes some tenths of one.
pub(super) const COMPILE_TIMEOUT_S: u64 = 6;
/// Time of one request to the worker, seconds.
pub(super) const TRIAL_TIMEOUT_S: u64 = 2;

/// A workspace below the directory of a soak.
#[derive(Debug)]
pub(super) struct Workspace {
    /// Its directory.
    pub(super) dir: PathBuf,
    /// The user's data directory.
    pub(super) home: PathBuf,
    /// Program of the tool.
    tool: PathBuf,
}

impl Workspace {
    /// Makes a workspace with a model.
    pub(super) fn new(dir: &Path, home: &Path, tool: &Path, model: &[u8]) -> Result<Self> {
        let workspace = Self {
            dir: dir.to_owned(),
            home: home.to_owned(),
            tool: tool.to_owned(),
        };
        for inner in ["src", "models", "tmp"] {
            fs::create_dir_all(dir.join(inner))?;
        }
        fs::write(
            dir.join("Cargo.toml"),
            "[workspace]\n[package]\nname = \"soak\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
        )?;
        fs::write(dir.join("src/lib.rs"), "")?;
        fs::write(
            dir.join("metainfer.toml"),
            format!(
                "model-dir = \"models\"\n\n[search]\ncompile-timeout = \"{COMPILE_TIMEOUT_S}s\"\n\
                 trial-timeout = \"{TRIAL_TIMEOUT_S}s\"\n"
            ),
        )?;
        fs::write(workspace.model(), model)?;
        Ok(workspace)
    }

    /// Has the tool use a compiler that makes faults.
    pub(super) fn with_faults(&self, seed: u64) -> Result<()> {
        let this = std::env::current_exe().context("cannot find this program")?;
        let script = format!(
            "#!/bin/sh\n{ROUND}='{}' {SEED}={seed} exec '{}' soak-rustc \"$@\"\n",
            self.dir.display(),
            this.display()
        );
        fs::write(self.compiler(), script)?;
        Ok(fs::set_permissions(
            self.compiler(),
            fs::Permissions::from_mode(0o755),
        )?)
    }

    /// Returns a command of the tool; all processes that it starts are marked.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.tool);
        command
            .arg("metainfer")
            .args(arguments)
            .current_dir(&self.dir)
            .env("METAINFER_HOME", &self.home)
            .env("TMPDIR", self.temporary())
            .env(ROUND, &self.dir)
            .env_remove("CARGO_TERM_COLOR");
        if self.compiler().exists() {
            command.env("RUSTC", self.compiler());
        }
        command
    }

    /// Runs a command of the tool to its end; returns its exit code and what it said on both
    /// streams.
    pub(super) fn say(&self, arguments: &[&str]) -> Result<(Option<i32>, String)> {
        let output = self.command(arguments).output()?;
        let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.push_str(&String::from_utf8_lossy(&output.stderr));
        Ok((output.status.code(), said))
    }

    /// Returns the model's file.
    pub(super) fn model(&self) -> PathBuf {
        self.dir.join("models").join(format!("{MODEL}.onnx"))
    }

    /// Returns the lockfile.
    pub(super) fn lock(&self) -> PathBuf {
        self.dir.join("metainfer.lock")
    }

    /// Returns the label store.
    pub(super) fn store(&self) -> PathBuf {
        self.home.join("labels.sqlite")
    }

    /// Returns the directory for temporary files.
    pub(super) fn temporary(&self) -> PathBuf {
        self.dir.join("tmp")
    }

    /// Returns what the tool writes beside the lock.
    pub(super) fn scratch(&self) -> PathBuf {
        self.dir.join("target/metainfer")
    }

    /// Returns the journal of the last run.
    pub(super) fn journal(&self) -> PathBuf {
        let name = format!("{MODEL}@{TARGET}.journal");
        self.scratch().join("journals").join(name)
    }

    fn compiler(&self) -> PathBuf {
        self.dir.join("rustc.sh")
    }
}

/// Returns the tool as it is released, built unless it is to be taken as it is.
pub(super) fn tool(is_built: bool) -> Result<PathBuf> {
    if !is_built {
        shell::run(shell::command("cargo").args([
            "build",
            "--release",
            "--bin",
            "cargo-metainfer",
        ]))?;
    }
    let tool = shell::target("release/cargo-metainfer");
    anyhow::ensure!(tool.exists(), "there is no `{}`", tool.display());
    Ok(tool)
}
