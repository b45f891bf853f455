//! Reductions along axes.

use super::fact::{Case, Facts, axes, axis, mismatch, one};
use crate::graph::{DType, Tensor};

/// `ArgMax`, `ArgMin` (1–13).
pub(super) fn arg_reduce(case: &Case<'_>) -> Facts {
    let dims = case.dims(0)?;
    let along = case.axis(0, dims.len())?;
    if dims[along] == 0 {
        return mismatch(format!("axis {along} of {dims:?} is empty"));
    }
    one(
        DType::I64,
        reduced(dims, &[along], case.node.int("keepdims", 1) != 0),
    )
}

/// `CumSum` (11, 14), `CumProd` (26).
pub(super) fn cumulative(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    // The axis does not change the shape, so that it need not be known.
    if let Some(named) = case.operand(1)?.data.and_then(Tensor::to_i64) {
        match named.as_slice() {
            &[named] => axis(named, data.shape.rank())?,
            list => return mismatch(format!("the axis is {list:?}")),
        };
    }
    one(data.dtype, data.shape.dims().to_vec())
}

/// `ReduceMean` and its relatives: axes as an attribute or, later (13 or 18), an input.
pub(super) fn reduce(case: &Case<'_>) -> Facts {
    let is_known = matches!(
        case.node.op.as_str(),
        "ReduceMean"
            | "ReduceSum"
            | "ReduceMax"
            | "ReduceMin"
            | "ReduceProd"
            | "ReduceL1"
            | "ReduceL2"
            | "ReduceLogSum"
            | "ReduceLogSumExp"
            | "ReduceSumSquare"
    );
    if !is_known {
        return Ok(None);
    }
    let data = case.operand(0)?;
    let dims = data.shape.dims();
    let list = case.ints("axes", 1)?.unwrap_or_default();
    let over = if !list.is_empty() {
        axes(&list, dims.len())?
    } else if case.node.int("noop_with_empty_axes", 0) != 0 {
        Vec::new()
    } else {
        (0..dims.len()).collect()
    };
    one(
        data.dtype,
        reduced(dims, &over, case.node.int("keepdims", 1) != 0),
    )
}

fn reduced(dims: &[usize], over: &[usize], keep: bool) -> Vec<usize> {
    let sizes = dims.iter().enumerate().filter_map(|(i, &size)| {
        if !over.contains(&i) {
            Some(size)
        } else if keep {
            Some(1)
        } else {
            None
        }
    });
    sizes.collect()
}
