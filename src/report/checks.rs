//! Answer of `check`: which deployments are locked and up to date.

use super::answer::Answer;
use super::json::{self, Message};
use crate::lock::{DeploymentKey, Finding};

/// One row for each model and target.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Checks {
    /// Sorted by model and target.
    pub rows: Vec<CheckRow>,
}

/// One deployment.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckRow {
    /// Which one.
    pub key: DeploymentKey,
    /// What differs.
    pub findings: Vec<Finding>,
}

impl Checks {
    /// Returns how many deployments are stale.
    pub fn n_stale(&self) -> usize {
        self.rows.iter().filter(|row| row.is_stale()).count()
    }
}

impl CheckRow {
    fn is_stale(&self) -> bool {
        self.findings.iter().any(Finding::is_stale)
    }

    fn word(&self) -> &'static str {
        if self.is_stale() { "stale" } else { "fresh" }
    }
}

impl Answer for Checks {
    fn human(&self, _: usize) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let DeploymentKey { model, target } = &row.key;
            text.extend([row.word(), " `", model, "` on `", target, "`"]);
            for (idx, finding) in row.findings.iter().enumerate() {
                let separator = if idx == 0 { ": " } else { "; " };
                text.extend([separator, &finding.to_string()]);
            }
            text.push('\n');
        }
        text
    }

    fn json(&self) -> Vec<Message<'_>> {
        self.rows
            .iter()
            .map(|row| {
                Message::Check(json::Check {
                    model: &row.key.model,
                    target: &row.key.target,
                    is_stale: row.is_stale(),
                    findings: row
                        .findings
                        .iter()
                        .map(|finding| json::Finding {
                            code: finding.code(),
                            message: finding.to_string(),
                        })
                        .collect(),
                })
            })
            .collect()
    }
}
