//! Operators of one element at a time, with broadcasting.

use serde_json::json;

use super::element;
use super::nest;
use super::node::{Known, LoopNode};
use super::scalar::{self, Term};
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;

/// Lowers an operator of one element; `None` if it is not one.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Result<Vec<Operation>, NotCovered>> {
    let output = node.output(0)?;
    if node.output(1).is_some() {
        return None;
    }
    let mut inputs: Vec<Known<'_>> = Vec::new();
    let mut args: Vec<Option<Term>> = Vec::new();
    for idx in 0..node.node.inputs.len() {
        args.push(node.input(idx).map(|known| {
            let variable = format!("a{}", inputs.len());
            let term = scalar::term(&known, variable.clone());
            if term.text == variable {
                inputs.push(known);
            }
            term
        }));
    }
    while args.last().is_some_and(Option::is_none) {
        args.pop();
    }
    let expression = scalar::expression(node, &args)?;
    if inputs
        .iter()
        .any(|input| !broadcasts(input.dims(), output.dims()))
    {
        return Some(Err(node.refuse(format!(
            "its operands do not broadcast to {}",
            output.shape
        ))));
    }
    let mut strides: Vec<Vec<usize>> = inputs
        .iter()
        .map(|input| nest::broadcast(input.dims(), output.dims()))
        .collect();
    strides.push(nest::dense(output.dims()));
    let (extents, strides) = nest::merge(output.dims(), &strides);
    let loads: Vec<_> = inputs
        .iter()
        .zip(&strides)
        .enumerate()
        .map(|(idx, (input, strides))| {
            json!({
                "storage": element::storage(input.dtype),
                "load": element::load(input.dtype, &format!("x{idx}.add({})", nest::place(strides))),
            })
        })
        .collect();
    let facts = json!({
        "extents": extents,
        "inputs": loads,
        "steps": [{
            "name": "v",
            "dtype": element::rust_type(output.dtype),
            "expression": expression,
        }],
        "output": {
            "storage": element::storage(output.dtype),
            "at": nest::place(&strides[inputs.len()]),
            "store": element::store(output.dtype, "v"),
        },
    });
    let operation = node.operation("loops/elementwise.rs.j2", facts, &inputs, &[output], 0);
    Some(Ok(vec![operation]))
}

fn broadcasts(from: &[usize], to: &[usize]) -> bool {
    from.len() <= to.len()
        && from
            .iter()
            .rev()
            .zip(to.iter().rev())
            .all(|(&from, &to)| from == to || from == 1)
}
