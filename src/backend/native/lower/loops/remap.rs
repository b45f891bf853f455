//! Outputs whose element at a place is the input's at another place, each axis on its own: borders
//! that repeat the input, nearest neighbours, chosen rows.

use serde_json::{Value, json};

use super::copy::{self, Move};
use super::nest;
use super::node::{Known, LoopNode};
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;
use crate::graph::{Shape, Tensor, TensorData};

/// Where the elements along one axis of the output come from.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    /// First index of the output; those before and after the map are filled.
    pub(super) start: usize,
    /// Index of the input for each index of the output from there.
    pub(super) map: Vec<usize>,
}

/// Returns axes whose maps cover the whole output.
pub(super) fn boxed(maps: Vec<Vec<usize>>) -> Vec<Axis> {
    maps.into_iter().map(|map| Axis { start: 0, map }).collect()
}

/// Makes the operation; `fill` is the expression of what lies outside of the maps.
pub(super) fn operation(
    node: &LoopNode<'_>,
    x: Known<'_>,
    y: Known<'_>,
    fill: Option<String>,
    axes: &[Axis],
) -> Result<Vec<Operation>, NotCovered> {
    let (own, out) = (nest::dense(x.dims()), nest::dense(y.dims()));
    let fits = own.len() == axes.len()
        && out.len() == axes.len()
        && axes.iter().enumerate().all(|(idx, axis)| {
            axis.start + axis.map.len() <= y.dims()[idx]
                && axis.map.iter().all(|&at| at < x.dims()[idx])
        })
        && u32::try_from(x.shape.len()).is_ok();
    if !fits {
        return Err(node.refuse("its shapes and attributes do not fit"));
    }
    let fills: Vec<copy::Fill> = fill
        .into_iter()
        .map(|value| copy::Fill {
            output: 0,
            len: y.shape.len(),
            value,
        })
        .collect();
    if axes.iter().any(|axis| axis.map.is_empty()) {
        return copy::operation(node, &[x], &[y], &fills, &[]);
    }
    if let Some(one) = strided(axes, &own, &out) {
        return copy::operation(node, &[x], &[y], &fills, &[one]);
    }
    // Whole axes at the end that stay as they are move in one piece.
    let is_kept = |idx: usize| {
        axes[idx].map.len() == x.dims()[idx]
            && y.dims()[idx] == x.dims()[idx]
            && axes[idx]
                .map
                .iter()
                .enumerate()
                .all(|(at, &from)| at == from)
    };
    let n_walked = (0..axes.len())
        .rev()
        .find(|&idx| !is_kept(idx))
        .map_or(1, |idx| idx + 1);
    let run: usize = x.dims()[n_walked..].iter().product();
    let mut tables = Vec::new();
    let mut facts: Vec<Value> = Vec::new();
    for idx in 0..n_walked {
        let axis = &axes[idx];
        let offsets = axis.map.iter().map(|&at| (at * own[idx]) as u32).collect();
        tables.push(table(offsets));
        facts.push(json!({
            "extent": axis.map.len(), "start": axis.start, "block": out[idx],
            "repeats": axis.map.windows(2).any(|pair| pair[0] == pair[1]),
        }));
    }
    let last = &axes[n_walked - 1].map;
    let facts = json!({
        "element": copy::storage(y.dtype),
        "fills": fills.iter().map(|fill| json!({ "len": fill.len, "value": fill.value })).collect::<Vec<_>>(),
        "axes": facts,
        "run": run,
        "repeat": repeat(last),
        "inputs": if last.len() > 1 { last[last.len() - 1] + 1 } else { 1 },
    });
    Ok(vec![node.operation_with(
        "loops/remap.rs.j2",
        facts,
        &[x],
        tables,
        &[y],
        0,
    )])
}

/// Returns a table that kernels read as `*const u32`.
pub(super) fn table(values: Vec<u32>) -> Tensor {
    let shape = Shape(vec![values.len()]);
    Tensor::new(shape, TensorData::U32(values)).expect("one dimension of its length")
}

/// Returns how often each input is repeated along an axis, from the first on; 0 if it is not so.
fn repeat(map: &[usize]) -> usize {
    let n = map.iter().take_while(|&&at| at == map[0]).count();
    let is_even = map.len().is_multiple_of(n) && map.iter().enumerate().all(|(o, &i)| i == o / n);
    // Beyond a few, the loop over a table does as well.
    if is_even && (2..=8).contains(&n) {
        n
    } else {
        0
    }
}

/// Returns the move that does it where every axis is walked at one distance.
fn strided(axes: &[Axis], own: &[usize], out: &[usize]) -> Option<Move> {
    let mut one = Move {
        input: 0,
        output: 0,
        extents: Vec::new(),
        x: (0, Vec::new()),
        y: (0, out.to_vec()),
    };
    for (idx, axis) in axes.iter().enumerate() {
        let step = match axis.map.as_slice() {
            [first, second, ..] => *second as isize - *first as isize,
            _ => 0,
        };
        let first = *axis.map.first()?;
        let is_even =
            |(at, &from): (usize, &usize)| from as isize == first as isize + at as isize * step;
        if !axis.map.iter().enumerate().all(is_even) {
            return None;
        }
        one.extents.push(axis.map.len());
        one.x.0 += first * own[idx];
        one.x.1.push(step * own[idx] as isize);
        one.y.0 += axis.start * out[idx];
    }
    Some(one)
}
