//! Operators that move elements without changing them.

use super::fact::{Case, Fact, Facts, InferError, axes, axis, dim, mismatch, one};
use crate::graph::{DType, Shape};

/// `Reshape`: `0` copies a dimension unless `allowzero`, one `-1` takes the rest.
pub(super) fn reshape(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let dims = data.shape.dims();
    let target = case.ints("shape", 1)?.ok_or(InferError::MissingInput(1))?;
    let allow_zero = case.node.int("allowzero", 0) != 0;
    let mut shape = Vec::new();
    let mut open = None;
    for (idx, &size) in target.iter().enumerate() {
        shape.push(match size {
            0 if !allow_zero => match dims.get(idx) {
                Some(&copied) => copied,
                None => return mismatch(format!("{target:?} copies from beyond {dims:?}")),
            },
            -1 if open.is_none() => {
                open = Some(idx);
                1
            }
            size => dim(size)?,
        });
    }
    let total = data.shape.len();
    if allow_zero && open.is_some() && target.contains(&0) {
        return mismatch(format!("{target:?} has both 0 and -1, and `allowzero`"));
    }
    let known = shape.iter().fold(1usize, |n, &d| n.saturating_mul(d));
    if let Some(idx) = open {
        if known == 0 || !total.is_multiple_of(known) {
            return mismatch(format!("{dims:?} does not reshape to {target:?}"));
        }
        shape[idx] = total / known;
    } else if known != total {
        return mismatch(format!("{dims:?} does not reshape to {target:?}"));
    }
    one(data.dtype, shape)
}

/// `Flatten`.
pub(super) fn flatten(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let dims = data.shape.dims();
    // Unlike elsewhere, `axis` may be the rank itself, and counts back from the rank.
    let stated = case.node.int("axis", 1);
    let rank = dims.len() as i64;
    let axis = if stated < 0 { stated + rank } else { stated };
    let Some(axis) = usize::try_from(axis).ok().filter(|&a| a <= dims.len()) else {
        return mismatch(format!("axis {stated} is out of range for {dims:?}"));
    };
    let product = |dims: &[usize]| dims.iter().fold(1usize, |n, &d| n.saturating_mul(d));
    one(
        data.dtype,
        vec![product(&dims[..axis]), product(&dims[axis..])],
    )
}

/// `Transpose`.
pub(super) fn transpose(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let dims = data.shape.dims();
    let Some(permutation) = case.node.ints("perm") else {
        return one(data.dtype, dims.iter().rev().copied().collect());
    };
    if axes(permutation, dims.len())?.len() != dims.len() {
        return mismatch(format!("`perm` {permutation:?} does not fit {dims:?}"));
    }
    let mut shape = Vec::new();
    for &source in permutation {
        shape.push(dims[axis(source, dims.len())?]);
    }
    one(data.dtype, shape)
}

/// `Squeeze`.
pub(super) fn squeeze(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let dims = data.shape.dims();
    let dropped = match case.ints("axes", 1)? {
        Some(list) => axes(&list, dims.len())?,
        None => (0..dims.len()).filter(|&i| dims[i] == 1).collect(),
    };
    if let Some(&wide) = dropped.iter().find(|&&i| dims[i] != 1) {
        return mismatch(format!("axis {wide} of {dims:?} is not 1"));
    }
    let kept = (0..dims.len()).filter(|i| !dropped.contains(i));
    one(data.dtype, kept.map(|i| dims[i]).collect())
}

/// `Unsqueeze`.
pub(super) fn unsqueeze(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let list = case.ints("axes", 1)?.ok_or(InferError::MissingInput(1))?;
    let rank = data.shape.rank() + list.len();
    let inserted = axes(&list, rank)?;
    let mut rest = data.shape.dims().iter().copied();
    let shape = (0..rank).map(|i| {
        if inserted.contains(&i) {
            1
        } else {
            rest.next().unwrap_or(1)
        }
    });
    one(data.dtype, shape.collect())
}

/// `Concat`.
pub(super) fn concat(case: &Case<'_>) -> Facts {
    let first = case.operand(0)?;
    let mut shape = first.shape.dims().to_vec();
    let axis = case.axis(0, shape.len())?;
    for idx in 1..case.operands.len() {
        let next = case.operand(idx)?;
        let dims = next.shape.dims();
        let fits =
            dims.len() == shape.len() && (0..shape.len()).all(|i| i == axis || dims[i] == shape[i]);
        if !fits || next.dtype != first.dtype {
            return mismatch(format!(
                "{} {shape:?} and {} {dims:?} do not concatenate along axis {axis}",
                first.dtype, next.dtype
            ));
        }
        shape[axis] = shape[axis].saturating_add(dims[axis]);
    }
    one(first.dtype, shape)
}

