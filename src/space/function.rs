//! Expressions over some parameters of a space, tabulated.
//!
//! An expression that names few parameters is evaluated once for every combination of their
//! values; a check is then one look-up, where the evaluation takes about half a microsecond.

use std::sync::Arc;

use super::Facts;
use super::bound::{Bound, Point};
use super::error::{SpaceError, nearest};
use super::expr::{Expr, Scope, template_value};

/// Largest number of combinations that are tabulated, about 15 ms of evaluation.
const MAX_TABLE_LEN: usize = 1 << 15;

/// An expression over the parameters `scope`, tabulated if there are few combinations.
#[derive(Debug)]
pub(super) struct Function<T> {
    pub(super) expr: Expr,
    /// Indices of the parameters, ascending.
    pub(super) scope: Vec<usize>,
    strides: Vec<usize>,
    table: Option<Vec<T>>,
    eval: fn(&Expr, Scope) -> Result<T, minijinja::Error>,
}

impl<T: Copy> Function<T> {
    /// Returns the value at a point, or `None` if the evaluation fails there.
    pub(super) fn at(&self, bound: &Bound, point: &[u16]) -> Option<T> {
        match &self.table {
            Some(table) => {
                let offsets = self.scope.iter().zip(&self.strides);
                let idx: usize = offsets
                    .map(|(&p, &stride)| usize::from(point[p]) * stride)
                    .sum();
                Some(table[idx])
            }
            None => (self.eval)(&self.expr, bound.scope_at(&self.scope, point)).ok(),
        }
    }
}

impl Function<bool> {
    /// Returns which values of its parameters can make it true if every parameter is one of
    /// `allowed`; nothing if that is not tabulated.
    pub(super) fn supported(&self, bound: &Bound, allowed: &[Vec<u16>]) -> Vec<(usize, Vec<bool>)> {
        let Some(table) = &self.table else {
            return Vec::new();
        };
        let n_values = |param: &usize| bound.params[*param].values.len();
        let mut supported: Vec<Vec<bool>> = self
            .scope
            .iter()
            .map(|param| vec![false; n_values(param)])
            .collect();
        let is_allowed: Vec<Vec<bool>> = (self.scope.iter())
            .map(|param| {
                let mut is_allowed = vec![false; n_values(param)];
                allowed[*param]
                    .iter()
                    .for_each(|&idx| is_allowed[usize::from(idx)] = true);
                is_allowed
            })
            .collect();
        for (entry, _) in table.iter().enumerate().filter(|(_, holds)| **holds) {
            let value = |at: usize| entry / self.strides[at] % is_allowed[at].len();
            if (0..self.scope.len()).all(|at| is_allowed[at][value(at)]) {
                for (at, supported) in supported.iter_mut().enumerate() {
                    supported[value(at)] = true;
                }
            }
        }
        self.scope.iter().copied().zip(supported).collect()
    }
}

impl Bound {
    /// Defines the names of some parameters at a point.
    fn scope_at(&self, params: &[usize], point: &[u16]) -> Scope {
        let defined = params.iter().map(|&idx| {
            let param = &self.params[idx];
            let value = &param.values[usize::from(point[idx])];
            (param.name.clone(), template_value(value))
        });
        Scope::new(self.facts.clone(), defined.collect())
    }

    /// Resolves the names of an expression and tabulates it.
    pub(super) fn function<T>(
        &self,
        place: &str,
        expr: &Expr,
        eval: fn(&Expr, Scope) -> Result<T, minijinja::Error>,
    ) -> Result<Function<T>, SpaceError> {
        let names: Vec<&Arc<str>> = self.params.iter().map(|param| &param.name).collect();
        check_names(&self.name, place, expr, &self.facts, &names)?;
        let uses = |idx: &usize| expr.names().contains(&*self.params[*idx].name);
        let scope: Vec<usize> = (0..self.params.len()).filter(uses).collect();

        let mut len = 1usize;
        let mut strides = Vec::with_capacity(scope.len());
        for &idx in &scope {
            strides.push(len);
            len = len.saturating_mul(self.params[idx].values.len());
        }
        let mut table = None;
        if len <= MAX_TABLE_LEN {
            let mut point: Point = vec![0; self.params.len()];
            let entries = (0..len).map(|entry| {
                for (&idx, &stride) in scope.iter().zip(&strides) {
                    point[idx] = (entry / stride % self.params[idx].values.len()) as u16;
                }
                eval(expr, self.scope_at(&scope, &point))
            });
            let entries: Result<Vec<T>, _> = entries.collect();
            table = Some(entries.map_err(|source| failed(&self.name, place, expr, source))?);
        }
        Ok(Function {
            expr: expr.clone(),
            scope,
            strides,
            table,
            eval,
        })
    }
}

/// Checks that every name of an expression is a fact or one of `params`.
pub(super) fn check_names(
    space: &str,
    place: &str,
    expr: &Expr,
    facts: &Facts,
    params: &[&Arc<str>],
) -> Result<(), SpaceError> {
    let params = || params.iter().map(|name| &***name);
    let known = |name: &str| facts.contains_key(name) || params().any(|param| param == name);
    match expr.names().iter().find(|name| !known(name)) {
        None => Ok(()),
        Some(name) => Err(SpaceError::UnknownName {
            space: space.to_owned(),
            place: place.to_owned(),
            name: name.clone(),
            nearest: nearest(name, facts.keys().map(String::as_str).chain(params()))
                .map(str::to_owned),
        }),
    }
}

/// Says which expression failed.
pub(super) fn failed(
    space: &str,
    place: &str,
    expr: &Expr,
    source: minijinja::Error,
) -> SpaceError {
    SpaceError::Expression {
        space: space.to_owned(),
        place: place.to_owned(),
        expr: expr.text().to_owned(),
        source: Box::new(source),
    }
}
