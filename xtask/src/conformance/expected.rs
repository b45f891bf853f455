//! What the repository says about cases: which are expected to fail, are not covered or not run, and
//! why.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::verdict::{Outcome, Verdict};

/// The list.
const LIST: &str = include_str!("../../conformance.toml");

/// Cases that are expected to fail, or that are not run.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expected {
    /// Expected to fail.
    #[serde(default)]
    fails: Vec<Entry>,
    /// Not run.
    #[serde(default)]
    skipped: Vec<Entry>,
    /// Not covered, and not meant to be.
    #[serde(default)]
    not_covered: Vec<Refusal>,
}

/// Cases that have one reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Names; `*` stands for any characters.
    cases: Vec<String>,
    /// Why, for people.
    reason: String,
}

/// Cases that are refused, by what the refusal says or by their operator.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Refusal {
    /// What the refusals say; `*` stands for any characters.
    #[serde(default)]
    messages: Vec<String>,
    /// Operators that the cases count for; `*` stands for any characters.
    #[serde(default)]
    operators: Vec<String>,
    /// Why, for people.
    reason: String,
}

impl Expected {
    /// Reads the list of the repository.
    ///
    /// # Errors
    /// If it has another form, or an entry without a reason.
    pub(super) fn read() -> Result<Self> {
        Self::decode(LIST).context("cannot use `xtask/conformance.toml`")
    }

    fn decode(text: &str) -> Result<Self> {
        let expected: Self = toml_edit::de::from_str(text)?;
        for entry in expected.fails.iter().chain(&expected.skipped) {
            ensure!(
                !entry.reason.trim().is_empty() && !entry.cases.is_empty(),
                "{:?} has no reason or no cases",
                entry.cases
            );
        }
        for refusal in &expected.not_covered {
            let n_patterns = refusal.messages.len() + refusal.operators.len();
            ensure!(
                !refusal.reason.trim().is_empty() && n_patterns > 0,
                "{refusal:?} has no reason or no cases"
            );
        }
        Ok(expected)
    }

    /// Returns why a case is not run, if it is not.
    pub(super) fn skips(&self, case: &str) -> Option<&str> {
        reason(&self.skipped, case)
    }

    /// Returns why a case fails, if it is expected to.
    pub(super) fn fails(&self, case: &str) -> Option<&str> {
        reason(&self.fails, case)
    }

    /// Returns whether it is said why a case is not covered.
    pub(super) fn refuses(&self, operator: &str, verdict: &Verdict) -> bool {
        let message = verdict.reason.as_deref().unwrap_or_default();
        self.not_covered.iter().any(|refusal| {
            let is_of = |patterns: &[String], text: &str| {
                patterns.iter().any(|pattern| matches(pattern, text))
            };
            is_of(&refusal.messages, message) || is_of(&refusal.operators, operator)
        })
    }

    /// Says what is wrong with how a case went, if anything is.
    pub(super) fn objection(&self, case: &str, verdict: &Verdict) -> Option<String> {
        match (verdict.outcome, self.fails(case)) {
            (Outcome::Failed, None) => Some(verdict.reason.clone().unwrap_or_default()),
            (Outcome::Passed, Some(_)) => {
                Some("passes, but `xtask/conformance.toml` says that it fails".to_owned())
            }
            _ => None,
        }
    }

    /// Returns the names that no case has.
    pub(super) fn unknown(&self, cases: &[&str]) -> Vec<&str> {
        let entries = self.fails.iter().chain(&self.skipped);
        entries
            .flat_map(|entry| &entry.cases)
            .map(String::as_str)
            .filter(|pattern| !cases.iter().any(|case| matches(pattern, case)))
            .collect()
    }
}

fn reason<'a>(entries: &'a [Entry], case: &str) -> Option<&'a str> {
    let is_of = |entry: &&Entry| entry.cases.iter().any(|pattern| matches(pattern, case));
    entries
        .iter()
        .find(is_of)
        .map(|entry| entry.reason.as_str())
}

/// Returns whether a name is as a pattern says, in which `*` stands for any characters.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(rest) = name.strip_prefix(head) else {
        return false;
    };
    let mut ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    ends.any(|at| matches(tail, &rest[at..]))
}

#[cfg(test)]
mod tests {
    use super::super::verdict::{Form, Stage};
    use super::*;

    #[test]
    fn the_list_of_the_repository_can_be_used() {
        Expected::read().unwrap();
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name, is_match) in [
            ("test_add", "test_add", true),
            ("test_add", "test_add_bcast", false),
            ("test_add*", "test_add", true),
            ("test_*_bcast", "test_add_bcast", true),
            ("test_*_bcast", "test_add_bcast_2", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
        ] {
            assert_eq!(matches(pattern, name), is_match, "{pattern} {name}");
        }
    }

    #[test]
    fn failures_must_be_listed_and_what_is_listed_must_fail() {
        let expected = Expected::decode("[[fails]]\ncases = [\"a*\"]\nreason = \"rounding\"\n");
        let expected = expected.unwrap();
        let failed = Verdict::failed(Stage::Compare, "wrong", Form::default());
        let passed = Verdict::passed(Form::default());
        let refused = Verdict::not_covered(Stage::Load, "no");
        assert_eq!(expected.objection("b", &failed).unwrap(), "wrong");
        assert!(expected.objection("ab", &passed).is_some());
        assert!(expected.objection("ab", &failed).is_none());
        assert!(expected.objection("b", &passed).is_none());
        assert!(expected.objection("ab", &refused).is_none());
        assert_eq!(expected.unknown(&["b", "c"]), ["a*"]);
        assert!(expected.unknown(&["ab"]).is_empty());
    }

    #[test]
    fn refusals_are_known_by_message_or_operator() {
        let text = "[[not_covered]]\nmessages = [\"values of * type\"]\noperators = [\"Loop\"]\n\
                    reason = \"no\"\n";
        let expected = Expected::decode(text).unwrap();
        let refused = |message| Verdict::not_covered(Stage::Data, message);
        assert!(expected.refuses("Add", &refused("values of string type")));
        assert!(expected.refuses("Loop", &refused("loops are not")));
        assert!(!expected.refuses("Add", &refused("loops are not")));
        assert!(Expected::decode("[[not_covered]]\nreason = \"all\"\n").is_err());
    }

    #[test]
    fn entries_need_a_reason() {
        let decode = |reason| {
            let text = format!("[[skipped]]\ncases = [\"a\"]\nreason = \"{reason}\"\n");
            Expected::decode(&text)
        };
        assert_eq!(decode("slow").unwrap().skips("a"), Some("slow"));
        assert!(decode(" ").is_err());
        assert!(Expected::decode("[[skiped]]\ncases = []\nreason = \"\"\n").is_err());
    }
}
