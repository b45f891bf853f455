//! Answer of `deploy`: where the crate is.

use super::answer::Answer;
use super::json::{self, Message};
use crate::deploy::Exported;

/// A model that was written as a crate. For people, a status line says all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployed {
    /// Name of the model.
    pub model: String,
    /// Name of the target.
    pub target: String,
    /// Whether the choices come from the lock.
    pub is_tuned: bool,
    /// The crate.
    pub exported: Exported,
}

impl Answer for Deployed {
    fn human(&self, _: usize) -> String {
        String::new()
    }

    fn json(&self) -> Vec<Message<'_>> {
        vec![Message::Deployed(json::Deployed {
            model: &self.model,
            target: &self.target,
            tuned: self.is_tuned,
            package: &self.exported.package,
            manifest_path: self.exported.manifest.display().to_string(),
            n_changed: self.exported.n_changed,
        })]
    }
}
