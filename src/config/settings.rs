//! The configuration resolved: every value present, nothing left to look up.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::written::Config;
use super::{Accept, Place, SampleSettings, Size, models, targets};
use crate::graph::Shape;

/// One layer of configuration and what is needed to read its relative paths.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Layer {
    /// Package that the layer belongs to; `None` for the user, the workspace and the command line.
    pub package: Option<String>,
    /// Directory that relative paths start from.
    pub dir: PathBuf,
    /// What is written.
    pub config: Config,
    /// The `*.onnx` files in the layer's `model-dir`, in any order.
    pub onnx_files: Vec<PathBuf>,
}

/// Values given by environment variables or flags, which go before every file.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Overrides {
    /// `--max-evaluations`.
    pub max_evaluations: Option<u32>,
    /// `--min-gain`.
    pub min_gain: Option<f64>,
    /// `--seed`.
    pub seed: Option<u64>,
    /// `--max-time`.
    pub max_time: Option<Duration>,
    /// `--max-compile-time`.
    pub max_compile_time: Option<Duration>,
    /// `--max-disk`.
    pub max_disk: Option<Size>,
    /// `--worker-memory`.
    pub worker_memory: Option<Size>,
}

/// Everything that the configuration decides.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Models, sorted by name.
    pub models: Vec<Model>,
    /// Targets, sorted by name; never empty.
    pub targets: Vec<TargetSettings>,
    /// How much to search.
    pub search: SearchSettings,
    /// What a search may use beside evaluations.
    pub limits: LimitSettings,
    /// When something hangs.
    pub timeouts: TimeoutSettings,
}

/// A model that the project names.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Name, unique in the workspace.
    pub name: String,
    /// ONNX file.
    pub path: PathBuf,
    /// Shapes given for inputs, by name.
    pub inputs: BTreeMap<String, Shape>,
    /// Where its samples are.
    pub samples: SampleSettings,
    /// What a deployment must keep to.
    pub accept: Accept,
    /// What is minimised.
    pub objective: Objective,
}

/// What an adaptation minimises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Objective {
    /// Time of one run.
    #[default]
    Latency,
}

/// A target as configured; [`crate::device::Target`] is what it resolves to on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetSettings {
    /// Name, unique in the workspace.
    pub name: String,
    /// Name of the backend.
    pub backend: String,
    /// `host`, the name of a shipped profile, or a path to one.
    pub profile: String,
    /// Directory that a relative path to a profile starts from.
    pub dir: PathBuf,
    /// Threads that a model may use.
    pub threads: u32,
    /// Where their number is written, if it is.
    pub threads_place: Option<Place>,
}

/// How much to search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SearchSettings {
    /// Real evaluations that one adaptation of one model to one target may spend.
    pub max_evaluations: u32,
    /// Gain that a challenger needs over the locked choice, as a fraction.
    pub min_gain: f64,
    /// Seed of everything random.
    pub seed: u64,
}

/// What the search of one model for one target may use at most; time is not limited by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitSettings {
    /// Wall time until the finals begin.
    pub max_time: Option<Duration>,
    /// Time of compilers, added up.
    pub max_compile_time: Option<Duration>,
    /// What is kept in the target directory between runs.
    pub max_disk: Size,
    /// Memory of a worker; a share of the machine's if it is not given.
    pub worker_memory: Option<Size>,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            max_time: None,
            max_compile_time: None,
            max_disk: Size(4 << 30),
            worker_memory: None,
        }
    }
}

/// How long one step of an adaptation may take before it counts as hanging.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeoutSettings {
    /// One call of the compiler.
    pub compile_timeout: Duration,
    /// One request to a worker, such as timing an artifact.
    pub trial_timeout: Duration,
}

impl Default for TimeoutSettings {
    /// Returns what the largest models stay below by far.
    fn default() -> Self {
        Self {
            compile_timeout: Duration::from_mins(2),
            trial_timeout: Duration::from_mins(1),
        }
    }
}

/// Layers that do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Two models or targets have one name.
    #[error("two {what}s are named `{name}`: {first} and {second}")]
    Duplicate {
        /// `model` or `target`.
        what: &'static str,
        /// The name.
        name: String,
        /// Where it is first given.
        first: String,
        /// Where it is given again.
        second: String,
    },
    /// A `[[model]]` gives no path and refines nothing.
    #[error(
        "{place}: model `{name}` has no file: `path` is not given and no file of `model-dir` is named `{name}.onnx`"
    )]
    NoFile {
        /// Name of the model.
        name: String,
        /// Where it is declared.
        place: Place,
    },
    /// The stem of a file in `model-dir` cannot be a model's name.
    #[error("the file name of `{}` is not a model name: letters, digits, `-`, `_` and `.` only", path.display())]
    FileName {
        /// The file.
        path: PathBuf,
    },
    /// Two selected packages set one key differently.
    #[error("packages `{first}` and `{second}` disagree on `{key}`")]
    Disagreement {
        /// The key.
        key: &'static str,
        /// The package that sets it first.
        first: String,
        /// The package that sets it otherwise.
        second: String,
    },
}

