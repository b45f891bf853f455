//! Matrix products, recurrent cells and normalisation over trailing axes.

use super::fact::{Case, Fact, Facts, axis, broadcast, mismatch, one};
use crate::graph::{DType, Shape};

/// `Gemm`.
pub(super) fn gemm(case: &Case<'_>) -> Facts {
    let (a, b) = (case.dims(0)?, case.dims(1)?);
    let (&[a0, a1], &[b0, b1]) = (a, b) else {
        return mismatch(format!("{a:?} and {b:?} are not matrices"));
    };
    let pick = |name: &str, rows, columns| {
        if case.node.int(name, 0) == 0 {
            (rows, columns)
        } else {
            (columns, rows)
        }
    };
    let (m, k) = pick("transA", a0, a1);
    let (k_rhs, n) = pick("transB", b0, b1);
    if k != k_rhs {
        return mismatch(format!("{m}×{k} and {k_rhs}×{n} do not multiply"));
    }
    if let Some(c) = case.optional(2)
        && broadcast(c.shape.dims(), &[m, n])? != [m, n]
    {
        return mismatch(format!("{} does not broadcast to [{m}, {n}]", c.shape));
    }
    one(case.operand(0)?.dtype, vec![m, n])
}

/// `MatMul`, as numpy's.
pub(super) fn matmul(case: &Case<'_>) -> Facts {
    let (a, b) = (case.dims(0)?, case.dims(1)?);
    if a.is_empty() || b.is_empty() {
        return mismatch("a scalar does not multiply".to_owned());
    }
    let lhs = if a.len() == 1 {
        vec![1, a[0]]
    } else {
        a.to_vec()
    };
    let rhs = if b.len() == 1 {
        vec![b[0], 1]
    } else {
        b.to_vec()
    };
    let (la, lb) = (lhs.len(), rhs.len());
    if lhs[la - 1] != rhs[lb - 2] {
        return mismatch(format!("{a:?} and {b:?} do not multiply"));
    }
    let mut shape = broadcast(&lhs[..la - 2], &rhs[..lb - 2])?;
    if a.len() > 1 {
        shape.push(lhs[la - 2]);
    }
    if b.len() > 1 {
        shape.push(rhs[lb - 1]);
    }
    let dtype = match case.node.op.as_str() {
        "MatMulInteger" => DType::I32,
        _ => case.operand(0)?.dtype,
    };
    one(dtype, shape)
}

/// `LSTM`, `GRU`, `RNN`: input `[time, batch, features]`, weights `[directions, …]`.
pub(super) fn recurrent(case: &Case<'_>) -> Facts {
    let (x, w, r) = (case.dims(0)?, case.dims(1)?, case.dims(2)?);
    let (&[d0, d1, features], &[directions, rows, columns], &[_, _, hidden]) = (x, w, r) else {
        return mismatch(format!(
            "{x:?}, {w:?} and {r:?} must have three dimensions each"
        ));
    };
    let gates = match case.node.op.as_str() {
        "LSTM" => 4,
        "GRU" => 3,
        _ => 1,
    };
    if columns != features || rows != gates * hidden {
        return mismatch(format!(
            "weights {w:?} do not fit input {x:?} and recurrence {r:?}"
        ));
    }
    let dtype = case.operand(0)?.dtype;
    let fact = |dims: Vec<usize>| Fact {
        dtype,
        shape: Shape(dims),
    };
    let is_batch_first = case.node.int("layout", 0) == 1;
    let (all, last) = if is_batch_first {
        (
            vec![d0, d1, directions, hidden],
            vec![d0, directions, hidden],
        )
    } else {
        (
            vec![d0, directions, d1, hidden],
            vec![directions, d1, hidden],
        )
    };
    let mut facts = vec![fact(all), fact(last.clone())];
    if gates == 4 {
        facts.push(fact(last));
    }
    Ok(Some(facts))
}

/// `LayerNormalization`: the result, then mean and inverse deviation.
pub(super) fn layer_normalization(case: &Case<'_>) -> Facts {
    let data = case.operand(0)?;
    let dims = data.shape.dims();
    let first = axis(case.node.int("axis", -1), dims.len())?;
    if let Some(scale) = case.optional(1)
        && broadcast(scale.shape.dims(), dims)? != dims
    {
        return mismatch(format!("scale {} does not fit {dims:?}", scale.shape));
    }
    let reduced = Shape(
        dims.iter()
            .enumerate()
            .map(|(i, &d)| if i < first { d } else { 1 })
            .collect(),
    );
    let fact = |shape: &Shape| Fact {
        dtype: data.dtype,
        shape: shape.clone(),
    };
    Ok(Some(vec![fact(data.shape), fact(&reduced), fact(&reduced)]))
}
