//! The K best assignments by bucket elimination and best-first search.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::order::{Order, min_fill};
use super::problem::Problem;
use super::table::{Table, Variable};

/// A problem with its tables laid out.
pub(super) struct Solver<'a> {
    problem: &'a Problem,
    variables: Vec<Variable>,
    /// Variables of each value's factor; those with one class are left out.
    scopes: Vec<Vec<usize>>,
    order: Order,
}

/// A partial assignment, in reverse order of elimination.
struct Partial {
    parent: usize,
    choice: usize,
    class: usize,
}

/// Lowest bound first; among equals the deepest, so that ties are not searched in breadth.
#[derive(PartialEq)]
struct Open {
    bound_ns: f64,
    depth: usize,
    partial: usize,
}

impl<'a> Solver<'a> {
    /// Prepares a validated problem; `allowed[i]` are the choices left to subgraph `i`.
    pub(super) fn new(problem: &'a Problem, allowed: &[Vec<usize>]) -> Self {
        let subgraphs = problem.subgraphs.iter().zip(allowed);
        let variables: Vec<Variable> = subgraphs
            .map(|(all, allowed)| Variable::new(all, allowed))
            .collect();
        let is_open = |v: &usize| variables[*v].classes.len() > 1;
        let scopes = problem
            .values
            .iter()
            .map(|value| value.subgraphs().into_iter().filter(is_open).collect());
        let scopes: Vec<Vec<usize>> = scopes.collect();
        let sizes: Vec<usize> = variables.iter().map(|v| v.classes.len()).collect();
        Self {
            problem,
            order: min_fill(&sizes, &scopes),
            variables,
            scopes,
        }
    }

    /// Returns how many table entries [`solve`](Self::solve) visits, saturating.
    pub(super) fn n_entries(&self) -> usize {
        self.order.n_entries
    }

    /// Returns the variables that most of the largest table's entries come from.
    pub(super) fn bottleneck(&self) -> Vec<usize> {
        let joint = |separator: &[usize]| {
            let sizes = separator.iter().map(|&v| self.variables[v].classes.len());
            sizes.fold(1, usize::saturating_mul)
        };
        let steps = self.order.steps.iter();
        let largest = steps.max_by_key(|step| joint(&step.separator));
        largest.map_or_else(Vec::new, |step| {
            let mut clique = step.separator.clone();
            clique.push(step.variable);
            clique
        })
    }

    /// Returns the `k` cheapest assignments of finite cost, cheapest first, equal costs in a fixed
    /// order.
    pub(super) fn solve(&self, k: usize) -> Vec<Vec<usize>> {
        let mut tables: Vec<Table> = Vec::new();
        let mut buckets: Vec<Vec<usize>> = vec![Vec::new(); self.variables.len()];
        let mut position = vec![0; self.variables.len()];
        for (idx, step) in self.order.steps.iter().enumerate() {
            position[step.variable] = idx;
        }
        let first = |table: &Table| table.variables.iter().map(|&v| position[v]).min();
        let factors = (0..self.scopes.len()).map(|value| self.factor(value));
        for table in factors {
            match first(&table) {
                Some(idx) => buckets[idx].push(tables.len()),
                None if table.is_infeasible() => return Vec::new(),
                None => {}
            }
            tables.push(table);
        }
        for (idx, step) in self.order.steps.iter().enumerate() {
            let message = self.message(step.variable, &step.separator, &buckets[idx], &tables);
            match first(&message) {
                Some(later) => buckets[later].push(tables.len()),
                // Nothing depends on it, and so the search would find out late, and often.
                None if message.is_infeasible() => return Vec::new(),
                None => {}
            }
            tables.push(message);
        }
        self.best_first(k, &buckets, &tables)
    }

    /// Tabulates what the conversions of a value cost.
    fn factor(&self, value: usize) -> Table {
        let mut table = self.table(self.scopes[value].clone());
        let len = table.len(&self.variables);
        let mut classes = vec![0; self.variables.len()];
        for entry in 0..len {
            for (&v, &stride) in table.variables.iter().zip(&table.strides) {
                classes[v] = entry / stride % self.variables[v].classes.len();
            }
            let chosen = |v: usize| {
                &self.problem.subgraphs[v][self.variables[v].classes[classes[v]].choices[0]]
            };
            table
                .entries
                .push(self.problem.values[value].cost_ns(chosen));
        }
        table
    }

    fn table(&self, variables: Vec<usize>) -> Table {
        let mut stride = 1;
        let strides = variables.iter().map(|&v| {
            let own = stride;
            stride *= self.variables[v].classes.len();
            own
        });
        Table {
            strides: strides.collect(),
            entries: Vec::new(),
            variables,
        }
    }

