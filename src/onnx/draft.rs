//! A graph under construction: its values, and the names in reach.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::error::Problem;
use crate::graph::{Fact, Graph, Shape, Tensor, Value, ValueId};

/// Most elements and largest dimension of a value.
const MAX_ELEMENTS: usize = 1 << 31;

/// A graph whose values are looked up by name.
pub(super) struct Draft {
    /// What there is so far.
    pub(super) graph: Graph,
    /// Names in reach, innermost graph last.
    scopes: Vec<HashMap<String, ValueId>>,
    /// Names in use.
    taken: HashSet<String>,
}

/// How far a draft had come.
pub(super) struct Mark {
    values: usize,
    nodes: usize,
    scopes: usize,
}

impl Draft {
    /// Starts a graph.
    pub(super) fn new(name: &str, opset: i64) -> Self {
        Self {
            graph: Graph {
                name: name.to_owned(),
                opset,
                values: Vec::new(),
                nodes: Vec::new(),
                inputs: Vec::new(),
                outputs: Vec::new(),
            },
            scopes: vec![HashMap::new()],
            taken: HashSet::new(),
        }
    }

    /// Enters a graph within the graph.
    pub(super) fn enter(&mut self) {
        self.scopes.push(HashMap::new());
    }

    /// Leaves the innermost graph: its names are out of reach, its values stay.
    pub(super) fn leave(&mut self) {
        self.scopes.pop();
    }

    /// Remembers how far the draft has come.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            values: self.graph.values.len(),
            nodes: self.graph.nodes.len(),
            scopes: self.scopes.len(),
        }
    }

    /// Forgets what came after a mark.
    pub(super) fn rewind(&mut self, mark: &Mark) {
        self.scopes.truncate(mark.scopes);
        for scope in &mut self.scopes {
            scope.retain(|_, id| id.0 < mark.values);
        }
        self.graph.nodes.truncate(mark.nodes);
        for value in self.graph.values.drain(mark.values..) {
            self.taken.remove(&value.name);
        }
    }

    /// Returns whether a name is in reach.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.scopes.iter().any(|scope| scope.contains_key(name))
    }

    /// Returns the value of a name that `reader` reads.
    pub(super) fn lookup(&self, name: &str, reader: &str) -> Result<ValueId, Problem> {
        let found = self.scopes.iter().rev().find_map(|scope| scope.get(name));
        found.copied().ok_or_else(|| Problem::Undefined {
            value: name.to_owned(),
            reader: reader.to_owned(),
        })
    }

    /// Adds a constant.
    pub(super) fn define_constant(&mut self, name: &str, data: Arc<Tensor>) -> Result<(), Problem> {
        let value = Value {
            name: name.to_owned(),
            dtype: data.dtype(),
            shape: data.shape().clone(),
            data: Some(data),
        };
        self.push(value).map(|_| ())
    }

    /// Adds a value that a node or the caller produces.
    pub(super) fn define(&mut self, name: &str, fact: Fact) -> Result<ValueId, Problem> {
        check_size(name, &fact.shape)?;
        if fact.shape.is_empty() {
            return Err(Problem::ZeroSized {
                value: name.to_owned(),
                shape: fact.shape,
            });
        }
        self.push(Value {
            name: name.to_owned(),
            dtype: fact.dtype,
            shape: fact.shape,
            data: None,
        })
    }

    fn push(&mut self, mut value: Value) -> Result<ValueId, Problem> {
        let id = ValueId(self.graph.values.len());
        let is_inner = self.scopes.len() > 1;
        let Some(scope) = self.scopes.last_mut() else {
            return Err(Problem::Duplicate(value.name));
        };
        if scope.insert(value.name.clone(), id).is_some() {
            return Err(Problem::Duplicate(value.name));
        }
        // Both branches of an `If` may use one name, so inner values are renamed apart.
        while !self.taken.insert(value.name.clone()) {
            if !is_inner {
                return Err(Problem::Duplicate(value.name));
            }
            value.name.push('\'');
        }
        self.graph.values.push(value);
        Ok(id)
    }
}

/// Refuses values too large to index.
pub(super) fn check_size(name: &str, shape: &Shape) -> Result<(), Problem> {
    let is_large = shape.checked_len().is_none_or(|len| len > MAX_ELEMENTS)
        || shape.dims().iter().any(|&dim| dim > MAX_ELEMENTS);
    if is_large {
        return Err(Problem::TooLarge {
            value: name.to_owned(),
            shape: shape.clone(),
        });
    }
    Ok(())
}
