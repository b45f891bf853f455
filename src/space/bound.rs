//! Templates with their facts filled in: values listed, expressions tabulated.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::error::SpaceError;
use super::expr::{Expr, Scope, param_value, template_value};
use super::function::{Function, check_names, failed};
use super::template::{ParamTemplate, Source, SpaceTemplate};
use super::{Facts, ParamValue, SearchSpace};

/// A mapping as indices: `point[i]` is the index of parameter `i`'s value.
pub(super) type Point = Vec<u16>;

/// What all restrictions of one space share.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) name: Arc<str>,
    pub(super) params: Vec<BoundParam>,
    pub(super) constraints: Vec<BoundConstraint>,
    pub(super) features: Vec<BoundFeature>,
    pub(super) facts: Arc<Facts>,
}

/// A parameter with its values.
#[derive(Debug)]
pub(super) struct BoundParam {
    pub(super) name: Arc<str>,
    pub(super) values: Vec<ParamValue>,
    /// Index of the default value, if the template states a default.
    pub(super) default: Option<u16>,
}

/// A constraint over some of the parameters.
#[derive(Debug)]
pub(super) struct BoundConstraint {
    pub(super) reason: String,
    pub(super) function: Function<bool>,
}

/// A derived feature over some of the parameters.
#[derive(Debug)]
pub(super) struct BoundFeature {
    pub(super) name: String,
    pub(super) function: Function<f64>,
}

impl BoundParam {
    /// Returns whether all values are numbers.
    pub(super) fn is_numeric(&self) -> bool {
        let mut values = self.values.iter();
        values.all(|value| matches!(value, ParamValue::Int(_)))
    }

    /// Returns how far apart two values are.
    pub(super) fn distance(&self, lhs: u16, rhs: u16) -> u64 {
        distance(
            &self.values[usize::from(lhs)],
            &self.values[usize::from(rhs)],
        )
    }
}

/// Fills in the facts of a template.
pub(super) fn instantiate(
    template: &SpaceTemplate,
    facts: &Facts,
) -> Result<SearchSpace, SpaceError> {
    let clash = template
        .params
        .iter()
        .find(|param| facts.contains_key(&*param.name));
    if let Some(param) = clash {
        return Err(SpaceError::Duplicate {
            space: template.name.to_string(),
            name: param.name.to_string(),
        });
    }
    let mut bound = Bound {
        name: template.name.clone(),
        params: Vec::with_capacity(template.params.len()),
        constraints: Vec::new(),
        features: Vec::new(),
        facts: Arc::new(facts.clone()),
    };
    for param in &template.params {
        if exists(&bound, param)? {
            let param = bound_param(&bound, param)?;
            bound.params.push(param);
        }
    }
    for constraint in &template.constraints {
        let function = bound.function("a constraint", &constraint.expr, Expr::eval_bool)?;
        bound.constraints.push(BoundConstraint {
            reason: constraint.reason.clone(),
            function,
        });
    }
    for feature in &template.features {
        let place = format!("feature `{}`", feature.name);
        let function = bound.function(&place, &feature.expr, Expr::eval_number)?;
        bound.features.push(BoundFeature {
            name: feature.name.clone(),
            function,
        });
    }
    Ok(SearchSpace::new(bound))
}

/// Returns whether there is such a parameter under the facts.
fn exists(bound: &Bound, param: &ParamTemplate) -> Result<bool, SpaceError> {
    let Some(expr) = &param.when else {
        return Ok(true);
    };
    let place = format!("`when` of `{}`", param.name);
    check_names(&bound.name, &place, expr, &bound.facts, &[])?;
    expr.eval_bool(Scope::new(bound.facts.clone(), Vec::new()))
        .map_err(|source| failed(&bound.name, &place, expr, source))
}

fn bound_param(bound: &Bound, param: &ParamTemplate) -> Result<BoundParam, SpaceError> {
    let mut values = match &param.values {
        Source::Given(values) => values.clone(),
        Source::Computed(expr) => {
            let place = format!("values of `{}`", param.name);
            check_names(&bound.name, &place, expr, &bound.facts, &[])?;
            let scope = Scope::new(bound.facts.clone(), Vec::new());
            expr.eval_list(scope)
                .map_err(|source| failed(&bound.name, &place, expr, source))?
        }
    };
    let mut seen = BTreeSet::new();
    values.retain(|value| seen.insert(value.clone()));
    if values.is_empty() || values.len() > usize::from(u16::MAX) {
        return Err(SpaceError::ValueCount {
            space: bound.name.to_string(),
            param: param.name.to_string(),
            n_values: values.len(),
        });
    }
    let default = match &param.default {
        None => None,
        Some(source) => Some(default_value(bound, param, source)?),
    };
    Ok(BoundParam {
        name: param.name.clone(),
        default: default.map(|value| closest(&values, &value)),
        values,
    })
}

fn default_value(
    bound: &Bound,
    param: &ParamTemplate,
    source: &Source,
) -> Result<ParamValue, SpaceError> {
    let expr = match source {
        Source::Given(values) => return Ok(values.first().cloned().unwrap_or_else(|| 0.into())),
        Source::Computed(expr) => expr,
    };
    let place = format!("default of `{}`", param.name);
    let above: Vec<(Arc<str>, minijinja::Value)> = bound
        .params
        .iter()
        .filter_map(|param| {
            let value = &param.values[usize::from(param.default?)];
            Some((param.name.clone(), template_value(value)))
        })
        .collect();
    let names: Vec<&Arc<str>> = above.iter().map(|(name, _)| name).collect();
    check_names(&bound.name, &place, expr, &bound.facts, &names)?;
    expr.eval(Scope::new(bound.facts.clone(), above))
        .and_then(|value| param_value(&value))
        .map_err(|source| failed(&bound.name, &place, expr, source))
}

/// Returns the index of the value nearest to `wanted`: the same word, or else the nearest number.
fn closest(values: &[ParamValue], wanted: &ParamValue) -> u16 {
    let nearest = (0..values.len()).min_by_key(|&idx| distance(&values[idx], wanted));
    nearest.unwrap_or(0) as u16
}

fn distance(lhs: &ParamValue, rhs: &ParamValue) -> u64 {
    match (lhs, rhs) {
        _ if lhs == rhs => 0,
        (ParamValue::Int(lhs), ParamValue::Int(rhs)) => lhs.abs_diff(*rhs),
        _ => u64::MAX,
    }
}
