//! Matrix products and recurrent cells.

use super::fact::{Case, Fact, Facts, InferError, broadcast, mismatch, one};
use crate::graph::{Attribute, DType, Shape};

/// `Gemm` (7–13).
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

/// `MatMul` (1–13), `MatMulInteger` (10): as numpy's.
pub(super) fn matmul(case: &Case<'_>) -> Facts {
    let shape = matmul_shape(case.dims(0)?, case.dims(1)?)?;
    if case.node.op == "MatMulInteger" {
        return one(DType::I32, shape);
    }
    case.expect_type(1)?;
    one(case.operand(0)?.dtype, shape)
}

/// Returns the shape of a matrix product.
pub(super) fn matmul_shape(a: &[usize], b: &[usize]) -> Result<Vec<usize>, InferError> {
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
    Ok(shape)
}

/// `Det` (11, 22): of the last two dimensions.
pub(super) fn determinant(case: &Case<'_>) -> Facts {
    let dims = case.dims(0)?;
    match dims {
        [outer @ .., n, m] if n == m => one(case.operand(0)?.dtype, outer.to_vec()),
        _ => mismatch(format!("{dims:?} has no square matrices")),
    }
}

/// `LSTM`, `GRU`, `RNN` (7, 14, 22): input `[time, batch, features]`, weights `[directions, …]`.
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
    let rows_needed = hidden.saturating_mul(gates);
    if columns != features || rows != rows_needed || r[..2] != [directions, rows_needed] {
        return mismatch(format!(
            "weights {w:?} do not fit input {x:?} and recurrence {r:?}"
        ));
    }
    if let Some(stated) = case.node.attributes.get("hidden_size")
        && *stated != Attribute::Int(hidden as i64)
    {
        return mismatch(format!(
            "`hidden_size` is not {hidden}, as the recurrence {r:?} is"
        ));
    }
    let expected = match case.node.string("direction", "forward") {
        "forward" | "reverse" => 1,
        "bidirectional" => 2,
        other => return mismatch(format!("`direction` is `{other}`")),
    };
    if directions != expected {
        return mismatch(format!(
            "weights {w:?} are for {directions} directions, not {expected}"
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
    let batch = if is_batch_first { d0 } else { d1 };
    case.expect(3, "the bias", &[directions, rows_needed.saturating_mul(2)])?;
    case.expect(4, "the list of lengths", &[batch])?;
    case.expect(5, "the initial state", &last)?;
    if gates == 4 {
        case.expect(6, "the initial cell state", &last)?;
        case.expect(7, "the peephole", &[directions, hidden.saturating_mul(3)])?;
    }
    let mut facts = vec![fact(all), fact(last.clone())];
    if gates == 4 {
        facts.push(fact(last));
    }
    Ok(Some(facts))
}
