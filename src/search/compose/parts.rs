//! Composition as a whole: exactly if the tables allow, else one part of the model at a time.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::exact::Solver;
use super::problem::{ComposeError, LayoutId, Problem};

/// Table entries that elimination may visit, about 0.1 s.
pub const MAX_ENTRIES: usize = 1 << 23;

/// Rounds without improvement after which a start is given up.
const PATIENCE: usize = 4;

/// The cheapest assignments that were found.
#[derive(Debug, Clone, PartialEq)]
pub struct Composition {
    /// Distinct, cheapest first, all of finite cost; empty if there are none.
    pub solutions: Vec<Solution>,
    /// How they were found.
    pub method: Method,
}

/// One choice for every subgraph.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// Index of each subgraph's choice.
    pub choices: Vec<usize>,
    /// What it costs, conversions included, nanoseconds.
    pub cost_ns: f64,
}

/// How solutions were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// No other assignment is cheaper.
    Exact,
    /// Exact over one part of the model at a time, the rest held fixed, until several random parts
    /// in a row gained nothing; started from the cheapest choices and from each single layout.
    Parts,
}

/// Finds the `k` cheapest assignments.
///
/// `max_entries` bounds the work of one elimination (see [`MAX_ENTRIES`]); beyond it the result is
/// approximate. Deterministic.
///
/// # Errors
/// A problem that makes no sense. One that merely has no feasible assignment is no error.
pub fn compose(
    problem: &Problem,
    k: usize,
    max_entries: usize,
) -> Result<Composition, ComposeError> {
    problem.validate()?;
    let all: Vec<Vec<usize>> = problem
        .subgraphs
        .iter()
        .map(|c| (0..c.len()).collect())
        .collect();
    let solver = Solver::new(problem, &all);
    let (found, method) = if solver.n_entries() <= max_entries {
        (solver.solve(k), Method::Exact)
    } else {
        let found = by_parts(problem, &all, k, max_entries);
        (found.into_iter().collect(), Method::Parts)
    };
    let priced = found.into_iter().filter_map(|choices| {
        let cost_ns = problem.cost_ns(&choices)?;
        cost_ns.is_finite().then_some(Solution { choices, cost_ns })
    });
    let mut solutions: Vec<Solution> = priced.collect();
    solutions.sort_by(|lhs, rhs| {
        (lhs.cost_ns.total_cmp(&rhs.cost_ns)).then_with(|| lhs.choices.cmp(&rhs.choices))
    });
    solutions.truncate(k);
    Ok(Composition { solutions, method })
}

/// Improves several starts; returns every solution that a solver returned on the way.
fn by_parts(
    problem: &Problem,
    all: &[Vec<usize>],
    k: usize,
    max_entries: usize,
) -> BTreeSet<Vec<usize>> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut found = BTreeSet::new();
    for start in starts(problem) {
        let mut current = start;
        let mut idle = 0;
        found.insert(current.clone());
        while idle < PATIENCE {
            let part = part(problem, all, &current, max_entries / 2, &mut rng);
            let solutions = Solver::new(problem, &part).solve(k);
            let better = solutions.first().filter(|best| {
                let costs = (problem.cost_ns(best), problem.cost_ns(&current));
                matches!(costs, (Some(new), Some(old)) if new < old * (1.0 - 1e-12))
            });
            match better {
                Some(best) => (current, idle) = (best.clone(), 0),
                None => idle += 1,
            }
            found.extend(solutions);
        }
    }
    found
}

/// Returns the cheapest choices, and for each layout the choices that come nearest to using it
/// everywhere.
fn starts(problem: &Problem) -> BTreeSet<Vec<usize>> {
    let choices = problem.subgraphs.iter().flatten();
    let layouts: BTreeSet<LayoutId> = choices
        .flat_map(|choice| choice.inputs.iter().chain(&choice.outputs).copied())
        .collect();
    let start = |layout: Option<LayoutId>| {
        let pick = |choices: &Vec<super::Choice>| {
            let key = |idx: &usize| {
                let ports = choices[*idx].inputs.iter().chain(&choices[*idx].outputs);
                let other = layout.map_or(0, |layout| ports.filter(|&&l| l != layout).count());
                (other, choices[*idx].cost_ns)
            };
            let best = (0..choices.len()).min_by(|lhs, rhs| {
                let (lhs, rhs) = (key(lhs), key(rhs));
                (lhs.0.cmp(&rhs.0)).then(lhs.1.total_cmp(&rhs.1))
            });
            best.unwrap_or(0)
        };
        problem.subgraphs.iter().map(pick).collect()
    };
    layouts
        .into_iter()
        .map(Some)
        .chain([None])
        .map(start)
        .collect()
}

/// Holds random subgraphs of the largest tables at their current choice until what is left can be
/// solved.
fn part(
    problem: &Problem,
    all: &[Vec<usize>],
    current: &[usize],
    max_entries: usize,
    rng: &mut ChaCha8Rng,
) -> Vec<Vec<usize>> {
    let mut part = all.to_vec();
    loop {
        let solver = Solver::new(problem, &part);
        let mut open = solver.bottleneck();
        open.retain(|&subgraph| part[subgraph].len() > 1);
        if solver.n_entries() <= max_entries || open.is_empty() {
            return part;
        }
        let held = open[rng.random_range(0..open.len())];
        part[held] = vec![current[held]];
    }
}
