//! How a case went.

use std::fmt;

use serde::Serialize;

/// How a case went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// The outputs are as expected.
    Passed,
    /// They are not, or there are none although nobody said that the case is not covered.
    Failed,
    /// Refused, with a reason.
    NotCovered,
    /// Not run, as the list in the repository says.
    Skipped,
}

/// Where a case ended that did not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stage {
    /// It has no form that could be run.
    Data,
    /// Its file could not be turned into a graph.
    Load,
    /// The backend could not build it.
    Build,
    /// The worker could not run it.
    Run,
    /// The outputs are others.
    Compare,
}

/// How a case went and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Verdict {
    /// How it went.
    pub(super) outcome: Outcome,
    /// Where it ended, if it did not pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stage: Option<Stage>,
    /// Why, if it did not pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// What was done to the model.
    #[serde(flatten)]
    pub(super) form: Form,
}

/// What was done to a model so that it could be run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Form {
    /// Inputs that were made constants, as shapes depend on their elements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) shape_inputs: Vec<String>,
    /// Inputs that were made constants, as the backend has no kernel that reads them otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) weight_inputs: Vec<String>,
    /// Whether loading computed all outputs, so that no kernel was run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_folded: bool,
}

impl Verdict {
    /// The outputs are as expected.
    pub(super) fn passed(form: Form) -> Self {
        Self {
            outcome: Outcome::Passed,
            stage: None,
            reason: None,
            form,
        }
    }

    /// Something is wrong.
    pub(super) fn failed(stage: Stage, reason: impl Into<String>, form: Form) -> Self {
        Self {
            outcome: Outcome::Failed,
            stage: Some(stage),
            reason: Some(reason.into()),
            form,
        }
    }

    /// Something was refused.
    pub(super) fn not_covered(stage: Stage, reason: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::NotCovered,
            stage: Some(stage),
            reason: Some(reason.into()),
            form: Form::default(),
        }
    }

    /// The list says not to run it.
    pub(super) fn skipped(reason: &str) -> Self {
        Self {
            outcome: Outcome::Skipped,
            stage: None,
            reason: Some(reason.to_owned()),
            form: Form::default(),
        }
    }
}

impl fmt::Display for Verdict {
    /// Formats as `failed at Compare: why [bound: names]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.outcome {
            Outcome::Passed if self.form.is_folded => "passed, computed by loading alone",
            Outcome::Passed => "passed",
            Outcome::Failed => "failed",
            Outcome::NotCovered => "not covered",
            Outcome::Skipped => "skipped",
        })?;
        if let Some(stage) = self.stage {
            write!(f, " at {stage:?}")?;
        }
        if let Some(reason) = &self.reason {
            write!(f, ": {reason}")?;
        }
        let Form {
            shape_inputs,
            weight_inputs,
            ..
        } = &self.form;
        for (what, names) in [("for shapes", shape_inputs), ("as weights", weight_inputs)] {
            if !names.is_empty() {
                write!(f, " [bound {what}: {}]", names.join(", "))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_say_what_was_bound() {
        let form = Form {
            shape_inputs: vec!["axes".to_owned()],
            weight_inputs: vec!["W".to_owned(), "B".to_owned()],
            is_folded: false,
        };
        let expected = "passed [bound for shapes: axes] [bound as weights: W, B]";
        assert_eq!(Verdict::passed(form).to_string(), expected);
        let refused = Verdict::not_covered(Stage::Load, "loops are not");
        assert_eq!(refused.to_string(), "not covered at Load: loops are not");
    }
}
