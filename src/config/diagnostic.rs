//! Findings about a configuration, with their place.

use std::fmt;
use std::path::PathBuf;

/// Whether a finding stops the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The command goes on.
    Warning,
    /// It does not.
    Error,
}

/// A place in a text file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// File as the user knows it, or `--config`.
    pub file: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// Something to know about a configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagnostic {
    /// Where.
    pub place: Place,
    /// Whether it stops the command.
    pub severity: Severity,
    /// Stable code, e.g. `unknown-key`.
    pub code: &'static str,
    /// What is wrong: a fragment, the key in backticks.
    pub message: String,
    /// What to do about it, if there is something.
    pub help: Option<String>,
}

impl Place {
    /// Finds the place of a byte offset; one past the end is the end.
    pub fn new(file: impl Into<PathBuf>, text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            file: file.into(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for Place {
    /// Formats as `metainfer.toml:3:1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

/// Returns the word of `known` that `word` is most likely meant to be, if any is near enough.
pub(super) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    known
        .iter()
        .map(|candidate| (distance(word, candidate), *candidate))
        .filter(|(n_edits, candidate)| {
            // Most slips that are many edits long are a word of the key left out.
            *n_edits <= limit || (word.len() >= 4 && candidate.contains(word))
        })
        .min()
        .map(|(_, candidate)| candidate)
}

/// Counts insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
fn distance(lhs: &str, rhs: &str) -> usize {
    let lhs: Vec<char> = lhs.chars().collect();
    let rhs: Vec<char> = rhs.chars().collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=rhs.len()).collect()];
    for (i, &l) in lhs.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &r) in rhs.iter().enumerate() {
            let mut best = (rows[i][j] + usize::from(l != r))
                .min(rows[i][j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && l == rhs[j - 1] && lhs[i - 1] == r {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[lhs.len()][rhs.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("seed", "seed"), 0);
        assert_eq!(distance("sede", "seed"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("max-evals", "max-evaluations"), 6);
    }

    #[test]
    fn nearest_finds_slips_and_nothing_far() {
        let known = ["max-evaluations", "min-gain", "seed"];
        assert_eq!(nearest("sead", &known), Some("seed"));
        assert_eq!(nearest("max_evaluations", &known), Some("max-evaluations"));
        assert_eq!(nearest("evaluations", &known), Some("max-evaluations"));
        assert_eq!(nearest("budget", &known), None);
    }

    #[test]
    fn place_counts_lines_and_characters() {
        let place = Place::new("f", "a\nüb c", 5);
        assert_eq!((place.line, place.column), (2, 3));
        assert_eq!(Place::new("f", "a\n", 99).line, 2);
    }
}
