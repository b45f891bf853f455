//! Operators that only move elements: `Transpose`, `Concat`, `Split`, `Slice`, `Expand`, ….
//!
//! Each is a list of moves; a move walks an input and an output by strides of their own.

use serde_json::{Value, json};

use super::nest;
use super::node::{Known, LoopNode};
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;
use crate::graph::{DType, from_front};

/// Elements along each side of a tile: a cache line of f32.
const TILE: usize = 16;

/// A block of elements that moves.
#[derive(Debug, Clone)]
pub(super) struct Move {
    /// Index of the kernel's input.
    pub(super) input: usize,
    /// Index of the kernel's output.
    pub(super) output: usize,
    /// How many elements along each axis.
    pub(super) extents: Vec<usize>,
    /// First element of the input, and the distance along each axis; may be negative.
    pub(super) x: (usize, Vec<isize>),
    /// First element of the output, and the distance along each axis.
    pub(super) y: (usize, Vec<usize>),
}

/// What outputs hold before anything moves: output, elements, bits of the element.
#[derive(Debug, Clone)]
pub(super) struct Fill {
    pub(super) output: usize,
    pub(super) len: usize,
    /// A literal of [`storage`].
    pub(super) value: String,
}

/// Lowers an operator that moves elements; `None` if it is not one.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Result<Vec<Operation>, NotCovered>> {
    Some(match node.node.op.as_str() {
        "Transpose" => transpose(node),
        "Concat" => concat(node),
        "Split" => split(node),
        "Expand" => expand(node),
        _ => return None,
    })
}

/// Returns the type in which elements of a type are moved.
pub(super) fn storage(dtype: DType) -> &'static str {
    match dtype.bytes() {
        1 => "u8",
        2 => "u16",
        4 => "u32",
        _ => "u64",
    }
}

