//! Events as words and as messages.

use std::time::Duration;

use super::format::{duration, factor, plural, size, span};
use super::json::{self, Message};
use crate::event::{Event, Spent};
use crate::lock::Footprint;
use crate::search::HalfWay;

/// A status line.
pub(super) struct Line {
    pub(super) verb: &'static str,
    pub(super) object: String,
    /// Whether something was brought to an end, as opposed to: is going on.
    pub(super) is_result: bool,
}

/// Returns the line for an event, if it has one at this verbosity.
pub(super) fn line(event: &Event<'_>, verbosity: u8) -> Option<Line> {
    match *event {
        Event::AdaptStarted {
            model,
            target,
            n_subgraphs,
            n_tasks,
            n_reused,
            max_evaluations,
        } => {
            let known = match n_reused {
                0 => String::new(),
                n => format!(", {n} of them known"),
            };
            let object = format!(
                "`{model}` to `{target}`: {} in {}{known}; at most {}",
                plural(n_subgraphs, "subgraph"),
                plural(n_tasks, "task"),
                plural(max_evaluations as usize, "evaluation"),
            );
            Some(Line {
                verb: "Adapting",
                object,
                is_result: false,
            })
        }
        Event::EvaluationFinished { n_evaluations, .. } if verbosity >= 2 => Some(Line {
            verb: "Evaluated",
            object: format!("{n_evaluations}: {}", progress(event)),
            is_result: false,
        }),
        Event::DeploymentCompared { ratio, accepted } if verbosity >= 1 => Some(Line {
            verb: "Compared",
            object: format!(
                "a challenger with {ratio:.3} of the incumbent's latency: {}",
                if accepted { "taken" } else { "not taken" }
            ),
            is_result: false,
        }),
        Event::DeploymentRemoved { model, target } => Some(Line {
            verb: "Removed",
            object: format!("`{model}` on `{target}`: not in the project"),
            is_result: true,
        }),
        Event::LockAwaited { path, holder } => {
            let holder = holder.map_or_else(String::new, |holder| format!(", held by {holder}"));
            Some(Line {
                verb: "Blocking",
                object: format!("waiting for `{path}`{holder}"),
                is_result: false,
            })
        }
        Event::AdaptFinished {
            model,
            target,
            n_evaluations,
            n_reused_labels,
            baseline_ns,
            latency_ns,
            lock_changed,
            interrupted,
            ..
        } => {
            let verb = match (interrupted, lock_changed) {
                (true, _) => "Interrupted",
                (false, true) => "Locked",
                (false, false) => "Fresh",
            };
            let kept = if interrupted {
                ", best so far kept"
            } else {
                ""
            };
            let object = format!(
                "`{model}` on `{target}`: {}, {} the untuned speed ({}, {} reused{kept})",
                duration(latency_ns),
                factor(baseline_ns / latency_ns),
                plural(n_evaluations as usize, "evaluation"),
                plural(n_reused_labels, "label"),
            );
            Some(Line {
                verb,
                object,
                is_result: true,
            })
        }
        _ => line_of_search(event, verbosity),
    }
}

/// Returns the line for what a search comes across, or came across.
fn line_of_search(event: &Event<'_>, verbosity: u8) -> Option<Line> {
    if let Some(line) = super::variants::line(event, verbosity) {
        return Some(line);
    }
    match *event {
        Event::Surprise {
            subgraph,
            predicted_ns,
            measured_ns,
            again_ns,
        } if verbosity >= 1 => Some(Line {
            verb: "Surprised",
            object: format!(
                "by subgraph {subgraph}: {} believed, {} measured, {} once more",
                duration(predicted_ns),
                duration(measured_ns),
                duration(again_ns)
            ),
            is_result: false,
        }),
        Event::Replayed {
            model,
            target,
            n_entries,
            n_evaluations,
            is_complete,
        } => {
            let end = if is_complete {
                "the same decisions"
            } else {
                "the same decisions up to its end, where the run was killed or failed"
            };
            Some(Line {
                verb: "Replayed",
                object: format!(
                    "`{model}` on `{target}`: {} of {}, {end}",
                    plural(n_entries, "step"),
                    plural(n_evaluations as usize, "evaluation"),
                ),
                is_result: true,
            })
        }
        _ => None,
    }
}

/// Returns what follows the line of an event: what a deployment needs of memory and disk, and what
/// the search for it used.
pub(super) fn additions(event: &Event<'_>) -> impl Iterator<Item = Line> {
    let (footprint, spent) = match event {
        Event::AdaptFinished {
            footprint,
            spent,
            half_way,
            ..
        } => (
            footprint.as_ref().map(memory),
            spent.as_ref().map(|spent| used(spent, half_way.as_ref())),
        ),
        _ => (None, None),
    };
    footprint.into_iter().chain(spent)
}

fn used(spent: &Spent, half_way: Option<&HalfWay>) -> Line {
    let of =
        |max: Option<Duration>| max.map_or_else(String::new, |max| format!(" of {}", span(max)));
    let half_way = half_way.map_or_else(String::new, |half_way| {
        let HalfWay { estimated, actual } = *half_way;
        format!(
            "; half way {} were expected, {} it took",
            span(estimated),
            span(actual)
        )
    });
    Line {
        verb: "Used",
        object: format!(
            "{}{}, {}{} of compilers, {} of {} on disk{half_way}",
            span(spent.elapsed),
            of(spent.max_time),
            span(spent.compile_time),
            of(spent.max_compile_time),
            size(spent.disk_bytes),
            size(spent.max_disk_bytes),
        ),
        is_result: true,
    }
}

