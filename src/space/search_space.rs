//! The space of one task: parameters with their values, and which combinations are valid.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::bound::{Bound, Point};
use super::error::nearest;
use super::walk::{MAX_STEPS, Walk};
use super::{Mapping, ParamValue, SpaceError, Violation};

/// A finite set of mappings. Cheap to clone.
#[derive(Clone)]
pub struct SearchSpace {
    bound: Arc<Bound>,
    /// Indices of the values that each parameter may still take.
    allowed: Vec<Vec<u16>>,
    filters: Vec<Arc<Filter>>,
    /// All valid points, once sampling had to enumerate; `None` if there are too many.
    listed: Arc<OnceLock<Option<Vec<Point>>>>,
}

/// A predicate that restricts a space.
type Filter = dyn Fn(&Mapping) -> bool + Send + Sync;

/// A parameter and what it offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// What it may be, in the order of the template.
    pub values: Vec<ParamValue>,
}

impl SearchSpace {
    pub(super) fn new(bound: Bound) -> Self {
        let all = |n: usize| (0..n as u16).collect();
        let params = bound.params.iter();
        let mut space = Self {
            allowed: params.map(|param| all(param.values.len())).collect(),
            bound: Arc::new(bound),
            filters: Vec::new(),
            listed: Arc::default(),
        };
        space.propagate();
        space
    }

    /// Drops values that no constraint lets be chosen whatever the other parameters are, so that
    /// drawing at random seldom fails.
    fn propagate(&mut self) {
        loop {
            let mut has_changed = false;
            for constraint in &self.bound.constraints {
                for (param, supported) in constraint.function.supported(&self.bound, &self.allowed)
                {
                    let allowed = &mut self.allowed[param];
                    let n_allowed = allowed.len();
                    allowed.retain(|&idx| supported[usize::from(idx)]);
                    has_changed |= allowed.len() < n_allowed;
                }
            }
            if !has_changed {
                return;
            }
        }
    }

    /// Returns the name of the template.
    pub fn name(&self) -> &str {
        &self.bound.name
    }

    /// Returns the parameters with the values that they may still take, in order.
    pub fn params(&self) -> Vec<Param> {
        let params = self.bound.params.iter().zip(&self.allowed);
        params
            .map(|(param, allowed)| Param {
                name: param.name.to_string(),
                values: allowed
                    .iter()
                    .map(|&idx| param.values[usize::from(idx)].clone())
                    .collect(),
            })
            .collect()
    }

    /// Returns the number of combinations before constraints, saturating.
    pub fn len_upper_bound(&self) -> u64 {
        let lens = self.allowed.iter().map(|allowed| allowed.len() as u64);
        lens.fold(1, u64::saturating_mul)
    }

    /// Returns the space without the mappings for which `keep` is false.
    #[must_use]
    pub fn restricted(&self, keep: impl Fn(&Mapping) -> bool + Send + Sync + 'static) -> Self {
        let mut restricted = self.clone();
        restricted.filters.push(Arc::new(keep));
        restricted.listed = Arc::default();
        restricted
    }

    /// Returns the space with some parameters fixed.
    ///
    /// # Errors
    /// A parameter that does not exist, or a value that it does not offer.
    pub fn fixed(&self, values: &[(&str, ParamValue)]) -> Result<Self, SpaceError> {
        let mut fixed = self.clone();
        fixed.listed = Arc::default();
        for (name, value) in values {
            let Some(param) = self
                .bound
                .params
                .iter()
                .position(|param| &*param.name == *name)
            else {
                let known = self.bound.params.iter().map(|param| &*param.name);
                return Err(SpaceError::UnknownParam {
                    space: self.name().to_owned(),
                    param: (*name).to_owned(),
                    nearest: nearest(name, known).map(str::to_owned),
                });
            };
            let offered = &self.bound.params[param].values;
            let may_be = |idx: &&u16| offered[usize::from(**idx)] == *value;
            match self.allowed[param].iter().find(may_be) {
                Some(&idx) => fixed.allowed[param] = vec![idx],
                None => {
                    return Err(SpaceError::NotOffered {
                        space: self.name().to_owned(),
                        param: (*name).to_owned(),
                        value: value.clone(),
                        offered: self.params().swap_remove(param).values,
                    });
                }
            }
        }
        fixed.propagate();
        Ok(fixed)
    }

