//! `Einsum`: sums of products over named axes.

use std::collections::BTreeMap;

use super::fact::{Case, Facts, mismatch, one};

/// `Einsum` without ellipses; `None` with them.
pub(super) fn einsum(case: &Case<'_>) -> Facts {
    let equation: String = case
        .node
        .string("equation", "")
        .split_whitespace()
        .collect();
    if equation.contains('.') {
        return Ok(None);
    }
    let (terms, output) = match equation.split_once("->") {
        Some((terms, output)) => (terms, Some(output)),
        None => (equation.as_str(), None),
    };
    let terms: Vec<&str> = terms.split(',').collect();
    if terms.len() != case.operands.len() {
        return mismatch(format!("`{equation}` has {} terms", terms.len()));
    }
    let mut sizes: BTreeMap<char, usize> = BTreeMap::new();
    for (idx, term) in terms.iter().enumerate() {
        let dims = case.dims(idx)?;
        if term.chars().count() != dims.len() {
            return mismatch(format!("`{term}` does not name the axes of {dims:?}"));
        }
        for (axis, &size) in term.chars().zip(dims) {
            let known = sizes.entry(axis).or_insert(size);
            if *known == 1 {
                *known = size;
            }
            if size != *known && size != 1 {
                return mismatch(format!("axis `{axis}` is {known} and {size}"));
            }
        }
    }
    let implied = || {
        let is_single = |axis: &char| terms.concat().matches(*axis).count() == 1;
        sizes.keys().copied().filter(is_single).collect::<String>()
    };
    let output = output.map_or_else(implied, str::to_owned);
    let mut shape = Vec::new();
    for axis in output.chars() {
        match sizes.get(&axis) {
            Some(&size) => shape.push(size),
            None => return mismatch(format!("axis `{axis}` is in no term")),
        }
    }
    one(case.operand(0)?.dtype, shape)
}