/// `Split`: into stated sizes, or into equal parts of which the last may be smaller.
pub(super) fn split(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let dims = data.shape.dims();
    let axis = case.axis(0, dims.len())?;
    let size = dims[axis];
    let sizes = if let Some(stated) = case.ints("split", 1)? {
        stated
            .iter()
            .map(|&v| dim(v))
            .collect::<Result<Vec<_>, _>>()?
    } else {
        let n_outputs = case.node.outputs.len().max(1);
        let parts = dim(case.node.int("num_outputs", n_outputs as i64))?;
        if parts != n_outputs || (case.opset < 18 && !size.is_multiple_of(parts)) {
            return mismatch(format!(
                "axis {axis} of {dims:?} does not split into {parts} parts for {n_outputs} outputs"
            ));
        }
        let part = size.div_ceil(parts);
        (0..parts)
            .map(|i| part.min(size.saturating_sub(part.saturating_mul(i))))
            .collect()
    };
    if sizes.iter().fold(0usize, |n, &v| n.saturating_add(v)) != size {
        return mismatch(format!(
            "axis {axis} of {dims:?} does not split into {sizes:?}"
        ));
    }
    if sizes.len() < case.node.outputs.len() {
        return mismatch(format!(
            "{} sizes for {} outputs",
            sizes.len(),
            case.node.outputs.len()
        ));
    }
    let facts = sizes.into_iter().map(|part| {
        let mut dims = dims.to_vec();
        dims[axis] = part;
        Fact {
            dtype: data.dtype,
            shape: Shape(dims),
        }
    });
    Ok(Some(facts.collect()))
}

/// `DepthToSpace`.
pub(super) fn depth_to_space(case: &Case<'_>) -> Facts {
    let (dims, block) = blocks(case)?;
    if !dims[1].is_multiple_of(block * block) {
        return mismatch(format!(
            "{dims:?} does not unfold into {block}×{block} blocks"
        ));
    }
    let (h, w) = (dims[2].saturating_mul(block), dims[3].saturating_mul(block));
    one(
        case.operand(0)?.dtype,
        vec![dims[0], dims[1] / (block * block), h, w],
    )
}

/// `SpaceToDepth`.
pub(super) fn space_to_depth(case: &Case<'_>) -> Facts {
    let (dims, block) = blocks(case)?;
    if !dims[2].is_multiple_of(block) || !dims[3].is_multiple_of(block) {
        return mismatch(format!(
            "{dims:?} does not fold into {block}×{block} blocks"
        ));
    }
    let channels = dims[1].saturating_mul(block * block);
    one(
        case.operand(0)?.dtype,
        vec![dims[0], channels, dims[2] / block, dims[3] / block],
    )
}

fn blocks<'a>(case: &Case<'a>) -> Result<(&'a [usize], usize), InferError> {
    let dims = case.dims(0)?;
    let block = case.node.int("blocksize", 0);
    if dims.len() != 4 || !(1..=1 << 16).contains(&block) {
        return mismatch(format!("input {dims:?} with blocks of {block}"));
    }
    Ok((dims, block as usize))
}

/// `ReverseSequence` (10): over `[time, batch, …]` or, by its axes, the other way round.
pub(super) fn reverse_sequence(case: &Case<'_>) -> Facts {
    let (dims, node) = (case.dims(0)?, case.node);
    if dims.len() < 2 {
        return mismatch(format!("{dims:?} has no sequences"));
    }
    let (batch, time) = (node.int("batch_axis", 1), node.int("time_axis", 0));
    if !matches!((batch, time), (0, 1) | (1, 0)) {
        return mismatch(format!("`batch_axis` is {batch}, `time_axis` is {time}"));
    }
    case.operand(1)?;
    case.expect(1, "the list of lengths", &[dims[batch as usize]])?;
    one(case.operand(0)?.dtype, dims.to_vec())
}

/// `Shape`, of a slice of the dimensions if `start` or `end` say so.
pub(super) fn shape(case: &Case<'_>) -> Facts {
    let rank = case.operand(0)?.shape.rank() as i64;
    let bound = |value: i64| (if value < 0 { value + rank } else { value }).clamp(0, rank);
    let start = bound(case.node.int("start", 0));
    let end = bound(case.node.int("end", rank));
    one(DType::I64, vec![dim((end - start).max(0))?])
}

/// `Size`.
pub(super) fn size(case: &Case<'_>) -> Facts {
    case.operand(0)?;
    one(DType::I64, Vec::new())
}
