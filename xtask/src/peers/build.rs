//! Our builds: adapt where nothing is locked yet, deploy, compile.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::models::{self, Form, Model};
use crate::shell;

/// How a build's mappings are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// As locked.
    Tuned,
    /// The default of every subgraph.
    Untuned,
}

impl Choice {
    /// Returns its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tuned => "tuned",
            Self::Untuned => "untuned",
        }
    }
}

/// Compiles the tool, and this program for the engine that it serves.
pub(super) fn programs() -> Result<()> {
    let arguments = ["build", "--release", "--package", "cargo-metainfer"];
    shell::run(
        shell::command("cargo")
            .args(arguments)
            .args(["--package", "xtask"]),
    )
}

/// Returns the shared library of a model's form.
///
/// # Errors
/// What the step that failed says.
pub(super) fn library(model: &Model, form: Form, choice: Choice) -> Result<PathBuf> {
    let manifest = models::workspace(model, form)?;
    if choice == Choice::Tuned && !manifest.with_file_name("metainfer.lock").exists() {
        shell::run(&mut metainfer("adapt", &manifest))?;
    }
    let out = shell::target("peers")
        .join(models::name(model, form))
        .join(choice.name());
    let flag = (choice == Choice::Untuned).then_some("--untuned");
    shell::capture(
        metainfer("deploy", &manifest)
            .args(["--target", "cpu", "--out"])
            .arg(&out)
            .args(flag),
    )?;
    let messages = shell::capture(
        shell::command("cargo")
            .args(["build", "--release", "--message-format", "json"])
            .arg("--manifest-path")
            .arg(out.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(out.join("target")),
    )?;
    find(&messages).with_context(|| format!("`{}` built no library", out.display()))
}

/// Finds the shared library in cargo's messages.
fn find(messages: &[u8]) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Message {
        #[serde(default)]
        filenames: Vec<PathBuf>,
    }
    let is_library = |path: &PathBuf| {
        path.extension()
            .is_some_and(|extension| extension == std::env::consts::DLL_EXTENSION)
    };
    messages
        .split(|&byte| byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Message>(line).ok())
        .flat_map(|message| message.filenames)
        .find(is_library)
}

fn metainfer(verb: &str, manifest: &Path) -> std::process::Command {
    let mut command = shell::command(shell::target("release/cargo-metainfer"));
    command
        .args(["metainfer", verb, "--manifest-path"])
        .arg(manifest);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_is_found_in_cargo_messages() {
        let extension = std::env::consts::DLL_EXTENSION;
        let messages = format!(
            "{{\"reason\":\"build-script-executed\"}}\n\
             {{\"reason\":\"compiler-artifact\",\"filenames\":[\"a/liba.rlib\",\"a/liba.{extension}\"]}}\n"
        );
        let expected = PathBuf::from(format!("a/liba.{extension}"));
        assert_eq!(find(messages.as_bytes()), Some(expected));
        assert_eq!(find(b"{\"reason\":\"build-finished\"}\n"), None);
    }
}
