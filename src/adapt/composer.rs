//! From what is known of the parts to deployments of the whole.

use super::job::Job;
use super::session::Session;
use crate::graph::ValueId;
use crate::search::compose::{Choice, End, LayoutId, MAX_ENTRIES, Problem, Value, compose};
use crate::space::{Candidate, Mapping};

/// All layouts, in the order of their ids.
pub(super) const UNIVERSE: [&str; 6] = ["flat", "nchw", "nhwc", "nchw8c", "nchw16c", "nchw32c"];

/// Name for a layout that costs nothing to convert from or to: what is read as it comes.
pub(super) const LAYOUT_ANY: &str = "any";

/// As what a value is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    /// Numbers.
    Numbers,
    /// Integers, for all who read it.
    Integers,
    /// Integers of channels that were made alike, beside what it is for others.
    Alike,
}

/// Forms that a value may have: each layout, and any, stored in each way.
pub(super) const FORMS: usize = 3 * (UNIVERSE.len() + 1);

/// What making channels alike and rounding them takes, nanoseconds an element: cautious.
const ALIKE_NS: f64 = 0.3;

/// Bytes that a conversion moves in a nanosecond as long as none was measured: cautious.
const CONVERT_BYTES_PER_NS: f64 = 4.0;

/// What a conversion takes besides, nanoseconds.
const CONVERT_FIXED_NS: f64 = 500.0;

/// A deployment and what its parts add up to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Composed {
    /// By subgraph.
    pub(super) candidates: Vec<Candidate>,
    /// Nanoseconds.
    pub(super) cost_ns: f64,
}

/// Returns the `k` deployments that should be fastest, best first. Subgraphs of which nothing is
/// known have what is locked for them, or the default.
pub(super) fn best(job: &Job<'_>, session: &Session, k: usize) -> Vec<Composed> {
    let fallback = session.fallback(job);
    let mut options: Vec<Vec<Candidate>> = Vec::new();
    let mut problem = Problem::default();
    for (subgraph, &task) in job.task_of.iter().enumerate() {
        let (candidates, choices) = choices(job, session, subgraph, task, &fallback[subgraph]);
        options.push(candidates);
        problem.subgraphs.push(choices);
    }
    problem.values = values(job, session);
    // The problem is made of finite costs and of ports that exist.
    let Ok(composition) = compose(&problem, k, MAX_ENTRIES) else {
        return Vec::new();
    };
    let solutions = composition.solutions.into_iter();
    solutions
        .map(|solution| Composed {
            candidates: solution
                .choices
                .iter()
                .zip(&options)
                .map(|(&choice, options)| options[choice].clone())
                .collect(),
            cost_ns: solution.cost_ns,
        })
        .collect()
}

fn layout_id(name: &str) -> LayoutId {
    LayoutId(
        UNIVERSE
            .iter()
            .position(|&layout| layout == name)
            .unwrap_or(1) as u16,
    )
}

/// Returns the candidates of a subgraph, the best for each pair of layouts, and their costs.
fn choices(
    job: &Job<'_>,
    session: &Session,
    subgraph: usize,
    task: usize,
    fallback: &Candidate,
) -> (Vec<Candidate>, Vec<Choice>) {
    let port = |name: &str| vec![layout_id(name)];
    let Some(search) = &session.searches[task] else {
        // It takes its input as it comes, in any layout and at the same cost.
        let any = UNIVERSE.iter().map(|layout| Choice {
            cost_ns: 0.0,
            inputs: port(layout),
            outputs: port(layout),
        });
        return (vec![fallback.clone(); UNIVERSE.len()], any.collect());
    };
    let layouts = |mapping: &_| job.prepared.layouts(subgraph, mapping);
    let best = search.best_by(layouts);
    let mut candidates = Vec::new();
    let mut choices = Vec::new();
    for (key, (mapping, estimate)) in best {
        let [from, to] = key.unwrap_or_else(|| ["flat".to_owned(), "flat".to_owned()]);
        candidates.push(Candidate {
            mapping,
            ..Candidate::default()
        });
        choices.push(Choice {
            cost_ns: estimate.ns,
            inputs: port(&from),
            outputs: port(&to),
        });
    }
    if let Some((locked, estimate)) = unmeasured(session, task) {
        // What was chosen elsewhere or before the labels were lost is taken to be a little faster
        // than the best, so that it is measured before it is given up.
        let best_ns = choices.iter().map(|choice| choice.cost_ns);
        let [from, to] =
            layouts(&locked.mapping).unwrap_or_else(|| ["flat".to_owned(), "flat".to_owned()]);
        choices.push(Choice {
            cost_ns: best_ns.fold(estimate, f64::min) * 0.99,
            inputs: port(&from),
            outputs: port(&to),
        });
        candidates.push(locked.clone());
    }
    if choices.is_empty() {
        let layouts = layouts(&fallback.mapping);
        let [from, to] = layouts.unwrap_or_else(|| ["flat".to_owned(), "flat".to_owned()]);
        candidates.push(fallback.clone());
        choices.push(Choice {
            cost_ns: 0.0,
            inputs: port(&from),
            outputs: port(&to),
        });
    }
    (candidates, choices)
}