/// Makes the operation of moves.
pub(super) fn operation(
    node: &LoopNode<'_>,
    inputs: &[Known<'_>],
    outputs: &[Known<'_>],
    fills: &[Fill],
    moves: &[Move],
) -> Result<Vec<Operation>, NotCovered> {
    let dtype = outputs.first().map(|output| output.dtype);
    let dtype = dtype.ok_or_else(|| node.refuse("it has no output"))?;
    let stays_inside = moves.iter().all(|one| {
        let (x, y) = (inputs.get(one.input), outputs.get(one.output));
        let reach = |known: Option<&Known<'_>>, start: usize, strides: &[isize]| {
            known.is_some_and(|known| stays_inside(known.shape.len(), start, strides, &one.extents))
        };
        reach(x, one.x.0, &one.x.1) && reach(y, one.y.0, &signed(&one.y.1))
    });
    if !stays_inside {
        return Err(node.refuse("its shapes and attributes do not fit"));
    }
    let fills: Vec<Value> = fills
        .iter()
        .map(|fill| json!({ "output": fill.output, "len": fill.len, "value": fill.value }))
        .collect();
    let moves: Vec<Value> = moves.iter().map(facts).collect();
    let facts = json!({
        "units": units(&fills, &moves),
        "element": storage(dtype),
        "fills": fills,
        "moves": moves,
    });
    Ok(vec![node.operation(
        "loops/copy.rs.j2",
        facts,
        inputs,
        outputs,
        0,
    )])
}

/// Returns how many turns the outermost loop has, if there is one.
fn units(fills: &[Value], moves: &[Value]) -> Option<u64> {
    let ([], [one]) = (fills, moves) else {
        return None;
    };
    let is_tiled = one["tile"][0] == 0 || one["tile"][1] == 0;
    let per_turn = if is_tiled { TILE as u64 } else { 1 };
    let outermost = one["extents"][0].as_u64()?;
    Some(outermost.div_ceil(per_turn))
}

/// Returns whether a walk touches only elements of a value of `len` elements.
fn stays_inside(len: usize, start: usize, strides: &[isize], extents: &[usize]) -> bool {
    if strides.len() != extents.len() {
        return false;
    }
    if extents.contains(&0) {
        return true;
    }
    let (mut low, mut high) = (start as i128, start as i128);
    for (&stride, &extent) in strides.iter().zip(extents) {
        let far = stride as i128 * (extent as i128 - 1);
        low += far.min(0);
        high += far.max(0);
    }
    low >= 0 && high < len as i128
}

fn facts(one: &Move) -> Value {
    let strides: Vec<Vec<usize>> = vec![
        // Distances wrap, so that negative ones merge as positive ones do.
        one.x.1.iter().map(|&stride| stride as usize).collect(),
        one.y.1.clone(),
    ];
    let (mut extents, mut strides) = nest::merge(&one.extents, &strides);
    let last = extents.len() - 1;
    let is_run = strides.iter().all(|strides| strides[last] == 1) && extents[last] > 1;
    let run = if is_run { extents[last] } else { 1 };
    if is_run {
        extents.pop();
        for strides in &mut strides {
            strides.pop();
        }
    }
    let tile = tile(&extents, &strides, run);
    let signed: Vec<String> = strides[0]
        .iter()
        .enumerate()
        .filter(|(_, stride)| **stride != 0)
        .map(|(axis, &stride)| format!("i{axis} as isize * {}", stride as isize))
        .collect();
    let x_at = if signed.is_empty() {
        "0isize".to_owned()
    } else {
        signed.join(" + ")
    };
    json!({
        "input": one.input, "output": one.output,
        "extents": extents, "run": run, "tile": tile, "side": TILE,
        "x": one.x.0, "y": one.y.0,
        "x_at": x_at,
        "y_at": nest::place(&strides[1]),
    })
}

/// Returns the two axes along which the input and the output are in one piece, if these differ:
/// they are walked in tiles, so that of each cache line all elements are used.
fn tile(extents: &[usize], strides: &[Vec<usize>], run: usize) -> Option<[usize; 2]> {
    let last = extents.len().checked_sub(1)?;
    let read = strides[0].iter().position(|&stride| stride == 1)?;
    let is_worth = run == 1
        && read != last
        && strides[1][last] == 1
        && extents[read] >= TILE
        && extents[last] >= TILE;
    is_worth.then_some([read, last])
}

pub(super) fn signed(strides: &[usize]) -> Vec<isize> {
    strides.iter().map(|&stride| stride as isize).collect()
}

/// `Transpose`: `perm` says which axis of the input each axis of the output is.
fn transpose(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = (node.required(0)?, node.main_output()?);
    let rank = x.dims().len();
    let perm: Vec<usize> = match node.node.ints("perm") {
        Some(perm) => perm
            .iter()
            .filter_map(|&axis| from_front(axis, rank))
            .collect(),
        None => (0..rank).rev().collect(),
    };
    if perm.len() != rank {
        return Err(node.refuse("`perm` does not name every axis"));
    }
    let own = nest::dense(x.dims());
    let one = Move {
        input: 0,
        output: 0,
        extents: y.dims().to_vec(),
        x: (0, perm.iter().map(|&axis| own[axis] as isize).collect()),
        y: (0, nest::dense(y.dims())),
    };
    operation(node, &[x], &[y], &[], &[one])
}

/// `Concat` along `axis`.
fn concat(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let y = node.main_output()?;
    let axis = from_front(node.node.int("axis", 1), y.dims().len())
        .ok_or_else(|| node.refuse("`axis` is out of range"))?;
    let strides = nest::dense(y.dims());
    let mut inputs = Vec::new();
    let mut moves = Vec::new();
    let mut start = 0;
    for idx in 0..node.node.inputs.len() {
        let x = node.required(idx)?;
        moves.push(Move {
            input: inputs.len(),
            output: 0,
            extents: x.dims().to_vec(),
            x: (0, signed(&nest::dense(x.dims()))),
            y: (start * strides[axis], strides.clone()),
        });
        start += x.dims()[axis];
        inputs.push(x);
    }
    operation(node, &inputs, &[y], &[], &moves)
}

/// `Split` along `axis`; outputs that nobody wants are left out.
fn split(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let x = node.required(0)?;
    let axis = node.axis(0, x.dims().len())?;
    let size = x.dims()[axis];
    let n_outputs = node.node.outputs.len();
    let sizes: Vec<usize> = match node.ints("split", 1)? {
        Some(sizes) => sizes.into_iter().map(|size| size.max(0) as usize).collect(),
        // The last may be smaller.
        None => vec![size.div_ceil(n_outputs.max(1)); n_outputs],
    };
    let strides = nest::dense(x.dims());
    let mut outputs = Vec::new();
    let mut moves = Vec::new();
    let mut start: usize = 0;
    for (idx, part) in sizes.into_iter().enumerate() {
        if let Some(y) = node.output(idx) {
            moves.push(Move {
                input: 0,
                output: outputs.len(),
                extents: y.dims().to_vec(),
                x: (start * strides[axis], signed(&strides)),
                y: (0, nest::dense(y.dims())),
            });
            outputs.push(y);
        }
        start = start.saturating_add(part).min(size);
    }
    operation(node, &[x], &outputs, &[], &moves)
}

/// `Expand`: broadcasting made real.
fn expand(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = (node.required(0)?, node.main_output()?);
    let one = Move {
        input: 0,
        output: 0,
        extents: y.dims().to_vec(),
        x: (0, signed(&nest::broadcast(x.dims(), y.dims()))),
        y: (0, nest::dense(y.dims())),
    };
    operation(node, &[x], &[y], &[], &[one])
}
