//! `init`: a configuration for the ONNX files that are there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::cli::Error;
use crate::cli::exit_code::Outcome;
use crate::cli::files::{read_text, shown};
use crate::cli::project::Project;
use crate::cli::run::Ctx;
use crate::config::{self, Addition, Overrides};
use crate::fsx;
use crate::report::Created;

/// Directories below the workspace that are searched.
const MAX_DEPTH: usize = 8;

/// Write a configuration for the ONNX files of the workspace
///
/// Finds ONNX files below the workspace's directory and writes `metainfer.toml` for them, or adds
/// those that are missing to the one that is there. Comments and settings are kept.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// Creates `metainfer.toml`, or adds models to it.
pub(crate) fn run(args: &Args, ctx: &Ctx) -> Result<Outcome, Error> {
    let Args { dry_run } = *args;
    let project = Project::read(ctx, Overrides::default())?;
    let root = &project.workspace.root;
    let known: BTreeSet<PathBuf> = project
        .settings
        .models
        .iter()
        .map(|model| normal(&model.path))
        .collect();
    let mut found = find_models(root, &project.workspace.target_dir);
    found.retain(|path| !known.contains(&normal(path)));

    let path = project.workspace.config_file();
    let text = read_text(&path)?;
    if found.is_empty() && (text.is_some() || !known.is_empty()) {
        ctx.console
            .status("Fresh", "every ONNX file of the workspace is configured");
        return Ok(Outcome::Done);
    }
    let names = project.settings.models.iter().map(|m| m.name.clone());
    let taken: BTreeSet<String> = names.collect();
    let content = match &text {
        Some(text) => {
            config::add_to(text, &addition(root, &found, taken, false)).map_err(|error| {
                Error::from(error).context(format!("cannot edit `{}`", shown(&path).display()))
            })?
        }
        None if project.is_in_manifest => {
            return Err(Error::failed(format!(
                "the workspace is configured in `{}`, which init does not edit",
                shown(&root.join("Cargo.toml")).display()
            ))
            .help("add a `[[workspace.metadata.metainfer.model]]` for each new file")
            .help("or move the table to `metainfer.toml` and run cargo metainfer init again"));
        }
        None => config::new_file(&addition(root, &found, taken, true)),
    };
    let created = Created {
        path: shown(&path).display().to_string(),
        is_dry_run: dry_run,
        content,
    };
    if !dry_run {
        fsx::replace(&path, created.content.as_bytes())?;
        let verb = if text.is_some() {
            "Extended"
        } else {
            "Created"
        };
        let models = match found.len() {
            0 => "no ONNX file found yet".to_owned(),
            1 => "1 model".to_owned(),
            n => format!("{n} models"),
        };
        ctx.console
            .status(verb, &format!("`{}` ({models})", created.path));
    }
    ctx.console.answer(&created);
    Ok(Outcome::Done)
}

/// Finds ONNX files below a directory, sorted: not in hidden directories, not in Cargo's target
/// directory, not through links.
fn find_models(root: &Path, target_dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![(root.to_owned(), 0)];
    while let Some((dir, depth)) = pending.pop() {
        // What cannot be read cannot be a model of this user.
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let (Ok(file_type), path) = (entry.file_type(), entry.path()) else {
                continue;
            };
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            if file_type.is_dir() && !is_hidden && depth < MAX_DEPTH && path != target_dir {
                pending.push((path, depth + 1));
            } else if path.extension().is_some_and(|ext| ext == "onnx") && path.is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Decides how to name the files: the directory with most of them becomes `model-dir` if
/// `with_dir`, the others get a `[[model]]` each.
fn addition(
    root: &Path,
    found: &[PathBuf],
    mut taken: BTreeSet<String>,
    with_dir: bool,
) -> Addition {
    let mut by_dir: BTreeMap<&Path, usize> = BTreeMap::new();
    for path in found {
        *by_dir.entry(path.parent().unwrap_or(root)).or_default() += 1;
    }
    let model_dir = by_dir
        .into_iter()
        .max_by_key(|&(dir, n_files)| (n_files, std::cmp::Reverse(dir)))
        .map(|(dir, _)| dir)
        .filter(|_| with_dir);
    let is_listed = |path: &Path| {
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        path.parent() == model_dir && stem.is_some_and(|stem| clean(stem) == stem)
    };
    taken.extend(
        found
            .iter()
            .filter(|path| is_listed(path))
            .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())),
    );
    let mut models = Vec::new();
    for path in found.iter().filter(|path| !is_listed(path)) {
        let name = free_name(path, &mut taken);
        models.push((name, relative(root, path)));
    }
    Addition {
        model_dir: model_dir.map(|dir| relative(root, dir)),
        models,
    }
}

/// Makes a name of a file's stem that nothing has yet.
fn free_name(path: &Path, taken: &mut BTreeSet<String>) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let base = clean(&stem);
    let mut name = base.clone();
    let mut n = 1;
    while !taken.insert(name.clone()) {
        n += 1;
        name = format!("{base}-{n}");
    }
    name
}

/// Replaces what a name must not have.
fn clean(stem: &str) -> String {
    let cleaned: String = stem
        .chars()
        .map(|c| match c {
            c if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') => c,
            _ => '-',
        })
        .collect();
    let cleaned = cleaned.trim_start_matches('.');
    if cleaned.is_empty() {
        "model".to_owned()
    } else {
        cleaned.to_owned()
    }
}

/// Returns a path relative to the workspace, with slashes, as it is written in files.
fn relative(root: &Path, path: &Path) -> String {
    let relative = path.strip_prefix(root).unwrap_or(path);
    let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
    if parts.is_empty() {
        ".".to_owned()
    } else {
        parts.join("/")
    }
}

/// Returns a path that can be compared with others of the same file.
fn normal(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(files: &[&str], taken: &[&str], with_dir: bool) -> Addition {
        let found: Vec<PathBuf> = files.iter().map(|f| Path::new("/w").join(f)).collect();
        let taken = taken.iter().map(|&name| name.to_owned()).collect();
        addition(Path::new("/w"), &found, taken, with_dir)
    }

    fn models(addition: &Addition) -> Vec<(&str, &str)> {
        let models = addition.models.iter();
        models.map(|(n, p)| (n.as_str(), p.as_str())).collect()
    }

    #[test]
    fn the_directory_with_most_files_is_the_model_dir() {
        let addition = plan(&["b/x.onnx", "models/x.onnx", "models/y.onnx"], &[], true);
        assert_eq!(addition.model_dir.as_deref(), Some("models"));
        assert_eq!(models(&addition), [("x-2", "b/x.onnx")]);
    }

    #[test]
    fn a_file_in_the_root_makes_the_root_the_model_dir() {
        let addition = plan(&["net.onnx"], &[], true);
        assert_eq!(addition.model_dir.as_deref(), Some("."));
        assert_eq!(models(&addition), []);
    }

    #[test]
    fn stems_that_are_no_names_get_an_entry() {
        let addition = plan(&["m/a.onnx", "m/my net (2).onnx"], &[], true);
        assert_eq!(models(&addition), [("my-net--2-", "m/my net (2).onnx")]);
    }

    #[test]
    fn an_existing_configuration_gets_entries_only() {
        let addition = plan(&["m/a.onnx", "n/a.onnx"], &["a"], false);
        assert_eq!(addition.model_dir, None);
        assert_eq!(
            models(&addition),
            [("a-2", "m/a.onnx"), ("a-3", "n/a.onnx")]
        );
    }
}
