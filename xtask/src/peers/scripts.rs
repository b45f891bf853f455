//! The Python side: its packages, and its programs written to where they run.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::shell;

/// What the virtual environment holds.
const PACKAGES: &str = "numpy==2.4.6\nonnx==1.23.2\nonnxruntime==1.32.0\nopenvino==2026.4.0\n\
                        tract==0.23.9\nsympy==1.14.0\n";
/// The programs and what they share.
const FILES: [(&str, &str); 6] = [
    ("race.py", include_str!("python/race.py")),
    ("start.py", include_str!("python/start.py")),
    ("engines.py", include_str!("python/engines.py")),
    ("inputs.py", include_str!("python/inputs.py")),
    ("fixed.py", include_str!("python/fixed.py")),
    ("quantize.py", include_str!("python/quantize.py")),
];
/// What would change how many threads numerical libraries start, or what they say.
const UNWANTED: [&str; 3] = [
    "OPENBLAS_CORETYPE",
    "OPENBLAS_NUM_THREADS",
    "OPENBLAS_VERBOSE",
];

/// An interpreter with the packages, and a directory with the programs.
pub(super) struct Scripts {
    python: PathBuf,
    directory: PathBuf,
}

impl Scripts {
    /// Makes both present.
    pub(super) fn install() -> Result<Self> {
        let python = shell::python("peers-venv", PACKAGES)?;
        let directory = shell::target("peers/python");
        fs::create_dir_all(&directory)?;
        for (name, text) in FILES {
            fs::write(directory.join(name), text)?;
        }
        Ok(Self { python, directory })
    }

    /// Returns a command that runs a program with at most so many threads.
    pub(super) fn command(&self, program: &str, threads: u32) -> Command {
        let mut command = shell::command(&self.python);
        for variable in UNWANTED {
            command.env_remove(variable);
        }
        let variables = ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "TBB_NUM_THREADS"];
        command.envs(variables.map(|name| (name, threads.to_string())));
        command.arg(self.directory.join(program));
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_pin_themselves_before_they_load_an_engine() {
        for program in ["race.py", "start.py"] {
            let (_, text) = FILES.iter().find(|(name, _)| *name == program).unwrap();
            let position = |part: &str| text.find(part).unwrap();
            assert!(position("sched_setaffinity") < position("from engines import"));
        }
    }
}
