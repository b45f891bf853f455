//! A source file as `tidy` sees it: its module path, and its code without comments and tests.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// A file of the work tree.
pub(super) struct Source {
    /// Path from the root of the repository, with `/`.
    pub(super) path: String,
    /// The whole text.
    pub(super) text: String,
}

/// Something that is not as it should be.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    /// Path from the root of the repository.
    pub(super) path: String,
    /// Line, from 1; 0 for the file as a whole.
    pub(super) line: usize,
    /// What is wrong and what to do.
    pub(super) message: String,
}

impl Source {
    /// Returns whether all of the file is test code.
    pub(super) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("tests/")
    }

    /// Returns the path of the module that the file is, e.g. `["device", "probe"]`; empty for
    /// `lib.rs`.
    pub(super) fn module(&self) -> Vec<&str> {
        let path = self.path.strip_prefix("src/").unwrap_or(&self.path);
        let path = path.strip_suffix(".rs").unwrap_or(path);
        let mut module: Vec<_> = path.split('/').collect();
        if matches!(module.last(), Some(&"mod" | &"lib")) {
            module.pop();
        }
        module
    }

    /// Returns numbered lines of code: neither comments nor the test module at the end.
    pub(super) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let n_lines = if self.is_test() { 0 } else { self.code_len() };
        self.text
            .lines()
            .take(n_lines)
            .enumerate()
            .map(|(idx, line)| (idx + 1, uncommented(line)))
            .filter(|(_, line)| !line.is_empty())
    }

    /// Returns the number of lines before the test module.
    pub(super) fn code_len(&self) -> usize {
        let lines: Vec<_> = self.text.lines().collect();
        let is_test_module = |pair: &[&str]| {
            pair[0].trim() == "#[cfg(test)]"
                && pair[1].starts_with("mod ")
                && pair[1].ends_with('{')
        };
        lines
            .windows(2)
            .position(is_test_module)
            .unwrap_or(lines.len())
    }

    /// Makes a finding about a line of this file.
    pub(super) fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding {
            path: self.path.clone(),
            line,
            message: message.into(),
        }
    }
}

/// Reads the files below a directory, if it exists, whose names end as given; sorted by path.
pub(super) fn read_all(root: &Path, directory: &str, extensions: &[&str]) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    let start = root.join(directory);
    let mut pending = if start.exists() {
        vec![start]
    } else {
        Vec::new()
    };
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path)
                .with_context(|| format!("cannot read `{}`", path.display()))?
                .collect::<Result<Vec<_>, _>>()?;
            let kept = |name: &std::ffi::OsStr| name != "target" && name != "deployed";
            pending.extend(
                entries
                    .iter()
                    .filter(|entry| kept(&entry.file_name()))
                    .map(fs::DirEntry::path),
            );
        } else if extensions
            .iter()
            .any(|end| path.to_string_lossy().ends_with(end))
        {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read `{}`", path.display()))?;
            let path = path.strip_prefix(root).unwrap_or(&path);
            let path = path.to_string_lossy().replace('\\', "/");
            sources.push(Source { path, text });
        }
    }
    sources.sort_by(|lhs, rhs| lhs.path.cmp(&rhs.path));
    Ok(sources)
}

/// Cuts a line comment off, and the white space around the rest. `//` inside a string literal
/// stays.
fn uncommented(line: &str) -> &str {
    let mut in_string = false;
    let mut previous = ' ';
    for (idx, char) in line.char_indices() {
        match char {
            '"' if previous != '\\' && previous != '\'' => in_string = !in_string,
            '/' if previous == '/' && !in_string => return line[..idx - 1].trim(),
            _ => {}
        }
        previous = char;
    }
    line.trim()
}
