//! Environment variables: what each means, read once.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::{Overrides, SIZE, Size};

/// An environment variable that the tool reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// Name.
    pub name: &'static str,
    /// What it does, one line.
    pub meaning: &'static str,
}

/// Directory of labels and user configuration.
pub const METAINFER_HOME: &str = "METAINFER_HOME";
/// The cargo to call back.
pub const CARGO: &str = "CARGO";
/// The compiler of native artifacts.
pub const RUSTC: &str = "RUSTC";
/// When to use color.
pub const CARGO_TERM_COLOR: &str = "CARGO_TERM_COLOR";
/// No color, whatever its value.
pub const NO_COLOR: &str = "NO_COLOR";
/// Kind of terminal.
pub const TERM: &str = "TERM";
/// Set by continuous integration.
pub const CI: &str = "CI";
/// As `--max-evaluations`.
pub const CARGO_METAINFER_MAX_EVALUATIONS: &str = "CARGO_METAINFER_MAX_EVALUATIONS";
/// As `--min-gain`.
pub const CARGO_METAINFER_MIN_GAIN: &str = "CARGO_METAINFER_MIN_GAIN";
/// As `--seed`.
pub const CARGO_METAINFER_SEED: &str = "CARGO_METAINFER_SEED";
/// As `--max-time`.
pub const CARGO_METAINFER_MAX_TIME: &str = "CARGO_METAINFER_MAX_TIME";
/// As `--max-compile-time`.
pub const CARGO_METAINFER_MAX_COMPILE_TIME: &str = "CARGO_METAINFER_MAX_COMPILE_TIME";
/// As `--max-disk`.
pub const CARGO_METAINFER_MAX_DISK: &str = "CARGO_METAINFER_MAX_DISK";
/// As `--worker-memory`.
pub const CARGO_METAINFER_WORKER_MEMORY: &str = "CARGO_METAINFER_WORKER_MEMORY";
/// What developers are told.
pub const CARGO_METAINFER_LOG: &str = "CARGO_METAINFER_LOG";

/// Every variable that is read, in the order of the documentation.
pub const VARIABLES: [Variable; 15] = [
    variable(METAINFER_HOME, "labels, and the user's `config.toml`"),
    variable(CARGO, "the cargo to call back; set by cargo"),
    variable(RUSTC, "compiler of native artifacts, else `rustc`"),
    variable(
        CARGO_TERM_COLOR,
        "auto, always or never; `--color` goes first",
    ),
    variable(NO_COLOR, "if set, auto means never"),
    variable(TERM, "dumb: neither color nor progress bars"),
    variable(CI, "if set, no progress bars"),
    variable(CARGO_METAINFER_MAX_EVALUATIONS, "as `--max-evaluations`"),
    variable(CARGO_METAINFER_MIN_GAIN, "as `--min-gain`"),
    variable(CARGO_METAINFER_SEED, "as `--seed`"),
    variable(CARGO_METAINFER_MAX_TIME, "as `--max-time`"),
    variable(CARGO_METAINFER_MAX_COMPILE_TIME, "as `--max-compile-time`"),
    variable(CARGO_METAINFER_MAX_DISK, "as `--max-disk`"),
    variable(CARGO_METAINFER_WORKER_MEMORY, "as `--worker-memory`"),
    variable(
        CARGO_METAINFER_LOG,
        "what developers are told, e.g. `debug`",
    ),
];

/// What the environment says, read once.
#[derive(Debug, Clone, PartialEq)]
pub struct Environment {
    /// User's data directory: labels and `config.toml`.
    pub home: Option<PathBuf>,
    /// The cargo to call back.
    pub cargo: PathBuf,
    /// The compiler.
    pub rustc: PathBuf,
    /// `CARGO_TERM_COLOR`.
    pub color: Option<String>,
    /// Whether `NO_COLOR` is in force.
    pub no_color: bool,
    /// Whether the terminal can only print.
    pub is_dumb_terminal: bool,
    /// Whether this is continuous integration.
    pub is_ci: bool,
    /// Search settings.
    pub overrides: Overrides,
    /// `CARGO_METAINFER_LOG`.
    pub log: Option<String>,
}

/// A variable whose value cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("environment variable `{name}` must be {expected}, not `{value}`")]
pub struct VariableError {
    name: &'static str,
    expected: &'static str,
    value: String,
}

const fn variable(name: &'static str, meaning: &'static str) -> Variable {
    Variable { name, meaning }
}

