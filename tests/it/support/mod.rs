//! What integration tests share: a workspace of their own and a way to run the tool in it.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests are tests too"
)]

pub(crate) mod inside;
pub(crate) mod locked;
pub(crate) mod records;
pub(crate) mod tiny;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Configuration of the fixture.
const FASHION: &str = "\
model-dir = \"models\"

[[model]]
name = \"fashion\"
inputs = { image = [1, 1, 28, 28] }
";

/// A temporary workspace with a package `demo`, an empty user directory, and nothing of the
/// user's environment but the toolchain.
pub(crate) struct Sandbox {
    dir: tempfile::TempDir,
    variables: Vec<(String, String)>,
    is_unprivileged: bool,
}

/// How a run of the tool ended.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let sandbox = Self {
            dir: tempfile::tempdir().unwrap(),
            variables: Vec::new(),
            is_unprivileged: false,
        };
        sandbox.file(
            "Cargo.toml",
            "[workspace]\n[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
        );
        sandbox.file("src/lib.rs", "");
        sandbox
    }

    /// As [`Sandbox::new`], with the model of `fixtures/fashion`, configured.
    pub(crate) fn with_fashion() -> Self {
        let sandbox = Self::new();
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/fashion");
        fs::create_dir(sandbox.path("models")).unwrap();
        fs::copy(
            fixture.join("models/fashion.onnx"),
            sandbox.path("models/fashion.onnx"),
        )
        .unwrap();
        sandbox.file("metainfer.toml", FASHION);
        sandbox
    }

    /// Returns the workspace's directory.
    pub(crate) fn root(&self) -> PathBuf {
        // Resolved, because cargo does so and messages name what cargo says.
        fs::canonicalize(self.dir.path()).unwrap().join("project")
    }

    /// Returns the user's data directory.
    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Returns a path in the workspace.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        let root = self.dir.path().join("project");
        root.join(path)
    }

    /// Writes a file of the workspace.
    pub(crate) fn file(&self, path: &str, content: &str) -> &Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// Writes a file of the workspace that is not text.
    pub(crate) fn bytes(&self, path: &str, content: &[u8]) -> &Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// Makes a file of the workspace with nothing in it that takes no space on the disk.
    pub(crate) fn sparse(&self, path: &str, bytes: u64) -> &Self {
        let file = fs::File::create(self.path(path)).unwrap();
        file.set_len(bytes).unwrap();
        self
    }

    /// Writes a shell script of the workspace.
    pub(crate) fn script(&self, path: &str, text: &str) -> &Self {
        self.file(path, &format!("#!/bin/sh\n{text}\n"));
        set_mode(&self.path(path), 0o755);
        self
    }

    /// Copies a file into the workspace.
    pub(crate) fn copy(&self, from: &Path, path: &str) -> &Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(from, path).unwrap();
        self
    }

    /// Reads a file of the workspace.
    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// Sets a variable for all later runs.
    pub(crate) fn variable(&mut self, name: &str, value: &str) -> &mut Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Takes the superuser's access to everything away from all later runs.
    pub(crate) fn unprivileged(&mut self) -> &mut Self {
        self.is_unprivileged = true;
        self
    }

    /// Runs the tool in the workspace with arguments separated by spaces.
    pub(crate) fn metainfer(&self, arguments: &str) -> Run {
        let mut args = vec!["metainfer"];
        args.extend(arguments.split_whitespace());
        self.run(&args)
    }

    /// Runs the tool in the workspace with exactly these arguments.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        let output = self.command(args).output().unwrap();
        let text = |bytes: &[u8]| {
            let root = self.root();
            String::from_utf8_lossy(bytes).replace(root.to_str().unwrap(), "[ROOT]")
        };
        Run {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// Returns a command that runs the tool in the workspace with exactly these arguments.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let program = env!("CARGO_BIN_EXE_cargo-metainfer");
        let mut command = if self.is_unprivileged {
            // Root without capabilities is bound by the permissions of its own files.
            let mut command = Command::new("setpriv");
            command.args(["--inh-caps=-all", "--bounding-set=-all", "--", program]);
            command
        } else {
            Command::new(program)
        };
        command.args(args).current_dir(self.root()).env_clear();
        for name in [
            "PATH",
            "HOME",
            "CARGO_HOME",
            "RUSTUP_HOME",
            "RUSTUP_TOOLCHAIN",
        ] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.env("METAINFER_HOME", self.home());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs git in the workspace.
    pub(crate) fn git(&self, arguments: &str) -> &Self {
        let status = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
            .args(arguments.split_whitespace())
            .current_dir(self.root())
            .output()
            .unwrap()
            .status;
        assert!(status.success(), "git {arguments}");
        self
    }
}

impl Run {
    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn code(self, expected: i32) -> Self {
        let Self {
            code,
            stdout,
            stderr,
        } = &self;
        assert_eq!(*code, Some(expected), "\n{stdout}\n{stderr}");
        self
    }

    /// Asserts all of stdout.
    #[track_caller]
    pub(crate) fn stdout(self, expected: &str) -> Self {
        assert_eq!(self.stdout, expected);
        self
    }

    /// Asserts all of stderr.
    #[track_caller]
    pub(crate) fn stderr(self, expected: &str) -> Self {
        assert_eq!(self.stderr, expected);
        self
    }

    /// Returns the messages of `--message-format json`.
    #[track_caller]
    pub(crate) fn messages(&self) -> Vec<serde_json::Value> {
        let parse = |line| serde_json::from_str(line).unwrap();
        self.stdout.lines().map(parse).collect()
    }
}

/// Makes a directory read-only; dropping the result makes it writable again, to be removed.
pub(crate) struct ReadOnly(PathBuf);

impl ReadOnly {
    pub(crate) fn new(path: &Path) -> Self {
        set_mode(path, 0o555);
        Self(path.to_owned())
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        set_mode(&self.0, 0o755);
    }
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
