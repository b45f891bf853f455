//! Normalisations and what shares their axes.

use super::fact::{Case, Fact, Facts, InferError, axes, axis, broadcast, mismatch, one};
use crate::graph::Shape;

fn same(case: &Case<'_>) -> Facts {
    one(case.operand(0)?.dtype, case.dims(0)?.to_vec())
}

/// Returns the number of channels of `[n, c, …]`; a single dimension is one of images.
fn channels(case: &Case<'_>) -> Result<usize, InferError> {
    Ok(case.dims(0)?.get(1).copied().unwrap_or(1))
}

/// `BatchNormalization` (7, 9, 14, 15) as inference does it, with one output.
pub(super) fn batch(case: &Case<'_>) -> Facts {
    let dims = case.dims(0)?;
    if case.node.int("training_mode", 0) != 0
        || case.node.outputs.iter().skip(1).any(Option::is_some)
    {
        return mismatch("it is in training mode: export the model for inference");
    }
    let channels = channels(case)?;
    for idx in 1..5 {
        let parameter = case.dims(idx)?;
        if parameter != [channels] {
            return mismatch(format!(
                "input 0 is {dims:?}, so input {idx} must be [{channels}], it is {parameter:?}"
            ));
        }
    }
    same(case)
}

/// `LayerNormalization` (17): the result, then mean and inverse deviation;
/// `RMSNormalization` (23): the result.
pub(super) fn layer(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let dims = data.shape.dims();
    let first = axis(case.node.int("axis", -1), dims.len())?;
    for (idx, name) in [(1, "scale"), (2, "bias")] {
        if let Some(given) = case.optional(idx)
            && broadcast(given.shape.dims(), dims)? != dims
        {
            return mismatch(format!("{name} {} does not fit {dims:?}", given.shape));
        }
    }
    let kept = |(i, &d): (usize, &usize)| if i < first { d } else { 1 };
    let reduced = Shape(dims.iter().enumerate().map(kept).collect());
    // Statistics are kept in the type that `stash_type` names, which is f32 unless set.
    let stash = super::fact::dtype(case.node.int("stash_type", 1))?;
    let fact = |dtype, shape: &Shape| Fact {
        dtype,
        shape: shape.clone(),
    };
    let mut facts = vec![fact(data.dtype, data.shape)];
    if case.node.op == "LayerNormalization" {
        facts.extend([fact(stash, &reduced), fact(stash, &reduced)]);
    }
    Ok(Some(facts))
}

/// `InstanceNormalization` (6, 22).
pub(super) fn instance(case: &Case<'_>) -> Facts {
    let dims = case.dims(0)?;
    if dims.len() < 3 {
        return mismatch(format!("input {dims:?} has no spatial dimensions"));
    }
    let channels = channels(case)?;
    for (idx, name) in [(1, "the scale"), (2, "the bias")] {
        case.operand(idx)?;
        case.expect(idx, name, &[channels])?;
    }
    same(case)
}

/// `GroupNormalization` (18: scale and bias for each group; 21: for each channel).
pub(super) fn group(case: &Case<'_>) -> Facts {
    let dims = case.dims(0)?;
    let groups = usize::try_from(case.node.int("num_groups", 0)).unwrap_or(0);
    let channels = channels(case)?;
    if dims.len() < 2 || groups == 0 || !channels.is_multiple_of(groups) {
        return mismatch(format!(
            "input {dims:?} does not split into {groups} groups (`num_groups`)"
        ));
    }
    let n = if case.opset < 21 { groups } else { channels };
    for (idx, name) in [(1, "the scale"), (2, "the bias")] {
        case.operand(idx)?;
        case.expect(idx, name, &[n])?;
    }
    same(case)
}

/// `LRN` (1, 13).
pub(super) fn local_response(case: &Case<'_>) -> Facts {
    let (size, dims) = (case.node.int("size", 0), case.dims(0)?);
    if size < 1 || dims.len() < 2 {
        return mismatch(format!("`size` is {size} over the channels of {dims:?}"));
    }
    same(case)
}

/// `Softmax`, `LogSoftmax`, `Hardmax` (1, 11, 13), `LpNormalization` (1, 22).
pub(super) fn along_axis(case: &Case<'_>) -> Facts {
    let rank = case.dims(0)?.len();
    let stated = match case.node.op.as_str() {
        "LpNormalization" => case.node.int("axis", -1),
        _ if case.opset < 13 => case.node.int("axis", 1),
        _ => case.node.int("axis", -1),
    };
    // Before 13 the axis splits the dimensions in two, so that it may be their number.
    let is_split = case.opset < 13 && case.node.op != "LpNormalization" && stated == rank as i64;
    if !is_split && rank > 0 {
        axis(stated, rank)?;
    }
    if case.node.op == "LpNormalization" && !matches!(case.node.int("p", 2), 1 | 2) {
        return mismatch(format!("`p` is {}", case.node.int("p", 2)));
    }
    same(case)
}

/// `MeanVarianceNormalization` (9, 13).
pub(super) fn mean_variance(case: &Case<'_>) -> Facts {
    axes(
        case.node.ints("axes").unwrap_or(&[0, 2, 3]),
        case.dims(0)?.len(),
    )?;
    same(case)
}
