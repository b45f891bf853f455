//! Proposals: a candidate for every subgraph, in layouts that fit each other.
//!
//! Were every candidate free in its layouts, most steps of an evaluation would be conversions. So
//! each evaluation keeps to a plan, the layouts of the best composition or one layout throughout,
//! and candidates are chosen within it.

use super::job::Job;
use super::session::Session;
use crate::search::{TaskSearch, plan_evaluation};
use crate::space::{Candidate, Mapping};

/// Layouts that an evaluation may keep to throughout.
pub(super) const LAYOUTS: [&str; 4] = ["nchw16c", "nhwc", "nchw8c", "nchw32c"];

/// A candidate for each subgraph, and which of them are new.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Proposal {
    /// By subgraph.
    pub(super) candidates: Vec<Candidate>,
    /// Subgraphs whose candidate was proposed to learn of it.
    pub(super) new: Vec<usize>,
}

/// What the layouts of an evaluation keep to.
#[derive(Debug, Clone, Copy)]
pub(super) enum LayoutPlan<'a> {
    /// One layout wherever there is a choice.
    Throughout(&'a str),
    /// Those of a deployment.
    Like(&'a [Candidate]),
}

/// Proposes an evaluation. `incumbent` is the best deployment known, which tasks ride along with.
pub(super) fn propose(
    job: &Job<'_>,
    session: &mut Session,
    incumbent: &[Candidate],
    plan: LayoutPlan<'_>,
    model_ns: f64,
) -> Proposal {
    let shares = plan_evaluation(&session.states(job), model_ns);
    let mut candidates = Vec::new();
    let mut new = Vec::new();
    let mut n_tried = vec![0; job.tasks.len()];
    for (subgraph, &task) in job.task_of.iter().enumerate() {
        let wanted = wanted_layouts(job, subgraph, plan);
        let fits = |mapping: &Mapping| {
            job.prepared
                .layouts(subgraph, mapping)
                .is_none_or(|[from, to]| {
                    wanted.as_ref().is_none_or(|[want_from, want_to]| {
                        admits(want_from, &from) && admits(want_to, &to)
                    })
                })
        };
        let search = session.searches[task]
            .as_mut()
            .filter(|_| session.is_open[task]);
        let proposed = match search {
            Some(search) if n_tried[task] < shares[task] => search
                .propose(1, &fits)
                .pop()
                .or_else(|| search.propose(1, &|_| true).pop()),
            _ => None,
        };
        if let Some(mapping) = proposed {
            n_tried[task] += 1;
            new.push(subgraph);
            candidates.push(Candidate {
                mapping,
                ..Candidate::default()
            });
        } else {
            let known = session.searches[task].as_ref();
            candidates.push(ride_along(known, &incumbent[subgraph], &fits));
        }
    }
    for (idle, tried) in session.n_idle.iter_mut().zip(n_tried) {
        *idle = if tried > 0 { 0 } else { *idle + 1 };
    }
    Proposal { candidates, new }
}

/// Returns the best candidate known that fits the plan, or the incumbent.
fn ride_along(
    search: Option<&TaskSearch>,
    incumbent: &Candidate,
    fits: &dyn Fn(&Mapping) -> bool,
) -> Candidate {
    if fits(&incumbent.mapping) {
        return incumbent.clone();
    }
    let best = search.map(|search| search.best_by(fits));
    match best.and_then(|mut best| best.remove(&true)) {
        Some((mapping, _)) => Candidate {
            mapping,
            ..Candidate::default()
        },
        None => incumbent.clone(),
    }
}

/// Returns the layouts that a subgraph should keep to, `None` if it has no choice.
fn wanted_layouts(job: &Job<'_>, subgraph: usize, plan: LayoutPlan<'_>) -> Option<[String; 2]> {
    match plan {
        LayoutPlan::Throughout(layout) => Some([layout.to_owned(), layout.to_owned()]),
        LayoutPlan::Like(candidates) => job
            .prepared
            .layouts(subgraph, &candidates[subgraph].mapping),
    }
}

/// Returns whether a layout keeps to the wanted one: values with one layout only always do, and so
/// do inputs of the model read as they are.
fn admits(wanted: &str, layout: &str) -> bool {
    layout == wanted || layout == "flat" || layout == "nchw"
}
