//! `Einsum`: sums of products over named axes.

use std::collections::BTreeMap;

use super::fact::{Case, Facts, InferError, broadcast, mismatch, one};

/// `Einsum` (12): a term names the axes of its input, twice for a diagonal; an ellipsis stands for
/// axes that broadcast.
pub(super) fn einsum(case: &Case<'_>) -> Facts {
    let equation: String = case
        .node
        .string("equation", "")
        .split_whitespace()
        .collect();
    let (terms, output) = match equation.split_once("->") {
        Some((terms, output)) => (terms, Some(output)),
        None => (equation.as_str(), None),
    };
    let terms: Vec<&str> = terms.split(',').collect();
    if terms.len() != case.operands.len() {
        return mismatch(format!("`{equation}` has {} terms", terms.len()));
    }
    let mut axes = Axes::default();
    for (idx, term) in terms.iter().enumerate() {
        case.expect_type(idx)?;
        axes.add(term, case.dims(idx)?)?;
    }
    let output = match output {
        Some(output) => output.to_owned(),
        None => axes.implied(&terms.concat()),
    };
    one(case.operand(0)?.dtype, axes.shape(&output)?)
}

/// Sizes of all axes.
#[derive(Default)]
struct Axes {
    named: BTreeMap<char, usize>,
    /// What ellipses broadcast to, if there are any.
    others: Option<Vec<usize>>,
}

/// Splits a term at its ellipsis.
fn split(term: &str) -> Result<(&str, Option<&str>), InferError> {
    let (front, back) = match term.split_once("...") {
        Some((front, back)) => (front, Some(back)),
        None => (term, None),
    };
    let mut names = front.chars().chain(back.unwrap_or_default().chars());
    if names.all(|name| name.is_ascii_alphabetic()) {
        return Ok((front, back));
    }
    mismatch(format!("`{term}` is no list of axes"))
}

impl Axes {
    fn add(&mut self, term: &str, dims: &[usize]) -> Result<(), InferError> {
        let (front, back) = split(term)?;
        let n_named = front.len() + back.map_or(0, str::len);
        if n_named > dims.len() || (back.is_none() && n_named < dims.len()) {
            return mismatch(format!("`{term}` does not name the axes of {dims:?}"));
        }
        let (first, rest) = dims.split_at(front.len());
        let (others, last) = rest.split_at(dims.len() - n_named);
        if back.is_some() {
            let known = self.others.get_or_insert_default();
            *known = broadcast(known, others)?;
        }
        let names = front.chars().chain(back.unwrap_or_default().chars());
        for (axis, &size) in names.zip(first.iter().chain(last)) {
            let known = self.named.entry(axis).or_insert(size);
            if *known == 1 {
                *known = size;
            }
            if size != *known && size != 1 {
                return mismatch(format!("axis `{axis}` is {known} and {size}"));
            }
        }
        Ok(())
    }

    /// The output that is not stated: other axes first, then what is named once, by alphabet.
    fn implied(&self, all: &str) -> String {
        let is_single = |axis: &char| all.matches(*axis).count() == 1;
        let named: String = self.named.keys().copied().filter(is_single).collect();
        match self.others {
            Some(_) => format!("...{named}"),
            None => named,
        }
    }

    fn shape(&self, output: &str) -> Result<Vec<usize>, InferError> {
        let (front, back) = split(output)?;
        let mut shape = Vec::new();
        let push = |names: &str, shape: &mut Vec<usize>| {
            for axis in names.chars() {
                match self.named.get(&axis) {
                    Some(&size) => shape.push(size),
                    None => return mismatch(format!("axis `{axis}` is in no term")),
                }
                if output.matches(axis).count() > 1 {
                    return mismatch(format!("`{output}` names axis `{axis}` twice"));
                }
            }
            Ok(())
        };
        push(front, &mut shape)?;
        if let Some(back) = back {
            shape.extend(self.others.iter().flatten());
            push(back, &mut shape)?;
        }
        Ok(shape)
    }
}
