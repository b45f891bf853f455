//! Running other programs, and where things are in the work tree.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_owned)
        .unwrap_or_default()
}

/// Returns a path below the target directory.
pub(crate) fn target(path: impl AsRef<Path>) -> PathBuf {
    root().join("target").join(path)
}

/// Returns a command that runs at the root of the repository.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// Runs a command with its output on the terminal.
///
/// # Errors
/// If it cannot be started or does not succeed.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    eprintln!("$ {}", line(command));
    let status = command
        .status()
        .with_context(|| format!("cannot start `{}`", line(command)))?;
    if !status.success() {
        bail!("`{}` ended with {status}", line(command));
    }
    Ok(())
}

/// Runs a command and returns what it wrote to its standard output.
///
/// # Errors
/// If it cannot be started or does not succeed; its standard error is part of the message.
pub(crate) fn capture(command: &mut Command) -> Result<Vec<u8>> {
    let output = command
        .output()
        .with_context(|| format!("cannot start `{}`", line(command)))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` ended with {}\n{stderr}", line(command), output.status);
    }
    Ok(output.stdout)
}

/// Formats a command as it would be typed; nothing is quoted.
fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Makes a virtual environment below `target/` with these packages, one a line, and returns its
/// interpreter.
pub(crate) fn python(name: &str, packages: &str) -> Result<PathBuf> {
    let venv = target(name);
    let python = venv.join("bin/python");
    let stamp = venv.join("packages.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|present| present == packages) {
        return Ok(python);
    }
    run(command("python3").args(["-m", "venv"]).arg(&venv))?;
    run(command(&python)
        .args(["-m", "pip", "install", "--quiet"])
        .args(packages.lines()))?;
    std::fs::write(&stamp, packages)?;
    Ok(python)
}
