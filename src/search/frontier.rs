//! Composition under a limit: the cheapest assignment whose errors add up to a budget at most, and
//! the front of all trade-offs between cost and error.
//!
//! The error is priced and the sum minimised exactly; the price is bisected until the cheapest
//! assignment just keeps to the budget. That leaves out assignments above the lower convex hull
//! of the front, and so the `k` best at the last prices are looked through as well. By weak duality
//! nothing within the budget is cheaper than the priced sum less the price of the whole budget,
//! which [`Within::bound_ns`] reports (Everett, "Generalized Lagrange multiplier method", 1963).

use super::compose::{ComposeError, MAX_ENTRIES, Problem, compose};

/// Steps of the bisection: prices are then within 2 % of each other.
const STEPS: usize = 24;

/// Assignments that are looked through at the last prices.
const K: usize = 48;

/// One assignment.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Index of each subgraph's choice.
    pub choices: Vec<usize>,
    /// What it costs, conversions included, nanoseconds.
    pub cost_ns: f64,
    /// Its error, in the unit of the errors given.
    pub error: f64,
}

/// What was found for a budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Within {
    /// The cheapest assignment found that keeps to the budget.
    pub best: Plan,
    /// No assignment that keeps to the budget is cheaper than this, if elimination was exact.
    pub bound_ns: f64,
    /// Assignments of which none is both cheaper and better, cheapest first.
    pub front: Vec<Plan>,
}

/// Returns the cheapest assignment of `problem` whose errors sum to `budget` at most; `errors[i][j]`
/// is what choice `j` of subgraph `i` adds. `None` if none keeps to it. Deterministic.
///
/// # Errors
/// As [`compose`].
pub fn within(
    problem: &Problem,
    errors: &[Vec<f64>],
    budget: f64,
) -> Result<Option<Within>, ComposeError> {
    let mut seen: Vec<Plan> = Vec::new();
    let mut bound_ns = f64::NEG_INFINITY;
    let mut solve = |price: f64, k: usize| -> Result<Option<Plan>, ComposeError> {
        let mut plans = priced(problem, errors, price, k)?;
        if let Some(first) = plans.first() {
            bound_ns = f64::max(bound_ns, first.cost_ns + price * (first.error - budget));
        }
        let first = plans.first().cloned();
        seen.append(&mut plans);
        Ok(first)
    };
    let Some(cheapest) = solve(0.0, 1)? else {
        return Ok(None);
    };
    if cheapest.error > budget {
        // A price at which the error of the cheapest would cost as much as all else.
        let mut high = cheapest.cost_ns.max(1.0) / cheapest.error;
        let mut low = 0.0;
        for _ in 0..4 * STEPS {
            match solve(high, 1)? {
                Some(plan) if plan.error > budget => {
                    low = high;
                    high *= 4.0;
                }
                _ => break,
            }
        }
        for _ in 0..STEPS {
            if high - low <= 0.02 * high {
                break;
            }
            let middle = if low > 0.0 {
                f64::sqrt(low * high)
            } else {
                high / 4.0
            };
            match solve(middle, 1)? {
                Some(plan) if plan.error > budget => low = middle,
                _ => high = middle,
            }
        }
        for price in [low, high] {
            solve(price, K)?;
        }
    }
    let front = front(seen);
    let best = front.iter().find(|plan| plan.error <= budget).cloned();
    Ok(best.map(|best| Within {
        bound_ns: bound_ns.min(best.cost_ns),
        best,
        front,
    }))
}

/// Returns the `k` best assignments when a unit of error costs `price`.
fn priced(
    problem: &Problem,
    errors: &[Vec<f64>],
    price: f64,
    k: usize,
) -> Result<Vec<Plan>, ComposeError> {
    let mut priced = problem.clone();
    for (choices, errors) in priced.subgraphs.iter_mut().zip(errors) {
        for (choice, error) in choices.iter_mut().zip(errors) {
            choice.cost_ns += price * error;
        }
    }
    let solutions = compose(&priced, k, MAX_ENTRIES)?.solutions.into_iter();
    let plan = |choices: Vec<usize>| {
        let cost_ns = problem.cost_ns(&choices)?;
        let each = errors.iter().zip(&choices);
        let error = each
            .filter_map(|(errors, &choice)| errors.get(choice))
            .sum();
        Some(Plan {
            choices,
            cost_ns,
            error,
        })
    };
    Ok(solutions.filter_map(|found| plan(found.choices)).collect())
}

