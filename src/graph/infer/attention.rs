//! Attention and what belongs to it: operators of operator sets 23 to 28.

use super::fact::{Case, Fact, Facts, InferError, mismatch, one};
use crate::graph::{DType, Shape};

/// Sizes of a query, key or value: `[batch, heads, length, size]`, or `[batch, length, heads·size]`
/// with the number of heads as an attribute.
struct Heads {
    batch: usize,
    count: usize,
    length: usize,
    size: usize,
}

impl Heads {
    fn read(case: &Case<'_>, idx: usize, attribute: &str) -> Result<Self, InferError> {
        match *case.dims(idx)? {
            [batch, heads, length, size] => Ok(Self {
                batch,
                count: heads,
                length,
                size,
            }),
            [batch, length, width] => {
                let heads = usize::try_from(case.node.int(attribute, 0)).unwrap_or(0);
                if heads == 0 || !width.is_multiple_of(heads) {
                    return mismatch(format!(
                        "input {idx} of width {width} does not split into {heads} heads (`{attribute}`)"
                    ));
                }
                Ok(Self {
                    batch,
                    count: heads,
                    length,
                    size: width / heads,
                })
            }
            ref dims => mismatch(format!(
                "input {idx} is {dims:?}, it must have three or four dimensions"
            )),
        }
    }
}

/// `Attention` (23–25): the result, the keys and values of the next step, and scores.
pub(super) fn attention(case: &Case<'_>) -> Facts {
    let q = Heads::read(case, 0, "q_num_heads")?;
    let k = Heads::read(case, 1, "kv_num_heads")?;
    let v = Heads::read(case, 2, "kv_num_heads")?;
    if q.size != k.size || k.length != v.length || k.count != v.count {
        return mismatch(format!(
            "query {:?}, key {:?} and value {:?} do not go together",
            case.dims(0)?,
            case.dims(1)?,
            case.dims(2)?
        ));
    }
    if q.batch != k.batch || k.batch != v.batch || k.count == 0 || !q.count.is_multiple_of(k.count)
    {
        return mismatch(format!(
            "{} query heads of {} sequences share {} key heads of {}",
            q.count, q.batch, k.count, k.batch
        ));
    }
    let past = match (case.optional(4), case.optional(5)) {
        (Some(key), Some(value)) => {
            let n = key.shape.dims().get(2).copied().unwrap_or(0);
            let expected = [k.batch, k.count, n];
            let fits =
                |dims: &[usize], size| dims.len() == 4 && dims[..3] == expected && dims[3] == size;
            if !fits(key.shape.dims(), k.size) || !fits(value.shape.dims(), v.size) {
                return mismatch(format!(
                    "past key {} and value {} do not fit",
                    key.shape, value.shape
                ));
            }
            n
        }
        (None, None) => 0,
        _ => return mismatch("a past key and a past value come together"),
    };
    let total = past.saturating_add(k.length);
    let y = if case.dims(0)?.len() == 4 {
        vec![q.batch, q.count, q.length, v.size]
    } else {
        vec![q.batch, q.length, q.count.saturating_mul(v.size)]
    };
    let fact = |idx: usize, shape: Vec<usize>| {
        Ok::<_, InferError>(Fact {
            dtype: case.operand(idx)?.dtype,
            shape: Shape(shape),
        })
    };
    Ok(Some(vec![
        fact(0, y)?,
        fact(1, vec![k.batch, k.count, total, k.size])?,
        fact(2, vec![v.batch, v.count, total, v.size])?,
        fact(0, vec![q.batch, q.count, q.length, total])?,
    ]))
}

/// `LinearAttention` (27): the result `[batch, time, heads·size]` and the next state.
pub(super) fn linear_attention(case: &Case<'_>) -> Facts {
    if let Some(rank) =
        (0..3).find_map(|idx| Some(case.optional(idx)?.shape.rank()).filter(|&r| r != 3))
    {
        return mismatch(format!(
            "query, key and value have three dimensions, one has {rank}"
        ));
    }
    let q = Heads::read(case, 0, "q_num_heads")?;
    let k = Heads::read(case, 1, "kv_num_heads")?;
    let v = Heads::read(case, 2, "kv_num_heads")?;
    if q.size != k.size
        || q.batch != k.batch
        || k.batch != v.batch
        || !q.count.is_multiple_of(k.count)
    {
        return mismatch(format!(
            "query {:?}, key {:?} and value {:?} do not go together",
            case.dims(0)?,
            case.dims(1)?,
            case.dims(2)?
        ));
    }
    let state = vec![k.batch, k.count, k.size, v.size];
    case.expect(3, "the past state", &state)?;
    let dtype = case.operand(0)?.dtype;
    Ok(Some(vec![
        Fact {
            dtype,
            shape: Shape(vec![q.batch, q.length, q.count.saturating_mul(v.size)]),
        },
        Fact {
            dtype: case.optional(3).map_or(dtype, |past| past.dtype),
            shape: Shape(state),
        },
    ]))
}

/// `RotaryEmbedding` (23): keeps the shape of `[batch, heads, length, size]` or of
/// `[batch, length, heads·size]`.
pub(super) fn rotary_embedding(case: &Case<'_>) -> Facts {
    let x = Heads::read(case, 0, "num_heads")?;
    let rotated = match case.node.int("rotary_embedding_dim", 0) {
        0 => x.size,
        n => usize::try_from(n).unwrap_or(usize::MAX),
    };
    if rotated > x.size || !rotated.is_multiple_of(2) {
        return mismatch(format!("{rotated} of {} elements rotate", x.size));
    }
    let rank = if case.optional(3).is_some() { 2 } else { 3 };
    for idx in [1, 2] {
        let cache = case.dims(idx)?;
        if cache.len() != rank || cache[rank - 1] != rotated / 2 {
            return mismatch(format!(
                "input {idx} is {cache:?}, {rank} dimensions that end in {} are needed",
                rotated / 2
            ));
        }
    }
    if let Some(positions) = case.optional(3) {
        if positions.dtype != DType::I64 {
            return mismatch(format!("positions are {}", positions.dtype));
        }
        case.expect(3, "the positions", &[x.batch, x.length])?;
    }
    one(case.operand(0)?.dtype, case.dims(0)?.to_vec())
}
