//! Fixing the shapes of model inputs.

use std::collections::BTreeMap;

use super::error::Problem;
use super::proto::{Dim, ValueInfo};
use crate::graph::Shape;

/// Refuses configured inputs that the model does not have.
pub(super) fn check_names(
    inputs: &[&ValueInfo<'_>],
    configured: &BTreeMap<String, Vec<usize>>,
) -> Result<(), Problem> {
    for name in configured.keys() {
        if inputs.iter().all(|input| input.name != name) {
            let closest = inputs
                .iter()
                .map(|input| (distance(name, input.name), input.name))
                .min()
                .filter(|(distance, _)| *distance <= name.len().max(3) / 2);
            return Err(Problem::UnknownInput {
                input: name.clone(),
                nearest: closest.map(|(_, name)| name.to_owned()),
                inputs: inputs.iter().map(|input| input.name.to_owned()).collect(),
            });
        }
    }
    Ok(())
}

/// Returns the static shape of an input.
pub(super) fn fix(input: &ValueInfo<'_>, configured: Option<&[usize]>) -> Result<Shape, Problem> {
    let declared = || match &input.dims {
        Some(dims) => dims.iter().map(written).collect::<Vec<_>>().join(", "),
        None => "of unknown rank".to_owned(),
    };
    if let Some(configured) = configured {
        let fits = input.dims.as_ref().is_none_or(|dims| {
            dims.len() == configured.len()
                && dims
                    .iter()
                    .zip(configured)
                    .all(|(dim, &size)| fixed(dim).is_none_or(|fixed| fixed == size))
        });
        let configured = Shape(configured.to_vec());
        if !fits {
            return Err(Problem::InputShape {
                input: input.name.to_owned(),
                configured,
                declared: declared(),
            });
        }
        return Ok(configured);
    }
    let dims = input.dims.as_deref();
    let known = dims.and_then(|dims| dims.iter().map(fixed).collect::<Option<Vec<_>>>());
    known.map(Shape).ok_or_else(|| Problem::DynamicInput {
        input: input.name.to_owned(),
        dims: declared(),
        example: example(input),
    })
}

/// Some writers say -1 or 0 where they mean an open dimension.
fn fixed(dim: &Dim<'_>) -> Option<usize> {
    match dim {
        Dim::Fixed(size) if *size > 0 => usize::try_from(*size).ok(),
        _ => None,
    }
}

fn written(dim: &Dim<'_>) -> String {
    match dim {
        Dim::Fixed(size) => size.to_string(),
        Dim::Symbol("") => "?".to_owned(),
        Dim::Symbol(name) => (*name).to_owned(),
    }
}

/// Writes a TOML entry to start from: one for open batches, plausible sizes elsewhere.
fn example(input: &ValueInfo<'_>) -> String {
    let dims = match &input.dims {
        Some(dims) => dims
            .iter()
            .enumerate()
            .map(|(idx, dim)| match (fixed(dim), idx, dims.len()) {
                (Some(size), ..) => size.to_string(),
                (None, 0, _) => "1".to_owned(),
                (None, _, 4) => "224".to_owned(),
                (None, ..) => "128".to_owned(),
            })
            .collect::<Vec<_>>()
            .join(", "),
        None => "1, 3, 224, 224".to_owned(),
    };
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !input.name.is_empty() && input.name.chars().all(is_bare) {
        format!("{} = [{dims}]", input.name)
    } else {
        format!("{:?} = [{dims}]", input.name)
    }
}

/// Returns the Levenshtein distance of two names.
fn distance(lhs: &str, rhs: &str) -> usize {
    let rhs: Vec<char> = rhs.chars().collect();
    let mut row: Vec<usize> = (0..=rhs.len()).collect();
    for (i, left) in lhs.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &right) in rhs.iter().enumerate() {
            let substituted = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[rhs.len()]
}
