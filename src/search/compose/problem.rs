//! The problem of composition, and what an assignment costs.

use std::collections::BTreeSet;

/// A layout; conversion tables are indexed by it, and so it should be small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LayoutId(pub u16);

/// What is to be composed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Problem {
    /// Choices by subgraph.
    pub subgraphs: Vec<Vec<Choice>>,
    /// Values that pass between subgraphs, or between them and the outside.
    pub values: Vec<Value>,
}

/// One way to run a subgraph.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Latency, nanoseconds; infinite if it cannot be chosen.
    pub cost_ns: f64,
    /// Layouts in which it takes its inputs, by port.
    pub inputs: Vec<LayoutId>,
    /// Layouts in which it leaves its outputs, by port.
    pub outputs: Vec<LayoutId>,
}

/// A value of the model, from where it is made to where it is used.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// An output port, or the fixed layout of a model input.
    pub producer: End,
    /// Input ports, or the fixed layouts of model outputs.
    pub consumers: Vec<End>,
    /// `conversion_ns[from][to]`: what one conversion takes, nanoseconds; infinite if there is
    /// none. The diagonal is charged like the rest, and so is usually 0.
    pub conversion_ns: Vec<Vec<f64>>,
}

/// Where a value begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// At the border of the model, in a given layout.
    Fixed(LayoutId),
    /// At a port of a subgraph.
    Port {
        /// Index of the subgraph.
        subgraph: usize,
        /// Index of the port, among outputs for a producer, among inputs for a consumer.
        port: usize,
    },
}

/// A problem that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ComposeError {
    /// A subgraph has nothing to choose from.
    #[error("subgraph {0} has no choices")]
    NoChoices(usize),
    /// A cost is not a number, or infinitely good.
    #[error("a cost of {0} is not a number")]
    NotANumber(String),
    /// A value ends at a subgraph or port that does not exist.
    #[error("value {value} ends at port {port} of subgraph {subgraph}, which does not exist")]
    NoPort {
        /// Index of the value.
        value: usize,
        /// Index of the subgraph.
        subgraph: usize,
        /// Index of the port.
        port: usize,
    },
    /// A conversion table does not cover a layout that may occur.
    #[error("the conversion table of value {value} does not cover {layout:?}")]
    NoConversion {
        /// Index of the value.
        value: usize,
        /// The layout.
        layout: LayoutId,
    },
}

impl Problem {
    /// Returns what an assignment costs, nanoseconds: `choices[i]` is the index of subgraph `i`'s
    /// choice. `None` if it is not an assignment of this problem.
    pub fn cost_ns(&self, choices: &[usize]) -> Option<f64> {
        if choices.len() != self.subgraphs.len() {
            return None;
        }
        let chosen = self.subgraphs.iter().zip(choices);
        let chosen: Option<Vec<&Choice>> = chosen.map(|(all, &idx)| all.get(idx)).collect();
        let chosen = chosen?;
        let subgraphs: f64 = chosen.iter().map(|choice| choice.cost_ns).sum();
        let values = self
            .values
            .iter()
            .map(|value| value.cost_ns(|idx| chosen[idx]));
        Some(subgraphs + values.sum::<f64>())
    }

    /// Checks that costs, ports and tables are there.
    pub(super) fn validate(&self) -> Result<(), ComposeError> {
        let is_cost = |cost: f64| !cost.is_nan() && cost > f64::NEG_INFINITY;
        for (idx, choices) in self.subgraphs.iter().enumerate() {
            if choices.is_empty() {
                return Err(ComposeError::NoChoices(idx));
            }
            if !choices.iter().all(|choice| is_cost(choice.cost_ns)) {
                return Err(ComposeError::NotANumber(format!("subgraph {idx}")));
            }
        }
        for (idx, value) in self.values.iter().enumerate() {
            if !value
                .conversion_ns
                .iter()
                .flatten()
                .all(|&cost| is_cost(cost))
            {
                return Err(ComposeError::NotANumber(format!("value {idx}")));
            }
            let from = self.layouts(idx, value.producer, |choice| &choice.outputs)?;
            let mut to = BTreeSet::new();
            for &consumer in &value.consumers {
                to.extend(self.layouts(idx, consumer, |choice| &choice.inputs)?);
            }
            for &layout in &from {
                let row = value.conversion_ns.get(usize::from(layout.0));
                let row = row.ok_or(ComposeError::NoConversion { value: idx, layout })?;
                if let Some(&layout) = to.iter().find(|to| usize::from(to.0) >= row.len()) {
                    return Err(ComposeError::NoConversion { value: idx, layout });
                }
            }
        }
        Ok(())
    }

    /// Returns the layouts that may occur at an end of a value.
    fn layouts(
        &self,
        value: usize,
        end: End,
        ports: fn(&Choice) -> &Vec<LayoutId>,
    ) -> Result<BTreeSet<LayoutId>, ComposeError> {
        let (subgraph, port) = match end {
            End::Fixed(layout) => return Ok(BTreeSet::from([layout])),
            End::Port { subgraph, port } => (subgraph, port),
        };
        let choices = self.subgraphs.get(subgraph).map_or(&[][..], Vec::as_slice);
        let layouts = choices
            .iter()
            .map(|choice| ports(choice).get(port).copied());
        let layouts: Option<BTreeSet<LayoutId>> = layouts.collect();
        layouts
            .filter(|layouts| !layouts.is_empty())
            .ok_or(ComposeError::NoPort {
                value,
                subgraph,
                port,
            })
    }
}

impl Value {
    /// Returns what the conversions of this value cost, each wanted layout once.
    pub(super) fn cost_ns<'a>(&self, chosen: impl Fn(usize) -> &'a Choice) -> f64 {
        let from = match self.producer {
            End::Fixed(layout) => layout,
            End::Port { subgraph, port } => chosen(subgraph).outputs[port],
        };
        let to = |end: &End| match *end {
            End::Fixed(layout) => layout,
            End::Port { subgraph, port } => chosen(subgraph).inputs[port],
        };
        let mut cost_ns = 0.0;
        for (idx, consumer) in self.consumers.iter().enumerate() {
            let layout = to(consumer);
            if self.consumers[..idx]
                .iter()
                .all(|other| to(other) != layout)
            {
                cost_ns += self.conversion_ns[usize::from(from.0)][usize::from(layout.0)];
            }
        }
        cost_ns
    }

    /// Returns the subgraphs at its ends, sorted.
    pub(super) fn subgraphs(&self) -> BTreeSet<usize> {
        let ends = self.consumers.iter().chain([&self.producer]);
        let ends = ends.filter_map(|end| match end {
            End::Fixed(_) => None,
            End::Port { subgraph, .. } => Some(*subgraph),
        });
        ends.collect()
    }
}
