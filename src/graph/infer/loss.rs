//! Losses of a classification.

use super::fact::{Case, Fact, Facts, mismatch};
use crate::graph::Shape;

/// `NegativeLogLikelihoodLoss` (12, 13, 22) and `SoftmaxCrossEntropyLoss` (12, 13): scores
/// `[n, classes, d …]`, targets `[n, d …]`.
pub(super) fn loss(case: &Case<'_>) -> Facts {
    let scores = case.operand(0)?;
    let (dims, target) = (scores.shape.dims(), case.dims(1)?);
    let fits = dims.len() >= 2
        && target.len() + 1 == dims.len()
        && target[0] == dims[0]
        && target[1..] == dims[2..];
    if !fits {
        return mismatch(format!("targets {target:?} do not fit scores {dims:?}"));
    }
    case.expect(2, "the weight of the classes", &dims[1..2])?;
    let shape = match case.node.string("reduction", "mean") {
        "none" => target.to_vec(),
        "mean" | "sum" => Vec::new(),
        other => return mismatch(format!("`reduction` is `{other}`")),
    };
    let fact = |shape: Vec<usize>| Fact {
        dtype: scores.dtype,
        shape: Shape(shape),
    };
    let mut facts = vec![fact(shape)];
    if case.node.op == "SoftmaxCrossEntropyLoss" {
        facts.push(fact(dims.to_vec()));
    }
    Ok(Some(facts))
}
