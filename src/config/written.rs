//! The configuration as written: every key optional, every value with its place.

use std::path::{Path, PathBuf};
use std::time::Duration;

use toml_edit::{Document, Item, TableLike};

use super::diagnostic::{Diagnostic, Place, Severity};
use super::model_entry::{ModelEntry, read_model};
use super::reader::{Reader, Section};
use super::size::Size;

/// A value and where it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Its place.
    pub place: Place,
}

/// One layer of configuration, as written.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Config {
    /// `model-dir`: every `*.onnx` file in it is a model named by its stem.
    pub model_dir: Option<Spanned<PathBuf>>,
    /// `[[model]]`: refines a model of `model-dir` or adds one.
    pub models: Vec<Spanned<ModelEntry>>,
    /// `[[target]]`; without any, there is one named `cpu`.
    pub targets: Vec<Spanned<TargetEntry>>,
    /// `[search]`.
    pub search: SearchEntry,
    /// `[cache]`.
    pub cache: CacheEntry,
}

/// A `[[target]]` table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TargetEntry {
    /// Name of the target.
    pub name: String,
    /// Name of the backend.
    pub backend: Option<String>,
    /// `host`, the name of a shipped profile, or a path to one.
    pub profile: Option<String>,
    /// Threads that a model may use.
    pub threads: Option<Spanned<u32>>,
}

/// The `[search]` table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SearchEntry {
    /// Real evaluations that one adaptation may spend.
    pub max_evaluations: Option<u32>,
    /// Gain that a challenger needs over the locked choice, as a fraction.
    pub min_gain: Option<f64>,
    /// Seed of everything random.
    pub seed: Option<u64>,
    /// Wall time of one search.
    pub max_time: Option<Duration>,
    /// Time of compilers of one search, added up.
    pub max_compile_time: Option<Duration>,
    /// What is kept in the target directory.
    pub max_disk: Option<Size>,
    /// Memory of a worker.
    pub worker_memory: Option<Size>,
    /// Time of one call of the compiler.
    pub compile_timeout: Option<Duration>,
    /// Time of one request to a worker.
    pub trial_timeout: Option<Duration>,
}

/// The `[cache]` table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CacheEntry {
    /// Address of the shared label store.
    pub url: Option<String>,
    /// `read-write`, `read-only` or `off`.
    pub mode: Option<String>,
}

/// What a text says, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parsed {
    /// The configuration; `None` if the text has no such table.
    pub config: Option<Config>,
    /// Findings, in order of their place.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the configuration in `text`, below the table at `table` (empty for the whole file).
///
/// Findings are collected, not returned one at a time; a value with an error is left out.
pub fn parse(file: &Path, text: &str, table: &[&str]) -> Parsed {
    let mut reader = Reader::new(file, text);
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let message = format!("not valid TOML: {}", error.message().trim());
            let span = error.span().unwrap_or(0..0);
            reader.push(Severity::Error, "invalid-toml", span, message, None);
            return Parsed {
                config: None,
                diagnostics: reader.diagnostics,
            };
        }
    };
    let mut item = Some(document.as_item());
    for key in table {
        item = item
            .and_then(Item::as_table_like)
            .and_then(|table| table.get(key));
    }
    let config = item
        .and_then(Item::as_table_like)
        .map(|root| read_config(&mut reader, root));
    let mut diagnostics = reader.diagnostics;
    diagnostics.sort();
    Parsed {
        config,
        diagnostics,
    }
}

fn read_config(reader: &mut Reader<'_>, root: &dyn TableLike) -> Config {
    let section = Section::new(root, "");
    reader.expect_keys(
        section,
        &["model-dir", "model", "target", "search", "cache"],
    );
    let model_dir = reader.path(section, "model-dir").map(|value| {
        let span = root.get("model-dir").and_then(Item::span);
        let place = reader.place(&span.unwrap_or(0..0));
        Spanned { value, place }
    });
    let models = reader
        .tables(section, "model")
        .into_iter()
        .filter_map(|(table, span)| {
            let value = read_model(reader, Section::new(table, "model"), &span)?;
            let place = reader.place(&span);
            Some(Spanned { value, place })
        })
        .collect();
    let targets = reader
        .tables(section, "target")
        .into_iter()
        .filter_map(|(table, span)| {
            let value = read_target(reader, Section::new(table, "target"), &span)?;
            let place = reader.place(&span);
            Some(Spanned { value, place })
        })
        .collect();
    let search = reader
        .table(section, "search")
        .map(|table| read_search(reader, Section::new(table, "search")));
    let cache = reader
        .table(section, "cache")
        .map(|table| read_cache(reader, Section::new(table, "cache")));
    Config {
        model_dir,
        models,
        targets,
        search: search.unwrap_or_default(),
        cache: cache.unwrap_or_default(),
    }
}

fn read_target(
    reader: &mut Reader<'_>,
    section: Section<'_>,
    span: &std::ops::Range<usize>,
) -> Option<TargetEntry> {
    reader.expect_keys(section, &["name", "backend", "profile", "threads"]);
    let name = read_name(reader, section, span);
    let threads = reader.integer(section, "threads", 1).map(|value| {
        let span = section.table.get("threads").and_then(Item::span);
        let place = reader.place(&span.unwrap_or(0..0));
        Spanned { value, place }
    });
    Some(TargetEntry {
        backend: reader.word(section, "backend", &["native"]),
        profile: reader.string(section, "profile"),
        threads,
        name: name?,
    })
}

fn read_search(reader: &mut Reader<'_>, section: Section<'_>) -> SearchEntry {
    let known = [
        "max-evaluations",
        "min-gain",
        "seed",
        "max-time",
        "max-compile-time",
        "max-disk",
        "worker-memory",
        "compile-timeout",
        "trial-timeout",
    ];
    reader.expect_keys(section, &known);
    SearchEntry {
        max_evaluations: reader.integer(section, "max-evaluations", 1),
        min_gain: reader.number(section, "min-gain", 0.0..1.0),
        seed: reader.integer(section, "seed", 0),
        max_time: reader.duration(section, "max-time"),
        max_compile_time: reader.duration(section, "max-compile-time"),
        max_disk: reader.size(section, "max-disk"),
        worker_memory: reader.size(section, "worker-memory"),
        compile_timeout: reader.timeout(section, "compile-timeout"),
        trial_timeout: reader.timeout(section, "trial-timeout"),
    }
}

fn read_cache(reader: &mut Reader<'_>, section: Section<'_>) -> CacheEntry {
    reader.expect_keys(section, &["url", "mode"]);
    reader.without_effect(
        section,
        "url",
        "labels are kept in the user's data directory",
    );
    CacheEntry {
        url: reader.string(section, "url"),
        mode: reader.word(section, "mode", &["read-write", "read-only", "off"]),
    }
}

/// Reads a name, which is part of file names, symbols and lockfile keys.
pub(super) fn read_name(
    reader: &mut Reader<'_>,
    section: Section<'_>,
    span: &std::ops::Range<usize>,
) -> Option<String> {
    let table = section.path;
    if !section.table.contains_key("name") {
        let message = format!("a `[[{table}]]` needs a `name`");
        reader.push(Severity::Error, "missing-key", span.clone(), message, None);
        return None;
    }
    let name = reader.string(section, "name")?;
    if super::settings::is_name(&name) {
        return Some(name);
    }
    let span = section.table.get("name").and_then(Item::span);
    reader.push(
        Severity::Error,
        "wrong-value",
        span.unwrap_or(0..0),
        format!("`{table}.name` must be letters, digits, `-`, `_` and `.`, not `{name}`"),
        None,
    );
    None
}