impl Environment {
    /// Reads the variables of this process.
    ///
    /// # Errors
    /// [`VariableError`] if one has a value of the wrong kind.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the environment"
    )]
    pub fn read() -> Result<Self, VariableError> {
        Self::from_lookup(|name| std::env::var_os(name))
    }

    /// Reads variables through `get`; an empty value counts as unset.
    pub(crate) fn from_lookup(
        get: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, VariableError> {
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        let text = |name: &str| get(name).map(|value| value.to_string_lossy().into_owned());
        let path = |name: &str| get(name).map(PathBuf::from);
        let max_evaluations = text(CARGO_METAINFER_MAX_EVALUATIONS)
            .map(|value| {
                let parsed = value.parse().ok().filter(|&n: &u32| n > 0);
                let expected = "a whole number from 1 up";
                parsed.ok_or_else(|| wrong(CARGO_METAINFER_MAX_EVALUATIONS, expected, value))
            })
            .transpose()?;
        let min_gain = text(CARGO_METAINFER_MIN_GAIN)
            .map(|value| {
                let parsed = value.parse().ok();
                let parsed = parsed.filter(|gain| (0.0..1.0).contains(gain));
                let expected = "a number from 0 to below 1";
                parsed.ok_or_else(|| wrong(CARGO_METAINFER_MIN_GAIN, expected, value))
            })
            .transpose()?;
        let seed = text(CARGO_METAINFER_SEED)
            .map(|value| {
                let parsed = value.parse().ok();
                parsed.ok_or_else(|| wrong(CARGO_METAINFER_SEED, "a whole number", value))
            })
            .transpose()?;
        let time = |name| text(name).map(|value| duration(name, value)).transpose();
        let max_time = time(CARGO_METAINFER_MAX_TIME)?;
        let max_compile_time = time(CARGO_METAINFER_MAX_COMPILE_TIME)?;
        let size = |name| text(name).map(|value| size(name, value)).transpose();
        let max_disk = size(CARGO_METAINFER_MAX_DISK)?;
        let worker_memory = size(CARGO_METAINFER_WORKER_MEMORY)?;
        Ok(Self {
            home: path(METAINFER_HOME).or_else(|| data_dir(path)),
            cargo: path(CARGO).unwrap_or_else(|| PathBuf::from("cargo")),
            rustc: path(RUSTC).unwrap_or_else(|| PathBuf::from("rustc")),
            color: text(CARGO_TERM_COLOR),
            no_color: get(NO_COLOR).is_some(),
            is_dumb_terminal: text(TERM).as_deref() == Some("dumb"),
            is_ci: get(CI).is_some(),
            overrides: Overrides {
                max_evaluations,
                min_gain,
                seed,
                max_time,
                max_compile_time,
                max_disk,
                worker_memory,
            },
            log: text(CARGO_METAINFER_LOG),
        })
    }
}

fn duration(name: &'static str, value: String) -> Result<Duration, VariableError> {
    let parsed = humantime::parse_duration(&value);
    parsed.map_err(|_| wrong(name, "a span of time such as `90s` or `30m`", value))
}

fn size(name: &'static str, value: String) -> Result<Size, VariableError> {
    value.parse().map_err(|_| wrong(name, SIZE, value))
}

fn wrong(name: &'static str, expected: &'static str, value: String) -> VariableError {
    VariableError {
        name,
        expected,
        value,
    }
}

/// Returns where the platform keeps a user's data for this tool.
fn data_dir(path: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let base = if cfg!(windows) {
        path("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        path("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        path("XDG_DATA_HOME")
            .filter(|dir| dir.is_absolute())
            .or_else(|| path("HOME").map(|home| home.join(".local/share")))
    };
    base.map(|base| base.join("metainfer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Environment, VariableError> {
        Environment::from_lookup(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn metainfer_home_goes_before_the_platform() {
        let environment = read(&[(METAINFER_HOME, "/h"), ("HOME", "/u")]).unwrap();
        assert_eq!(environment.home, Some(PathBuf::from("/h")));
        let environment = read(&[("HOME", "/u")]).unwrap();
        assert!(environment.home.unwrap().starts_with("/u"));
        assert_eq!(read(&[]).unwrap().home, None);
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        let environment = read(&[(NO_COLOR, ""), (RUSTC, "")]).unwrap();
        assert!(!environment.no_color);
        assert_eq!(environment.rustc, PathBuf::from("rustc"));
    }

    #[test]
    fn a_wrong_value_names_the_variable() {
        for (name, expected) in [
            (CARGO_METAINFER_MAX_EVALUATIONS, "a whole number from 1 up"),
            (CARGO_METAINFER_MIN_GAIN, "a number from 0 to below 1"),
            (CARGO_METAINFER_SEED, "a whole number"),
            (
                CARGO_METAINFER_MAX_TIME,
                "a span of time such as `90s` or `30m`",
            ),
            (
                CARGO_METAINFER_MAX_COMPILE_TIME,
                "a span of time such as `90s` or `30m`",
            ),
            (CARGO_METAINFER_MAX_DISK, SIZE),
            (CARGO_METAINFER_WORKER_MEMORY, SIZE),
        ] {
            assert_eq!(
                read(&[(name, "many")]).unwrap_err().to_string(),
                format!("environment variable `{name}` must be {expected}, not `many`")
            );
        }
    }

    #[test]
    fn every_variable_is_listed_once() {
        let mut names: Vec<_> = VARIABLES.iter().map(|variable| variable.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), VARIABLES.len());
    }
}
