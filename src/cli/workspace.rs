//! The Cargo workspace: read with `cargo metadata`, never by walking up directories.

use std::path::{Path, PathBuf};

use cargo_metadata::MetadataCommand;

use super::args::Global;
use super::{Environment, Error};

/// What of a workspace matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Workspace {
    /// Directory of the workspace's manifest.
    pub(crate) root: PathBuf,
    /// Cargo's target directory.
    pub(crate) target_dir: PathBuf,
    /// Members, sorted by name.
    pub(crate) members: Vec<Member>,
}

/// A package of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) manifest: PathBuf,
}

impl Workspace {
    /// Asks cargo.
    pub(crate) fn read(global: &Global, environment: &Environment) -> Result<Self, Error> {
        let mut command = MetadataCommand::new();
        command.cargo_path(&environment.cargo).no_deps();
        if let Some(path) = &global.manifest_path {
            command.manifest_path(path);
        }
        if global.is_offline() {
            command.other_options(["--offline".to_owned()]);
        }
        let metadata = command.exec().map_err(|error| match error {
            cargo_metadata::Error::Io(source) => Error::failed(source)
                .context(format!("cannot run `{}`", environment.cargo.display()))
                .help("install Rust from https://rustup.rs, or set the variable `CARGO`"),
            error => Error::from(error),
        })?;
        let mut members: Vec<Member> = metadata
            .workspace_packages()
            .into_iter()
            .map(|package| Member {
                name: package.name.to_string(),
                manifest: package.manifest_path.clone().into_std_path_buf(),
            })
            .collect();
        members.sort();
        let target_dir = match &global.target_dir {
            Some(dir) => std::path::absolute(dir).unwrap_or_else(|_| dir.clone()),
            None => metadata.target_directory.into_std_path_buf(),
        };
        Ok(Self {
            root: metadata.workspace_root.into_std_path_buf(),
            target_dir,
            members,
        })
    }

    /// Returns the members that `-p` and `--exclude` leave.
    pub(crate) fn selected(&self, global: &Global) -> Result<Vec<&Member>, Error> {
        for name in global.package.iter().chain(&global.exclude) {
            if !self.members.iter().any(|member| member.name == *name) {
                let names: Vec<_> = self.members.iter().map(|m| m.name.as_str()).collect();
                return Err(
                    Error::usage(format!("package `{name}` is not in the workspace"))
                        .help(format!("packages: {}", names.join(", "))),
                );
            }
        }
        let is_selected = |member: &&Member| {
            (global.package.is_empty() || global.package.contains(&member.name))
                && !global.exclude.contains(&member.name)
        };
        Ok(self.members.iter().filter(is_selected).collect())
    }

    /// Returns the path of the lockfile.
    pub(crate) fn lockfile(&self) -> PathBuf {
        self.root.join("metainfer.lock")
    }

    /// Returns the path of the workspace's own configuration file.
    pub(crate) fn config_file(&self) -> PathBuf {
        self.root.join("metainfer.toml")
    }
}

impl Member {
    /// Returns the directory of the package.
    pub(crate) fn dir(&self) -> &Path {
        self.manifest.parent().unwrap_or(Path::new(""))
    }
}