fn spent_message(spent: &Spent) -> json::Spent {
    json::Spent {
        elapsed_ms: millis(spent.elapsed),
        max_time_ms: spent.max_time.map(millis),
        compile_time_ms: millis(spent.compile_time),
        max_compile_time_ms: spent.max_compile_time.map(millis),
        disk_bytes: spent.disk_bytes,
        max_disk_bytes: spent.max_disk_bytes,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn memory(footprint: &Footprint) -> Line {
    Line {
        verb: "Memory",
        object: format!(
            "{} for a run, {} of weights, {} of code",
            size(footprint.arena_bytes),
            size(footprint.weight_bytes),
            size(footprint.code_bytes)
        ),
        is_result: true,
    }
}

/// Returns the text beside the progress bar.
pub(super) fn progress(event: &Event<'_>) -> String {
    match *event {
        Event::EvaluationFinished {
            baseline_ns,
            best_ns,
            time_left,
            ..
        } => {
            let left = time_left.map_or_else(String::new, |left| {
                format!(", at most about {} left", span(left))
            });
            format!(
                "{} → {} ({}){left}",
                duration(baseline_ns),
                duration(best_ns),
                factor(baseline_ns / best_ns)
            )
        }
        _ => String::new(),
    }
}

/// Returns the message for an event; warnings become diagnostics elsewhere.
pub(super) fn message<'a>(event: &Event<'a>) -> Option<Message<'a>> {
    Some(match *event {
        Event::AdaptStarted {
            model,
            target,
            n_subgraphs,
            n_tasks,
            n_reused,
            max_evaluations,
        } => Message::AdaptStarted(json::AdaptStarted {
            model,
            target,
            n_subgraphs,
            n_tasks,
            n_reused_tasks: n_reused,
            max_evaluations,
        }),
        Event::EvaluationFinished {
            n_evaluations,
            max_evaluations,
            n_labels,
            n_failures,
            baseline_ns,
            best_ns,
            ref spent,
            time_left,
        } => Message::EvaluationFinished(json::EvaluationFinished {
            n_evaluations,
            max_evaluations,
            n_labels,
            n_failures,
            baseline_ns,
            best_ns,
            spent: spent_message(spent),
            time_left_ms: time_left.map(millis),
        }),
        Event::TrialMoved {
            trial,
            purpose,
            state,
        } => Message::TrialMoved(json::TrialMoved {
            trial,
            purpose,
            state,
        }),
        Event::Surprise {
            subgraph,
            predicted_ns,
            measured_ns,
            again_ns,
        } => Message::Surprise(json::Surprise {
            subgraph,
            predicted_ns,
            measured_ns,
            again_ns: Some(again_ns).filter(|ns| ns.is_finite()),
        }),
        Event::Replayed {
            model,
            target,
            n_entries,
            n_evaluations,
            is_complete,
        } => Message::Replayed(json::Replayed {
            model,
            target,
            n_entries,
            n_evaluations,
            is_complete,
        }),
        Event::DeploymentCompared { ratio, accepted } => {
            Message::DeploymentCompared(json::DeploymentCompared { ratio, accepted })
        }
        Event::DeploymentRemoved { model, target } => {
            Message::DeploymentRemoved(json::DeploymentRemoved { model, target })
        }
        Event::LockAwaited { path, holder } => {
            Message::LockAwaited(json::LockAwaited { path, holder })
        }
        Event::AdaptFinished { .. } => Message::AdaptFinished(finished(event)?),
        Event::VariantsStudied { .. }
        | Event::VariantsPlanned { .. }
        | Event::VariantMeasured { .. }
        | Event::AccuracyChecked { .. } => return super::variants::message(event),
        Event::Warning { .. } => return None,
    })
}

/// Returns the message for the end of an adaptation.
fn finished<'a>(event: &Event<'a>) -> Option<json::AdaptFinished<'a>> {
    let Event::AdaptFinished {
        model,
        target,
        n_evaluations,
        n_reused_labels,
        baseline_ns,
        latency_ns,
        footprint,
        lock_changed,
        interrupted,
        utilisation,
        ref spent,
        half_way,
    } = *event
    else {
        return None;
    };
    Some(json::AdaptFinished {
        model,
        target,
        n_evaluations,
        n_reused_labels,
        baseline_ns,
        latency_ns,
        arena_bytes: footprint.map(|footprint| footprint.arena_bytes),
        weight_bytes: footprint.map(|footprint| footprint.weight_bytes),
        code_bytes: footprint.map(|footprint| footprint.code_bytes),
        lock_changed,
        interrupted,
        utilisation,
        spent: spent.as_ref().map(spent_message),
        half_way_estimated_ms: half_way.map(|half_way| millis(half_way.estimated)),
        half_way_actual_ms: half_way.map(|half_way| millis(half_way.actual)),
    })
}
