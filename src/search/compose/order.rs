//! Elimination order: min-fill, cheapest table first among equals.

use std::collections::BTreeSet;

/// One elimination: a variable, and the variables that its message depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) variable: usize,
    /// Eliminated later; sorted.
    pub(super) separator: Vec<usize>,
}

/// An order with what following it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) steps: Vec<Step>,
    /// Table entries to be visited, saturating.
    pub(super) n_entries: usize,
}

/// Orders the variables; `sizes[v]` is the number of values of variable `v`, `scopes` the sets of
/// variables that occur together in a factor. O(n²) for sparse graphs.
pub(super) fn min_fill(sizes: &[usize], scopes: &[Vec<usize>]) -> Order {
    let mut graph = Graph::new(sizes, scopes);
    let mut scores: Vec<Option<Score>> = (0..sizes.len()).map(|v| Some(graph.score(v))).collect();
    let mut steps = Vec::with_capacity(sizes.len());
    let mut n_entries = 0usize;
    for _ in sizes {
        let open = scores
            .iter()
            .enumerate()
            .filter_map(|(v, score)| Some((score.as_ref()?, v)));
        let Some((&(_, joint_len), variable)) = open.min() else {
            break;
        };
        n_entries = n_entries.saturating_add(joint_len);
        scores[variable] = None;
        let separator = graph.eliminate(variable);
        let mut stale: BTreeSet<usize> = separator.iter().copied().collect();
        for &neighbour in &separator {
            stale.extend(&graph.neighbours[neighbour]);
        }
        for v in stale {
            scores[v] = Some(graph.score(v));
        }
        steps.push(Step {
            variable,
            separator,
        });
    }
    Order { steps, n_entries }
}

/// Edges that eliminating a variable adds, then the entries of its joint table.
type Score = (usize, usize);

struct Graph<'a> {
    sizes: &'a [usize],
    neighbours: Vec<BTreeSet<usize>>,
}

impl<'a> Graph<'a> {
    fn new(sizes: &'a [usize], scopes: &[Vec<usize>]) -> Self {
        let mut graph = Self {
            sizes,
            neighbours: vec![BTreeSet::new(); sizes.len()],
        };
        for scope in scopes {
            graph.connect(scope);
        }
        graph
    }

    fn connect(&mut self, variables: &[usize]) {
        for &v in variables {
            self.neighbours[v].extend(variables.iter().filter(|&&other| other != v));
        }
    }

    fn score(&self, variable: usize) -> Score {
        let neighbours = &self.neighbours[variable];
        let missing = neighbours.iter().map(|&v| {
            let later = neighbours.range(v + 1..);
            later
                .filter(|other| !self.neighbours[v].contains(other))
                .count()
        });
        let lens = neighbours.iter().map(|&v| self.sizes[v]);
        (
            missing.sum(),
            lens.fold(self.sizes[variable], usize::saturating_mul),
        )
    }

    fn eliminate(&mut self, variable: usize) -> Vec<usize> {
        let separator: Vec<usize> = std::mem::take(&mut self.neighbours[variable])
            .into_iter()
            .collect();
        for &v in &separator {
            self.neighbours[v].remove(&variable);
        }
        self.connect(&separator);
        separator
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_eliminated_with_tables_of_two() {
        let scopes: Vec<Vec<usize>> = (0..9).map(|v| vec![v, v + 1]).collect();
        let order = min_fill(&[7; 10], &scopes);
        assert!(order.steps.iter().all(|step| step.separator.len() <= 1));
        assert_eq!(order.n_entries, 9 * 49 + 7);
    }

    #[test]
    fn a_clique_costs_what_it_must() {
        let order = min_fill(&[3; 5], &[vec![0, 1, 2, 3, 4]]);
        assert_eq!(order.n_entries, 243 + 81 + 27 + 9 + 3);
        let order = min_fill(&[usize::MAX; 5], &[vec![0, 1, 2, 3, 4]]);
        assert_eq!(order.n_entries, usize::MAX);
    }
}
