//! What a command answers: a text for people, messages for machines.

use super::json::{self, Message};

/// An answer of a command.
pub trait Answer {
    /// Renders for people, lines at most `width` columns wide where that is possible.
    fn human(&self, width: usize) -> String;

    /// Renders for machines.
    fn json(&self) -> Vec<Message<'_>>;
}

/// A file that a command would write, shown because of `--dry-run`, or did write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// Path.
    pub path: String,
    /// Whether it was only shown.
    pub is_dry_run: bool,
    /// Content.
    pub content: String,
}

impl Answer for Created {
    fn human(&self, _: usize) -> String {
        if self.is_dry_run {
            self.content.clone()
        } else {
            String::new()
        }
    }

    fn json(&self) -> Vec<Message<'_>> {
        vec![Message::Created(json::Created {
            path: &self.path,
            dry_run: self.is_dry_run,
            content: &self.content,
        })]
    }
}
