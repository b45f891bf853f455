//! Variables by classes of choices, and tables over them.

use std::collections::BTreeMap;

use super::problem::Choice;

/// Choices of one subgraph, grouped by the layouts at its ports: within a class only the cost
/// differs.
pub(super) struct Variable {
    pub(super) classes: Vec<Class>,
}

/// Choices of equal layouts, cheapest first.
pub(super) struct Class {
    pub(super) choices: Vec<usize>,
}

/// A function of some variables' classes.
pub(super) struct Table {
    pub(super) variables: Vec<usize>,
    pub(super) strides: Vec<usize>,
    pub(super) entries: Vec<f64>,
}

impl Variable {
    /// Groups choices.
    pub(super) fn new(choices: &[Choice], allowed: &[usize]) -> Self {
        let mut classes: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for &idx in allowed {
            let choice = &choices[idx];
            classes
                .entry((&choice.inputs, &choice.outputs))
                .or_default()
                .push(idx);
        }
        let classes = classes.into_values().map(|mut members| {
            members.sort_by(|&lhs, &rhs| choices[lhs].cost_ns.total_cmp(&choices[rhs].cost_ns));
            Class { choices: members }
        });
        Self {
            classes: classes.collect(),
        }
    }
}

impl Table {
    /// Returns how many entries a full table has.
    pub(super) fn len(&self, variables: &[Variable]) -> usize {
        self.variables
            .iter()
            .map(|&v| variables[v].classes.len())
            .product()
    }

    /// Returns whether no entry is finite.
    pub(super) fn is_infeasible(&self) -> bool {
        self.entries.iter().all(|entry| entry.is_infinite())
    }

    /// Returns how far apart the entries of neighbouring classes of a variable are; 0 if the table
    /// does not depend on it.
    pub(super) fn stride(&self, variable: usize) -> usize {
        let position = self.variables.iter().position(|&v| v == variable);
        position.map_or(0, |idx| self.strides[idx])
    }

    /// Returns the entry at an assignment of classes.
    pub(super) fn at(&self, classes: &[usize]) -> f64 {
        let offsets = self.variables.iter().zip(&self.strides);
        self.entries[offsets
            .map(|(&v, &stride)| classes[v] * stride)
            .sum::<usize>()]
    }
}
