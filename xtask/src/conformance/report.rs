//! What a run says: a table by operator, what is wrong, and all of it as JSON.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Result;
use serde::Serialize;

use super::suite::Case;
use super::verdict::{Outcome, Verdict};
use crate::shell;

/// How the cases of an operator went.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Tally {
    /// Cases whose outputs are right.
    passed: usize,
    /// Those of them that loading computed as a whole.
    folded: usize,
    /// Those of them with inputs bound that shapes depend on.
    bound_shapes: usize,
    /// Those of them with inputs bound that the backend must know.
    bound_weights: usize,
    /// Cases whose outputs are wrong, or that fail otherwise.
    failed: usize,
    /// Cases that are refused.
    not_covered: usize,
    /// Cases that were not run.
    skipped: usize,
    /// Why cases are not covered, and how many.
    reasons: BTreeMap<String, usize>,
}

#[derive(Serialize)]
struct Report<'a> {
    version: u32,
    totals: &'a Tally,
    /// Of the cases of operators with at least one that passed or failed.
    passed_share_of_covered: Option<f64>,
    operators: &'a BTreeMap<&'a str, Tally>,
    cases: Vec<Line<'a>>,
}

#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    kind: &'a str,
    operator: &'a str,
    #[serde(flatten)]
    verdict: &'a Verdict,
}

impl Tally {
    fn add(&mut self, verdict: &Verdict) {
        match verdict.outcome {
            Outcome::Passed => {
                self.passed += 1;
                self.folded += usize::from(verdict.form.is_folded);
                self.bound_shapes += usize::from(!verdict.form.shape_inputs.is_empty());
                self.bound_weights += usize::from(!verdict.form.weight_inputs.is_empty());
            }
            Outcome::Failed => self.failed += 1,
            Outcome::NotCovered => {
                self.not_covered += 1;
                let reason = verdict.reason.clone().unwrap_or_default();
                *self.reasons.entry(reason).or_default() += 1;
            }
            Outcome::Skipped => self.skipped += 1,
        }
    }

    /// Returns the share of passed cases among those that passed or failed.
    fn share(&self) -> Option<f64> {
        let n = self.passed + self.failed;
        (n > 0).then(|| self.passed as f64 / n as f64)
    }

    /// Returns the most frequent reason why cases are not covered.
    fn main_reason(&self) -> &str {
        let most = self.reasons.iter().max_by_key(|(_, n)| **n);
        most.map_or("", |(reason, _)| reason.as_str())
    }
}

/// Counts cases by operator.
pub(super) fn tally<'a>(tried: &[(&'a Case, Verdict)]) -> BTreeMap<&'a str, Tally> {
    let mut operators = BTreeMap::<&str, Tally>::new();
    for (case, verdict) in tried {
        operators.entry(&case.operator).or_default().add(verdict);
    }
    operators
}

/// Prints the table and writes `target/conformance/report.json`, or `report.partial.json` if not all
/// cases were tried.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn publish(tried: &[(&Case, Verdict)], is_whole: bool) -> Result<()> {
    let operators = tally(tried);
    let mut totals = Tally::default();
    for (_, verdict) in tried {
        totals.add(verdict);
    }
    print(&operators, &totals);
    let report = Report {
        version: 1,
        totals: &totals,
        passed_share_of_covered: totals.share(),
        operators: &operators,
        cases: tried
            .iter()
            .map(|(case, verdict)| Line {
                name: &case.name,
                kind: &case.kind,
                operator: &case.operator,
                verdict,
            })
            .collect(),
    };
    let name = if is_whole {
        "report.json"
    } else {
        "report.partial.json"
    };
    let path = shell::target("conformance").join(name);
    fs::write(&path, serde_json::to_string_pretty(&report)?)?;
    println!("\nwritten to {}", path.display());
    Ok(())
}

fn print(operators: &BTreeMap<&str, Tally>, totals: &Tally) {
    /// Longest reason in the table.
    const WIDTH: usize = 90;
    let width = operators.keys().map(|name| name.len()).max().unwrap_or(0);
    println!(
        "{:width$} {:>6} {:>6} {:>11}  reason",
        "operator", "passed", "failed", "not covered"
    );
    for (operator, tally) in operators {
        let reason: String = tally.main_reason().chars().take(WIDTH).collect();
        let Tally {
            passed,
            failed,
            not_covered,
            ..
        } = tally;
        let line = format!("{operator:width$} {passed:>6} {failed:>6} {not_covered:>11}  {reason}");
        println!("{}", line.trim_end());
    }
    println!(
        "\n{} passed ({} computed by loading alone, {} with inputs bound that shapes depend on, {} \
         with weights bound), {} failed, {} not covered, {} skipped",
        totals.passed,
        totals.folded,
        totals.bound_shapes,
        totals.bound_weights,
        totals.failed,
        totals.not_covered,
        totals.skipped
    );
    if let Some(share) = totals.share() {
        println!("{:.1} % of the covered cases pass", 100.0 * share);
    }
}

#[cfg(test)]
mod tests {
    use super::super::verdict::{Form, Stage};
    use super::*;

    #[test]
    fn cases_are_counted_by_operator_and_by_what_was_done_to_them() {
        let case = |operator: &str| Case {
            name: String::new(),
            kind: String::new(),
            operator: operator.to_owned(),
            ..Case::default()
        };
        let (add, conv) = (case("Add"), case("Conv"));
        let bound = Form {
            weight_inputs: vec!["W".to_owned()],
            ..Form::default()
        };
        let folded = Form {
            is_folded: true,
            ..Form::default()
        };
        let tried = [
            (&add, Verdict::passed(folded)),
            (&add, Verdict::not_covered(Stage::Build, "f64")),
            (&add, Verdict::not_covered(Stage::Build, "i8")),
            (&add, Verdict::not_covered(Stage::Build, "i8")),
            (&conv, Verdict::passed(bound.clone())),
            (&conv, Verdict::failed(Stage::Compare, "wrong", bound)),
        ];
        let operators = tally(&tried);
        let (add, conv) = (&operators["Add"], &operators["Conv"]);
        assert_eq!((add.passed, add.folded, add.not_covered), (1, 1, 3));
        assert_eq!((add.main_reason(), add.share()), ("i8", Some(1.0)));
        assert_eq!((conv.passed, conv.failed, conv.bound_weights), (1, 1, 1));
        assert_eq!(conv.share(), Some(0.5));
        assert_eq!(Tally::default().share(), None);
    }
}
