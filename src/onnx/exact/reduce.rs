//! Reductions, cumulative sums, and what looks for the largest.

use std::cmp::Ordering;

use super::evaluate::Case;
use super::number::Numbers;
use super::pick::{each_index, strides};
use crate::graph::{DType, Shape, Tensor, TensorData, from_front};

/// Evaluates an operator that looks at many elements at once.
pub(super) fn evaluate(case: &Case<'_>) -> Option<Vec<Tensor>> {
    match case.node.op.as_str() {
        "ArgMax" | "ArgMin" => arg(case),
        "CumSum" | "CumProd" => cumulative(case),
        "TopK" => top_k(case),
        op if op.starts_with("Reduce") => reduce(case),
        _ => None,
    }
}

fn reduce(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let dims = case.dims(0)?;
    let mut axes = case.ints_of("axes", 1).unwrap_or_default();
    if axes.is_empty() && case.node.int("noop_with_empty_axes", 0) == 0 {
        axes = (0..dims.len() as i64).collect();
    }
    let axes = axes
        .into_iter()
        .map(|axis| from_front(axis, dims.len()))
        .collect::<Option<Vec<_>>>()?;
    // Which group each element belongs to: its position with the reduced axes at zero.
    let kept: Vec<usize> = (0..dims.len())
        .map(|i| if axes.contains(&i) { 1 } else { dims[i] })
        .collect();
    let steps = strides(&kept);
    let mut groups = vec![Vec::new(); kept.iter().product()];
    let mut position = 0;
    each_index(dims, |index| {
        let own = index.iter().zip(&steps).enumerate();
        let group: usize = own
            .map(|(i, (v, s))| if axes.contains(&i) { 0 } else { v * s })
            .sum();
        groups[group].push(position);
        position += 1;
    });
    let op = case.node.op.as_str();
    let result = match Numbers::read(case.input(0)?) {
        Numbers::Int(data) => {
            let of = |group: &Vec<usize>| int(op, case.dtype(), group.iter().map(|&i| data[i]));
            Numbers::Int(groups.iter().map(of).collect::<Option<_>>()?)
        }
        Numbers::Float(data) => {
            let of = |group: &Vec<usize>| {
                let values: Vec<f64> = group.iter().map(|&i| data[i]).collect();
                float(op, &values)
            };
            Numbers::Float(groups.iter().map(of).collect::<Option<_>>()?)
        }
    };
    Some(vec![result.write(case.dtype(), case.shape()?)?])
}

fn int(op: &str, dtype: DType, values: impl ExactSizeIterator<Item = i128>) -> Option<i128> {
    let n = values.len() as i128;
    Some(match op {
        "ReduceSum" => values.sum(),
        "ReduceMean" => values.sum::<i128>().checked_div(n)?,
        "ReduceProd" => values.fold(1, i128::wrapping_mul),
        "ReduceMax" => values.max().unwrap_or(range(dtype)?.0),
        "ReduceMin" => values.min().unwrap_or(range(dtype)?.1),
        "ReduceL1" => values.map(i128::abs).sum(),
        "ReduceL2" => squares(values).checked_isqrt()?,
        "ReduceSumSquare" => squares(values),
        "ReduceLogSum" => (values.sum::<i128>() as f64).ln() as i128,
        "ReduceLogSumExp" => values.map(|v| (v as f64).exp()).sum::<f64>().ln() as i128,
        _ => return None,
    })
}

fn squares(values: impl Iterator<Item = i128>) -> i128 {
    values.fold(0, |n, v| n.wrapping_add(v.wrapping_mul(v)))
}

/// Returns the smallest and largest value of an integer type.
pub(super) fn range(dtype: DType) -> Option<(i128, i128)> {
    let bits = dtype.bytes() as u32 * 8;
    Some(match dtype {
        DType::Bool => (0, 1),
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        }
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => (0, (1 << bits) - 1),
        DType::F16 | DType::F32 | DType::F64 => return None,
    })
}

fn float(op: &str, values: &[f64]) -> Option<f64> {
    let all = || values.iter().copied();
    let is_nan = all().any(f64::is_nan);
    Some(match op {
        "ReduceSum" => all().sum(),
        "ReduceMean" => all().sum::<f64>() / values.len() as f64,
        "ReduceProd" => all().product(),
        "ReduceMax" | "ReduceMin" if is_nan => f64::NAN,
        "ReduceMax" => all().fold(f64::NEG_INFINITY, f64::max),
        "ReduceMin" => all().fold(f64::INFINITY, f64::min),
        "ReduceL1" => all().map(f64::abs).sum(),
        "ReduceL2" => all().map(|v| v * v).sum::<f64>().sqrt(),
        "ReduceSumSquare" => all().map(|v| v * v).sum(),
        "ReduceLogSum" => all().sum::<f64>().ln(),
        "ReduceLogSumExp" => {
            let largest = all().fold(f64::NEG_INFINITY, f64::max);
            if largest.is_finite() {
                largest + all().map(|v| (v - largest).exp()).sum::<f64>().ln()
            } else {
                largest
            }
        }
        _ => return None,
    })
}