/// Keeps the plans of which none is both cheaper and better, cheapest first.
fn front(mut plans: Vec<Plan>) -> Vec<Plan> {
    plans.sort_by(|lhs, rhs| {
        let by_cost = lhs.cost_ns.total_cmp(&rhs.cost_ns);
        by_cost
            .then(lhs.error.total_cmp(&rhs.error))
            .then_with(|| lhs.choices.cmp(&rhs.choices))
    });
    let mut least = f64::INFINITY;
    plans.retain(|plan| {
        let is_better = plan.error < least;
        least = least.min(plan.error);
        is_better
    });
    plans
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::search::compose::{Choice, End, LayoutId, Value};

    /// A chain of subgraphs with the given costs and errors, each choice in a form of its own;
    /// changing the form costs `conversion`.
    fn chain(costs: &[Vec<(f64, f64)>], conversion: f64) -> (Problem, Vec<Vec<f64>>) {
        let n_forms = costs.iter().map(Vec::len).max().unwrap_or(0);
        let mut problem = Problem::default();
        for choices in costs {
            let choices = choices
                .iter()
                .enumerate()
                .map(|(idx, (cost_ns, _))| Choice {
                    cost_ns: *cost_ns,
                    inputs: vec![LayoutId(idx as u16)],
                    outputs: vec![LayoutId(idx as u16)],
                });
            problem.subgraphs.push(choices.collect());
        }
        let between = |from, to| if from == to { 0.0 } else { conversion };
        for subgraph in 1..costs.len() {
            let port = |subgraph| End::Port { subgraph, port: 0 };
            problem.values.push(Value {
                producer: port(subgraph - 1),
                consumers: vec![port(subgraph)],
                conversion_ns: (0..n_forms)
                    .map(|from| (0..n_forms).map(|to| between(from, to)).collect())
                    .collect(),
            });
        }
        let errors = costs
            .iter()
            .map(|c| c.iter().map(|(_, error)| *error).collect());
        (problem, errors.collect())
    }

    /// Returns the cheapest assignment within a budget by looking at all.
    fn brute_force(problem: &Problem, errors: &[Vec<f64>], budget: f64) -> Option<f64> {
        let mut best: Option<f64> = None;
        let n: usize = problem.subgraphs.iter().map(Vec::len).product();
        for mut code in 0..n {
            let choices: Vec<usize> = problem
                .subgraphs
                .iter()
                .map(|c| {
                    let choice = code % c.len();
                    code /= c.len();
                    choice
                })
                .collect();
            let error: f64 = errors.iter().zip(&choices).map(|(e, &c)| e[c]).sum();
            let cost = problem.cost_ns(&choices)?;
            if error <= budget && best.is_none_or(|best| cost < best) {
                best = Some(cost);
            }
        }
        best
    }

    proptest! {
        #[test]
        fn nothing_within_the_budget_is_cheaper(
            costs in proptest::collection::vec(
                proptest::collection::vec((1.0..100.0f64, 0.0..1.0f64), 2..4), 1..6),
            conversion in 0.0..20.0f64,
            budget in 0.0..3.0f64,
        ) {
            let (problem, errors) = chain(&costs, conversion);
            let found = within(&problem, &errors, budget).unwrap();
            let best = brute_force(&problem, &errors, budget);
            prop_assert_eq!(found.is_some(), best.is_some());
            if let (Some(found), Some(best)) = (found, best) {
                prop_assert!(found.best.error <= budget);
                prop_assert!(found.bound_ns <= best + 1e-6);
                prop_assert!(found.best.cost_ns <= best + 1e-6, "{} of {best}", found.best.cost_ns);
                for pair in found.front.windows(2) {
                    prop_assert!(pair[0].cost_ns <= pair[1].cost_ns && pair[0].error > pair[1].error);
                }
            }
        }
    }

    #[test]
    fn a_budget_of_nothing_keeps_what_is_exact() {
        let (problem, errors) = chain(&vec![vec![(10.0, 0.0), (1.0, 0.5)]; 4], 3.0);
        let found = within(&problem, &errors, 0.0).unwrap().unwrap();
        assert_eq!(found.best.choices, [0; 4]);
        let found = within(&problem, &errors, 1.0).unwrap().unwrap();
        assert!((found.best.cost_ns - 25.0).abs() < 1e-9);
    }
}