    /// Checks whether a mapping is part of the space.
    ///
    /// # Errors
    /// The first reason why it is not.
    pub fn is_valid(&self, mapping: &Mapping) -> Result<(), Violation> {
        let point = self.locate(mapping)?;
        let broken = self
            .bound
            .constraints
            .iter()
            .find(|constraint| constraint.function.at(&self.bound, &point) != Some(true));
        if let Some(constraint) = broken {
            return Err(Violation::Constraint {
                expr: constraint.function.expr.text().to_owned(),
                reason: constraint.reason.clone(),
            });
        }
        let mut within = self.allowed.iter().zip(&point);
        if within.all(|(allowed, idx)| allowed.contains(idx)) && self.passes_filters(&point) {
            Ok(())
        } else {
            Err(Violation::Restricted)
        }
    }

    /// Returns the valid mapping nearest to the template's defaults; where they break a
    /// constraint, later parameters give way first. `None` if nothing is valid, or if the search
    /// was given up in a huge space.
    pub fn default_mapping(&self) -> Option<Mapping> {
        let order = self
            .allowed
            .iter()
            .zip(&self.bound.params)
            .map(|(allowed, param)| {
                let mut values = allowed.clone();
                if let Some(default) = param.default {
                    values.sort_by_key(|&idx| param.distance(idx, default));
                }
                values
            });
        let mut walk = Walk::new(self, order.collect(), MAX_STEPS);
        walk.next_point().map(|point| self.mapping(&point))
    }

    pub(super) fn bound(&self) -> &Bound {
        &self.bound
    }

    /// Returns the indices of the values that each parameter may still take.
    pub(super) fn allowed(&self) -> &[Vec<u16>] {
        &self.allowed
    }

    /// Returns the valid points if they were listed, else calls `list` once.
    pub(super) fn listed(&self, list: impl FnOnce() -> Option<Vec<Point>>) -> Option<&[Point]> {
        self.listed.get_or_init(list).as_deref()
    }

    /// Returns whether the valid points are listed already.
    pub(super) fn is_listed(&self) -> bool {
        matches!(self.listed.get(), Some(Some(_)))
    }

    pub(super) fn is_valid_point(&self, point: &[u16]) -> bool {
        let mut constraints = self.bound.constraints.iter();
        constraints.all(|c| c.function.at(&self.bound, point) == Some(true))
            && self.passes_filters(point)
    }

    pub(super) fn passes_filters(&self, point: &[u16]) -> bool {
        if self.filters.is_empty() {
            return true;
        }
        let mapping = self.mapping(point);
        self.filters.iter().all(|keep| keep(&mapping))
    }

    pub(super) fn mapping(&self, point: &[u16]) -> Mapping {
        let values = self.bound.params.iter().zip(point);
        let named = values.map(|(param, &idx)| {
            let value = param.values[usize::from(idx)].clone();
            (param.name.to_string(), value)
        });
        Mapping(named.collect())
    }

    /// Finds the indices of a mapping's values; constraints do not matter.
    pub(super) fn locate(&self, mapping: &Mapping) -> Result<Point, Violation> {
        let params = &self.bound.params;
        let unknown = |name: &&String| !params.iter().any(|param| *param.name == **name);
        if let Some(name) = mapping.0.keys().find(unknown) {
            return Err(Violation::UnknownParam(name.clone()));
        }
        let located = params.iter().map(|param| {
            let Some(value) = mapping.0.get(&*param.name) else {
                return Err(Violation::Missing(param.name.to_string()));
            };
            let idx = param.values.iter().position(|offered| offered == value);
            idx.map(|idx| idx as u16)
                .ok_or_else(|| Violation::NotOffered {
                    param: param.name.to_string(),
                    value: value.clone(),
                })
        });
        located.collect()
    }
}

impl fmt::Debug for SearchSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchSpace")
            .field("bound", &self.bound)
            .field("allowed", &self.allowed)
            .field("n_filters", &self.filters.len())
            .finish_non_exhaustive()
    }
}