/// Returns what is locked for a task and has not been measured, with what it should take.
fn unmeasured(session: &Session, task: usize) -> Option<(&Candidate, f64)> {
    let locked = session.locked[task].as_ref()?;
    let search = session.searches[task].as_ref()?;
    let estimate = search.estimate(&locked.mapping)?;
    (estimate.n_samples == 0).then_some((locked, estimate.ns))
}

/// Returns the values between subgraphs with what converting them takes.
fn values(job: &Job<'_>, session: &Session) -> Vec<Value> {
    let graph = job.source.graph();
    let main: Vec<Option<[ValueId; 2]>> = (0..job.task_of.len())
        .map(|subgraph| job.prepared.main_values(subgraph))
        .collect();
    let mut values = Vec::new();
    for id in (0..graph.values.len()).map(ValueId) {
        let producer = main
            .iter()
            .position(|values| values.is_some_and(|[_, y]| y == id));
        let producer = match producer {
            Some(subgraph) => End::Port { subgraph, port: 0 },
            None if graph.inputs.contains(&id) => End::Fixed(layout_id("nchw")),
            None => continue,
        };
        let readers = main
            .iter()
            .enumerate()
            .filter(|(_, v)| v.is_some_and(|[x, _]| x == id));
        let mut consumers: Vec<End> = readers
            .map(|(subgraph, _)| End::Port { subgraph, port: 0 })
            .collect();
        if graph.outputs.contains(&id) {
            consumers.push(End::Fixed(layout_id("nchw")));
        }
        if !consumers.is_empty() {
            let conversion_ns = conversions(session, graph.value(id).shape.dims());
            values.push(Value {
                producer,
                consumers,
                conversion_ns,
            });
        }
    }
    values
}

/// Returns what each conversion of a value takes: measured if it was, else by its bytes.
fn conversions(session: &Session, dims: &[usize]) -> Vec<Vec<f64>> {
    let [n, c, h, w] = crate::backend::native::layout::dims4(&dims.to_vec().into());
    let is_flat = h * w == 1;
    let bytes = 8.0 * (n * c * h * w) as f64;
    let cost = |from: &str, to: &str| {
        if from == to || from == "flat" || to == "flat" || is_flat {
            return 0.0;
        }
        let measured = session.side(&format!("{from}→{to} {n}x{c}x{h}x{w}"));
        measured.unwrap_or(CONVERT_FIXED_NS + bytes / CONVERT_BYTES_PER_NS)
    };
    UNIVERSE
        .iter()
        .map(|from| UNIVERSE.iter().map(|to| cost(from, to)).collect())
        .collect()
}

/// Returns the layouts of a mapping; `flat` where there is no choice.
pub(super) fn layout_pair(job: &Job<'_>, subgraph: usize, mapping: &Mapping) -> [String; 2] {
    let layouts = job.prepared.layouts(subgraph, mapping);
    layouts.unwrap_or_else(|| ["flat".to_owned(), "flat".to_owned()])
}

/// Returns the id of a layout, or of [`LAYOUT_ANY`], of a value that is stored in some way.
pub(super) fn form_id(layout: &str, stored: Stored) -> LayoutId {
    let any = UNIVERSE.len() as u16;
    let layout = if layout == LAYOUT_ANY {
        any
    } else {
        layout_id(layout).0
    };
    LayoutId(layout + (any + 1) * stored as u16)
}

/// Returns what converting a value between forms takes. Nothing turns integers into numbers or back,
/// as subgraphs do that themselves; but making channels alike is a step of its own.
pub(super) fn form_conversions(job: &Job<'_>, session: &Session, id: ValueId) -> Vec<Vec<f64>> {
    let shape = &job.source.graph().value(id).shape;
    let layouts = conversions(session, shape.dims());
    let alike_ns = ALIKE_NS * shape.len() as f64;
    let n = UNIVERSE.len() + 1;
    let cost = |from: usize, to: usize| match (from / n, to / n) {
        (stored, other) if stored == other => match (from % n, to % n) {
            (from, to) if from < n - 1 && to < n - 1 => layouts[from][to],
            _ => 0.0,
        },
        (numbers, alike)
            if numbers == Stored::Numbers as usize && alike == Stored::Alike as usize =>
        {
            alike_ns
        }
        _ => f64::INFINITY,
    };
    (0..FORMS)
        .map(|from| (0..FORMS).map(|to| cost(from, to)).collect())
        .collect()
}