impl Settings {
    /// Resolves layers into settings.
    ///
    /// Precedence, later wins: built-in < user (`config.toml` in the user's data directory) <
    /// workspace (`metainfer.toml` beside the workspace's manifest or
    /// `[workspace.metadata.metainfer]` in it) < selected packages (the same beside and in their
    /// manifests) < `--config` < environment < flags. `layers` are given in this order;
    /// `overrides` are environment and flags. A `[[target]]` that an earlier layer has already
    /// given is refined key by key; so is a `[[model]]` of the same directory.
    ///
    /// # Errors
    /// [`SettingsError`] if layers contradict each other or a model has no file.
    pub fn resolve(layers: &[Layer], overrides: Overrides) -> Result<Self, SettingsError> {
        let models = models::resolve(layers)?;
        let targets = targets::resolve(layers)?;
        let Overrides {
            max_evaluations,
            min_gain,
            seed,
            max_time,
            max_compile_time,
            max_disk,
            worker_memory,
        } = overrides;
        let search = SearchSettings {
            max_evaluations: match max_evaluations {
                Some(value) => value,
                None => last(layers, "search.max-evaluations", |c| {
                    c.search.max_evaluations
                })?
                .unwrap_or(300),
            },
            min_gain: match min_gain {
                Some(value) => value,
                None => last(layers, "search.min-gain", |c| c.search.min_gain)?.unwrap_or(0.03),
            },
            seed: match seed {
                Some(value) => value,
                None => last(layers, "search.seed", |c| c.search.seed)?.unwrap_or(0),
            },
        };
        let limits = LimitSettings {
            max_time: match max_time {
                Some(value) => Some(value),
                None => last(layers, "search.max-time", |c| c.search.max_time)?,
            },
            max_compile_time: match max_compile_time {
                Some(value) => Some(value),
                None => last(layers, "search.max-compile-time", |c| {
                    c.search.max_compile_time
                })?,
            },
            max_disk: match max_disk {
                Some(value) => value,
                None => last(layers, "search.max-disk", |c| c.search.max_disk)?
                    .unwrap_or(LimitSettings::default().max_disk),
            },
            worker_memory: match worker_memory {
                Some(value) => Some(value),
                None => last(layers, "search.worker-memory", |c| c.search.worker_memory)?,
            },
        };
        let default = TimeoutSettings::default();
        let timeouts = TimeoutSettings {
            compile_timeout: last(layers, "search.compile-timeout", |c| {
                c.search.compile_timeout
            })?
            .unwrap_or(default.compile_timeout),
            trial_timeout: last(layers, "search.trial-timeout", |c| c.search.trial_timeout)?
                .unwrap_or(default.trial_timeout),
        };
        Ok(Self {
            models,
            targets,
            search,
            limits,
            timeouts,
        })
    }
}

impl Objective {
    /// Returns the word used in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
        }
    }
}

/// Returns whether a word may name a model or a target: it becomes a file name, part of a symbol
/// and a key of the lockfile.
pub(super) fn is_name(word: &str) -> bool {
    !word.starts_with('.')
        && !word.is_empty()
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Returns the value of the last layer that has one.
fn last<T: PartialEq>(
    layers: &[Layer],
    key: &'static str,
    get: impl Fn(&Config) -> Option<T>,
) -> Result<Option<T>, SettingsError> {
    let mut found: Option<(&Layer, T)> = None;
    for layer in layers {
        let Some(value) = get(&layer.config) else {
            continue;
        };
        if let Some((earlier, old)) = &found {
            disagree(earlier, layer, key, *old == value)?;
        }
        found = Some((layer, value));
    }
    Ok(found.map(|(_, value)| value))
}

/// Fails if two different packages set a key to different values.
pub(super) fn disagree(
    first: &Layer,
    second: &Layer,
    key: &'static str,
    are_equal: bool,
) -> Result<(), SettingsError> {
    match (&first.package, &second.package) {
        (Some(first), Some(second)) if first != second && !are_equal => {
            Err(SettingsError::Disagreement {
                key,
                first: first.clone(),
                second: second.clone(),
            })
        }
        _ => Ok(()),
    }
}

pub(super) fn duplicate(
    what: &'static str,
    name: &str,
    first: &str,
    second: &str,
) -> SettingsError {
    SettingsError::Duplicate {
        what,
        name: name.to_owned(),
        first: first.to_owned(),
        second: second.to_owned(),
    }
}