    /// Minimises over a variable: what its bucket costs at best, by the separator's classes.
    fn message(
        &self,
        variable: usize,
        separator: &[usize],
        bucket: &[usize],
        tables: &[Table],
    ) -> Table {
        let mut message = self.table(separator.to_vec());
        let own_ns = self.class_costs(variable);
        let bucket: Vec<&Table> = bucket.iter().map(|&idx| &tables[idx]).collect();
        let own_strides: Vec<usize> = bucket.iter().map(|table| table.stride(variable)).collect();
        let mut offsets = vec![0; bucket.len()];
        let mut digits = vec![0; separator.len()];
        for _ in 0..message.len(&self.variables) {
            let cost_ns = |(class, own): (usize, &f64)| {
                let terms = bucket.iter().zip(&offsets).zip(&own_strides);
                terms.fold(*own, |sum, ((table, offset), stride)| {
                    sum + table.entries[offset + class * stride]
                })
            };
            let best = own_ns
                .iter()
                .enumerate()
                .map(cost_ns)
                .fold(f64::INFINITY, f64::min);
            message.entries.push(best);
            for (digit, &v) in digits.iter_mut().zip(separator) {
                let last = self.variables[v].classes.len() - 1;
                let wraps = *digit == last;
                *digit = if wraps { 0 } else { *digit + 1 };
                for (offset, table) in offsets.iter_mut().zip(&bucket) {
                    let stride = table.stride(v);
                    *offset = if wraps {
                        *offset - last * stride
                    } else {
                        *offset + stride
                    };
                }
                if !wraps {
                    break;
                }
            }
        }
        message
    }

    fn class_costs(&self, variable: usize) -> Vec<f64> {
        let choices = &self.problem.subgraphs[variable];
        let classes = self.variables[variable].classes.iter();
        classes
            .map(|class| choices[class.choices[0]].cost_ns)
            .collect()
    }

    /// Assigns variables in reverse order of elimination. The messages bound what is still to come
    /// exactly, and so nothing is expanded that does not lead to one of the `k` best.
    fn best_first(&self, k: usize, buckets: &[Vec<usize>], tables: &[Table]) -> Vec<Vec<usize>> {
        let n_variables = self.variables.len();
        let mut partials: Vec<Partial> = Vec::new();
        let mut open = BinaryHeap::from([Reverse(Open {
            bound_ns: 0.0,
            depth: 0,
            partial: usize::MAX,
        })]);
        let mut solutions = Vec::new();
        let mut classes = vec![0; n_variables];
        while let Some(Reverse(Open {
            bound_ns,
            depth,
            partial,
        })) = open.pop()
        {
            if solutions.len() >= k {
                break;
            }
            let mut choices = vec![0; n_variables];
            let (mut at, mut level) = (partial, depth);
            while level > 0 {
                let variable = self.order.steps[n_variables - level].variable;
                classes[variable] = partials[at].class;
                choices[variable] = partials[at].choice;
                (at, level) = (partials[at].parent, level - 1);
            }
            if depth == n_variables {
                solutions.push(choices);
                continue;
            }
            let idx = n_variables - 1 - depth;
            let variable = self.order.steps[idx].variable;
            let mut children = self.children(variable, k, &mut classes, &buckets[idx], tables);
            children.sort_by(|lhs, rhs| lhs.0.total_cmp(&rhs.0));
            children.truncate(k);
            let best_ns = children.first().map_or(0.0, |child| child.0);
            for (cost_ns, class, choice) in children {
                open.push(Reverse(Open {
                    bound_ns: bound_ns + (cost_ns - best_ns),
                    depth: depth + 1,
                    partial: partials.len(),
                }));
                partials.push(Partial {
                    parent: partial,
                    choice,
                    class,
                });
            }
        }
        solutions
    }

    /// Returns cost, class and choice of the ways to go on with a variable.
    fn children(
        &self,
        variable: usize,
        k: usize,
        classes: &mut [usize],
        bucket: &[usize],
        tables: &[Table],
    ) -> Vec<(f64, usize, usize)> {
        let mut children = Vec::new();
        for (idx, class) in self.variables[variable].classes.iter().enumerate() {
            classes[variable] = idx;
            let shared_ns: f64 = bucket.iter().map(|&table| tables[table].at(classes)).sum();
            for &choice in class.choices.iter().take(k) {
                let cost_ns = shared_ns + self.problem.subgraphs[variable][choice].cost_ns;
                if cost_ns.is_finite() {
                    children.push((cost_ns, idx, choice));
                }
            }
        }
        children
    }
}

impl Eq for Open {}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Open {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.bound_ns.total_cmp(&other.bound_ns))
            .then(other.depth.cmp(&self.depth))
            .then(self.partial.cmp(&other.partial))
    }
}
