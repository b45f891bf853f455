//! The project: its workspace and its configuration, read and resolved.

use std::path::{Path, PathBuf};

use super::args::Global;
use super::files::{read_text, shown};
use super::run::Ctx;
use super::workspace::Workspace;
use super::{Environment, Error};
use crate::config::{self, Config, Layer, Overrides, Parsed, Settings, Severity};
use crate::report::Console;

/// A workspace with its settings.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Project {
    pub(crate) workspace: Workspace,
    pub(crate) settings: Settings,
    /// Whether the workspace is configured in its manifest.
    pub(crate) is_in_manifest: bool,
}

impl Project {
    /// Reads all layers of configuration, reports what is wrong with them, and resolves them.
    /// `overrides` are the flags of the command; they go before the environment.
    pub(crate) fn read(ctx: &Ctx, overrides: Overrides) -> Result<Self, Error> {
        let Ctx {
            global,
            environment,
            console,
        } = ctx;
        let workspace = Workspace::read(global, environment)?;
        let (layers, is_in_manifest) = read_layers(&workspace, global, environment, console)?;
        let Overrides {
            max_evaluations,
            min_gain,
            seed,
            max_time,
            max_compile_time,
            max_disk,
            worker_memory,
        } = environment.overrides;
        let overrides = Overrides {
            max_evaluations: overrides.max_evaluations.or(max_evaluations),
            min_gain: overrides.min_gain.or(min_gain),
            seed: overrides.seed.or(seed),
            max_time: overrides.max_time.or(max_time),
            max_compile_time: overrides.max_compile_time.or(max_compile_time),
            max_disk: overrides.max_disk.or(max_disk),
            worker_memory: overrides.worker_memory.or(worker_memory),
        };
        let settings = Settings::resolve(&layers, overrides)?;
        Ok(Self {
            workspace,
            settings,
            is_in_manifest,
        })
    }
}

/// Collects layers and counts what is wrong with them.
struct Collector<'a> {
    console: &'a Console,
    n_errors: usize,
    layers: Vec<Layer>,
}

fn read_layers(
    workspace: &Workspace,
    global: &Global,
    environment: &Environment,
    console: &Console,
) -> Result<(Vec<Layer>, bool), Error> {
    let mut collector = Collector {
        console,
        n_errors: 0,
        layers: Vec::new(),
    };
    if let Some(home) = &environment.home {
        collector.file(&home.join("config.toml"), &[], home, None)?;
    }
    let root = &workspace.root;
    let table = ["workspace", "metadata", "metainfer"];
    let is_in_manifest = collector.scope(root, &root.join("Cargo.toml"), &table, None, true)?;
    for member in workspace.selected(global)? {
        let table = ["package", "metadata", "metainfer"];
        let has_own_file = member.dir() != root;
        let package = Some(member.name.as_str());
        collector.scope(
            member.dir(),
            &member.manifest,
            &table,
            package,
            has_own_file,
        )?;
    }
    for text in &global.config {
        if !text.contains('=') {
            return Err(Error::usage(format!(
                "`--config` takes KEY=VALUE, not `{text}`"
            )));
        }
        let parsed = config::parse(Path::new("--config"), text, &[]);
        collector.add(parsed, root, None)?;
    }
    match collector.n_errors {
        0 => Ok((collector.layers, is_in_manifest)),
        1 => Err(Error::failed("the configuration has an error")),
        n => Err(Error::failed(format!("the configuration has {n} errors"))),
    }
}

impl Collector<'_> {
    /// Adds the configuration of a workspace or a package: a file of its own or a table of its
    /// manifest, not both. Returns whether it is the manifest.
    fn scope(
        &mut self,
        dir: &Path,
        manifest: &Path,
        table: &[&str],
        package: Option<&str>,
        has_own_file: bool,
    ) -> Result<bool, Error> {
        let file = dir.join("metainfer.toml");
        let from_file = has_own_file && self.file(&file, &[], dir, package)?;
        let from_manifest = self.file(manifest, table, dir, package)?;
        if from_file && from_manifest {
            let (file, manifest) = (shown(&file), shown(manifest));
            return Err(Error::failed(format!(
                "both `{}` and `[{}]` in `{}` configure this",
                file.display(),
                table.join("."),
                manifest.display()
            ))
            .help(format!("move all keys to `{}`", file.display())));
        }
        Ok(from_manifest)
    }

    /// Adds a table of a file; returns whether there is one.
    fn file(
        &mut self,
        path: &Path,
        table: &[&str],
        dir: &Path,
        package: Option<&str>,
    ) -> Result<bool, Error> {
        let Some(text) = read_text(path)? else {
            return Ok(false);
        };
        let parsed = config::parse(&shown(path), &text, table);
        let is_there = parsed.config.is_some();
        self.add(parsed, dir, package)?;
        Ok(is_there)
    }

    fn add(&mut self, parsed: Parsed, dir: &Path, package: Option<&str>) -> Result<(), Error> {
        for diagnostic in &parsed.diagnostics {
            self.n_errors += usize::from(diagnostic.severity == Severity::Error);
            self.console.diagnostic(diagnostic);
        }
        if let Some(config) = parsed.config {
            self.layers.push(Layer {
                package: package.map(str::to_owned),
                dir: dir.to_owned(),
                onnx_files: list_models(&config, dir)?,
                config,
            });
        }
        Ok(())
    }
}

/// Lists the ONNX files of a layer's `model-dir`, sorted.
fn list_models(config: &Config, dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let Some(model_dir) = &config.model_dir else {
        return Ok(Vec::new());
    };
    let path = dir.join(&model_dir.value);
    let entries = std::fs::read_dir(&path).map_err(|error| {
        Error::failed(error)
            .context(format!(
                "{}: cannot read `model-dir` `{}`",
                model_dir.place,
                shown(&path).display()
            ))
            .help("create the directory, or remove the key and list models as `[[model]]`")
    })?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "onnx")
        })
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    Ok(files)
}