/// The elements along one axis, of which there are many: lines of positions.
fn lines(dims: &[usize], axis: usize) -> Vec<Vec<usize>> {
    let inner: usize = dims[axis + 1..].iter().product();
    let outer: usize = dims[..axis].iter().product();
    let size = dims[axis];
    let line = |block, offset| {
        (0..size)
            .map(|i| (block * size + i) * inner + offset)
            .collect()
    };
    (0..outer)
        .flat_map(|block| (0..inner).map(move |offset| (block, offset)))
        .map(|(block, offset)| line(block, offset))
        .collect()
}

/// Orders numbers, NaN as the largest.
fn order(numbers: &Numbers, lhs: usize, rhs: usize) -> Ordering {
    match numbers {
        Numbers::Int(data) => data[lhs].cmp(&data[rhs]),
        Numbers::Float(data) => data[lhs]
            .partial_cmp(&data[rhs])
            .unwrap_or_else(|| data[lhs].is_nan().cmp(&data[rhs].is_nan())),
    }
}

fn arg(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let dims = case.dims(0)?;
    let axis = case.axis(0, dims.len())?;
    let numbers = Numbers::read(case.input(0)?);
    let wanted = if case.node.op == "ArgMax" {
        Ordering::Greater
    } else {
        Ordering::Less
    };
    let takes_last = case.node.int("select_last_index", 0) != 0;
    let best = |line: Vec<usize>| {
        let mut best = 0;
        for i in 1..line.len() {
            let found = order(&numbers, line[i], line[best]);
            if found == wanted || (takes_last && found == Ordering::Equal) {
                best = i;
            }
        }
        best as i64
    };
    case.only(TensorData::I64(
        lines(dims, axis).into_iter().map(best).collect(),
    ))
}

fn cumulative(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let dims = case.dims(0)?;
    let axis = from_front(*case.ints(1)?.first()?, dims.len())?;
    let is_exclusive = case.node.int("exclusive", 0) != 0;
    let is_reversed = case.node.int("reverse", 0) != 0;
    let is_sum = case.node.op == "CumSum";
    macro_rules! run {
        ($data:expr, $zero:expr, $one:expr, $multiply:expr) => {{
            let mut result = $data.clone();
            for mut line in lines(dims, axis) {
                if is_reversed {
                    line.reverse();
                }
                let mut total = if is_sum { $zero } else { $one };
                for position in line {
                    let before = total;
                    total = if is_sum {
                        total + $data[position]
                    } else {
                        $multiply(total, $data[position])
                    };
                    result[position] = if is_exclusive { before } else { total };
                }
            }
            result
        }};
    }
    let result = match Numbers::read(case.input(0)?) {
        Numbers::Int(data) => Numbers::Int(run!(data, 0, 1, i128::wrapping_mul)),
        Numbers::Float(data) => Numbers::Float(run!(data, 0.0, 1.0, |a: f64, b: f64| a * b)),
    };
    Some(vec![result.write(case.dtype(), case.shape()?)?])
}

fn top_k(case: &Case<'_>) -> Option<Vec<Tensor>> {
    let data = case.input(0)?;
    let dims = data.shape().dims();
    let axis = case.axis(-1, dims.len())?;
    let k = *case.shape()?.dims().get(axis)?;
    let numbers = Numbers::read(data);
    let is_largest = case.node.int("largest", 1) != 0;
    let inner: usize = dims[axis + 1..].iter().product();
    let mut indices = vec![0; case.shape()?.len()];
    let mut sources = vec![0; indices.len()];
    for (idx, line) in lines(dims, axis).into_iter().enumerate() {
        let mut ranked: Vec<usize> = (0..line.len()).collect();
        // Stable, so that of equal elements the first one wins.
        ranked.sort_by(|&a, &b| {
            let found = order(&numbers, line[a], line[b]);
            if is_largest { found.reverse() } else { found }
        });
        let (block, offset) = (idx / inner, idx % inner);
        for (i, &rank) in ranked.iter().take(k).enumerate() {
            let at = (block * k + i) * inner + offset;
            indices[at] = rank as i64;
            sources[at] = line[rank];
        }
    }
    let shape: &Shape = case.shape()?;
    let values = super::pick::take(data.data(), &sources)?;
    Some(vec![
        Tensor::new(shape.clone(), values).ok()?,
        Tensor::new(shape.clone(), TensorData::I64(indices)).ok()?,
    ])
}
