//! What a project asks for: the written form ([`Config`]), the resolved form ([`Settings`]).
//!
//! The written form is `metainfer.toml`, or `[workspace.metadata.metainfer]` or
//! `[package.metadata.metainfer]` in `Cargo.toml`, or one `--config KEY=VALUE`. Everything in it is
//! optional. The resolved form has every value and nothing left to look up. This module takes
//! text and gives values: it opens no file and reads no environment.

mod diagnostic;
mod edit;
mod model_entry;
mod models;
mod reader;
mod samples;
mod settings;
mod size;
mod targets;
mod written;

pub use diagnostic::{Diagnostic, Place, Severity};
pub use edit::{Addition, EditError, add_to, new_file};
pub use model_entry::{AcceptEntry, ModelEntry, PreprocessEntry};
pub use samples::{Accept, Channels, Preprocess, Resize, SampleSettings};
pub use settings::{
    Layer, LimitSettings, Model, Objective, Overrides, SearchSettings, Settings, SettingsError,
    TargetSettings, TimeoutSettings,
};
pub use size::{ParseSizeError, SIZE, Size};
pub use written::{CacheEntry, Config, Parsed, SearchEntry, Spanned, TargetEntry, parse};

#[cfg(test)]
mod tests;
