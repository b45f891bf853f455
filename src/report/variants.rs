//! Events about variants and accuracy as words and as messages.

use super::events::Line;
use super::format::{duration, plural};
use super::json::{self, Message};
use crate::event::Event;

/// Returns the line for an event about variants, if it has one at this verbosity.
pub(super) fn line(event: &Event<'_>, verbosity: u8) -> Option<Line> {
    let line = |verb, object| Line {
        verb,
        object,
        is_result: false,
    };
    Some(match *event {
        Event::VariantsStudied {
            model,
            n_sites,
            n_variable,
            n_samples,
            error,
        } => line(
            "Studied",
            format!(
                "`{model}`: {n_variable} of {} have variants; all of them: {} on {}",
                plural(n_sites, "subgraph"),
                share(error),
                plural(n_samples, "sample"),
            ),
        ),
        Event::VariantsPlanned {
            n_sites,
            n_varied,
            predicted_ns,
            error,
            ..
        } if verbosity >= 1 => line(
            "Planned",
            format!(
                "{n_varied} of {} varied: {} predicted, {}",
                plural(n_sites, "subgraph"),
                duration(predicted_ns),
                share(error),
            ),
        ),
        Event::VariantMeasured {
            n_varied,
            predicted_ns,
            measured_ns,
            error,
            ..
        } if verbosity >= 1 => {
            let predicted = predicted_ns
                .map_or_else(String::new, |ns| format!(" ({} predicted)", duration(ns)));
            line(
                "Measured",
                format!(
                    "{} varied: {}{predicted}, {}",
                    plural(n_varied, "subgraph"),
                    duration(measured_ns),
                    share(error),
                ),
            )
        }
        Event::AccuracyChecked {
            n_samples,
            kl,
            relative_l2,
            top1_drop,
            standard_error,
            missed,
            ..
        } => {
            let mut figures = Vec::new();
            if let (Some(drop), Some(error)) = (top1_drop, standard_error) {
                figures.push(format!(
                    "top-1 {:+.1} points (± {:.1})",
                    -drop * 100.0,
                    error * 100.0
                ));
            }
            figures.extend(kl.map(|kl| format!("KL {kl:.4}")));
            figures.push(format!("relative L2 {relative_l2:.4}"));
            let verdict = match missed {
                "" => String::new(),
                missed => format!("; not accepted: {missed}"),
            };
            line(
                "Checked",
                format!(
                    "{}: {}{verdict}",
                    plural(n_samples, "sample"),
                    figures.join(", ")
                ),
            )
        }
        _ => return None,
    })
}

/// Returns the message for an event about variants.
pub(super) fn message<'a>(event: &Event<'a>) -> Option<Message<'a>> {
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    Some(match *event {
        Event::VariantsStudied {
            model,
            n_sites,
            n_variable,
            n_samples,
            error,
        } => Message::VariantsStudied(json::VariantsStudied {
            model,
            n_subgraphs: n_sites,
            n_variable,
            n_samples,
            error: finite(error),
        }),
        Event::VariantsPlanned {
            model,
            target,
            n_sites,
            n_varied,
            predicted_ns,
            bound_ns,
            error,
        } => Message::VariantsPlanned(json::VariantsPlanned {
            model,
            target,
            n_subgraphs: n_sites,
            n_varied,
            predicted_ns,
            bound_ns: finite(bound_ns),
            error,
        }),
        Event::VariantMeasured {
            n_varied,
            predicted_ns,
            measured_ns,
            baseline_ns,
            error,
        } => Message::VariantMeasured(json::VariantMeasured {
            n_varied,
            predicted_ns,
            measured_ns,
            baseline_ns,
            error: finite(error),
        }),
        Event::AccuracyChecked {
            model,
            target,
            n_samples,
            kl,
            relative_l2,
            agreement,
            top1_drop,
            standard_error,
            missed,
        } => Message::AccuracyChecked(json::AccuracyChecked {
            model,
            target,
            n_samples,
            kl,
            relative_l2: finite(relative_l2),
            agreement,
            top1_drop,
            standard_error,
            missed,
        }),
        _ => return None,
    })
}

/// Returns an error as people read it.
fn share(error: f64) -> String {
    if error.is_finite() {
        format!("{:.0} % of the accuracy limit", error * 100.0)
    } else {
        "no numbers".to_owned()
    }
}
