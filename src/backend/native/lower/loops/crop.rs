//! Operators that cut a value or put a border around it: `Slice`, `Pad`, `CenterCropPad`.

use super::copy::{self, Fill, Move};
use super::element;
use super::nest;
use super::node::{Known, LoopNode};
use super::remap;
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;
use crate::graph::{Attribute, DType, from_front};

/// Lowers an operator that crops or pads; `None` if it is not one.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Result<Vec<Operation>, NotCovered>> {
    Some(match node.node.op.as_str() {
        "Slice" => slice(node),
        "Pad" => pad(node),
        "CenterCropPad" => center_crop_pad(node),
        _ => return None,
    })
}

/// `Slice`: bounds as attributes (operator sets before 10) or constant inputs.
fn slice(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = (node.required(0)?, node.main_output()?);
    let rank = x.dims().len();
    let starts = node.ints("starts", 1)?.unwrap_or_default();
    let axes = node.ints("axes", 3)?;
    let axes = axes.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = node.constant_ints(4)?;
    let steps = steps.unwrap_or_else(|| vec![1; starts.len()]);
    let own = nest::dense(x.dims());
    let mut walked = copy::signed(&own);
    let mut first = 0;
    for ((&start, &axis), &step) in starts.iter().zip(&axes).zip(&steps) {
        let axis =
            from_front(axis, rank).ok_or_else(|| node.refuse("`axes` names no axis of it"))?;
        let size = x.dims()[axis] as i64;
        let start = if start < 0 {
            start.saturating_add(size)
        } else {
            start
        };
        let last = if step > 0 { size } else { size - 1 };
        first += start.min(last).max(0) as usize * own[axis];
        // A single element is not walked from, however far the step.
        walked[axis] = match y.dims().get(axis) {
            Some(1) => 0,
            _ => (step as isize).wrapping_mul(own[axis] as isize),
        };
    }
    let one = Move {
        input: 0,
        output: 0,
        extents: y.dims().to_vec(),
        x: (first, walked),
        y: (0, nest::dense(y.dims())),
    };
    copy::operation(node, &[x], &[y], &[], &[one])
}

/// `Pad`: negative amounts cut, before anything is added.
fn pad(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = (node.required(0)?, node.main_output()?);
    let rank = x.dims().len();
    let pads = node.ints("pads", 1)?;
    let pads = pads.ok_or_else(|| node.refuse("`pads` is missing"))?;
    let axes = node.constant_ints(3)?;
    let axes = axes.unwrap_or_else(|| (0..rank as i64).collect());
    if pads.len() != 2 * axes.len() || y.dims().len() != rank {
        return Err(node.refuse("`pads` does not fit its axes"));
    }
    let mut sides = vec![[0, 0]; rank];
    for (idx, &axis) in axes.iter().enumerate() {
        let axis =
            from_front(axis, rank).ok_or_else(|| node.refuse("`axes` names no axis of it"))?;
        sides[axis] = [pads[idx], pads[axes.len() + idx]];
    }
    let mode = node.node.string("mode", "constant");
    if mode == "constant" {
        let begins: Vec<i64> = sides.iter().map(|side| -side[0]).collect();
        let (value, inputs) = border(node, x, y.dtype)?;
        return place(node, &inputs, y, &begins, value);
    }
    let mut maps = Vec::new();
    for (axis, [before, after]) in sides.into_iter().enumerate() {
        let size = x.dims()[axis] as i64;
        let cut = (-before).max(0);
        let kept = size - cut - (-after).max(0);
        if kept <= 0 {
            return Err(node.refuse("nothing is left to be repeated"));
        }
        let from = |at: i64| {
            Some(match mode {
                "edge" => at.clamp(0, kept - 1),
                "wrap" => at.rem_euclid(kept),
                "reflect" if kept == 1 => 0,
                "reflect" => {
                    let period = 2 * (kept - 1);
                    let at = at.rem_euclid(period);
                    at.min(period - at)
                }
                _ => return None,
            })
        };
        let map: Option<Vec<usize>> = (0..y.dims()[axis] as i64)
            .map(|at| Some((from(at - before.max(0))? + cut) as usize))
            .collect();
        maps.push(map.ok_or_else(|| node.refuse(format!("its mode is `{mode}`")))?);
    }
    remap::operation(node, x, y, None, &remap::boxed(maps))
}

/// Returns what a border is made of, and the inputs of the kernel.
fn border<'a>(
    node: &LoopNode<'a>,
    x: Known<'a>,
    dtype: DType,
) -> Result<(String, Vec<Known<'a>>), NotCovered> {
    if let Some(value) = node.input(2) {
        if value.shape.len() != 1 {
            return Err(node.refuse("its border is not a single number"));
        }
        let storage = copy::storage(dtype);
        return Ok((format!("*(x1 as *const {storage})"), vec![x, value]));
    }
    let value = match node.node.attributes.get("value") {
        Some(Attribute::Float(value)) if dtype.is_float() => bits(f64::from(*value), dtype),
        _ => "0".to_owned(),
    };
    Ok((value, vec![x]))
}

/// Returns the expression of the bits of a floating-point number.
pub(super) fn bits(value: f64, dtype: DType) -> String {
    let literal = element::float(value, dtype);
    match dtype {
        DType::F16 => format!("to_f16({literal})"),
        _ => format!("{literal}.to_bits()"),
    }
}

/// `CenterCropPad`: each axis cut or padded by zeros on both sides; the odd one is at the end.
fn center_crop_pad(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = (node.required(0)?, node.main_output()?);
    let begins: Vec<i64> = x
        .dims()
        .iter()
        .zip(y.dims())
        .map(|(&old, &new)| {
            if new <= old {
                ((old - new) / 2) as i64
            } else {
                -(((new - old) / 2) as i64)
            }
        })
        .collect();
    place(node, &[x], y, &begins, "0".to_owned())
}

/// Makes the operation of an output whose element `o` is input `o + begins`, or `value` where there
/// is none.
fn place(
    node: &LoopNode<'_>,
    inputs: &[Known<'_>],
    y: Known<'_>,
    begins: &[i64],
    value: String,
) -> Result<Vec<Operation>, NotCovered> {
    let x = inputs[0];
    let (own, out) = (nest::dense(x.dims()), nest::dense(y.dims()));
    if own.len() != out.len() {
        return Err(node.refuse("its input and output differ in rank"));
    }
    let mut one = Move {
        input: 0,
        output: 0,
        extents: Vec::new(),
        x: (0, copy::signed(&own)),
        y: (0, out.clone()),
    };
    for (axis, &begin) in begins.iter().enumerate() {
        let (old, new) = (x.dims()[axis] as i64, y.dims()[axis] as i64);
        let first = (-begin).clamp(0, new);
        let last = old.saturating_sub(begin).clamp(first, new);
        one.extents.push((last - first) as usize);
        one.x.0 += (first + begin).max(0) as usize * own[axis];
        one.y.0 += first as usize * out[axis];
    }
    let is_whole = one.extents == y.dims();
    let moves: Vec<Move> = (!one.extents.contains(&0))
        .then_some(one)
        .into_iter()
        .collect();
    let fill = Fill {
        output: 0,
        len: y.shape.len(),
        value,
    };
    let fills: Vec<Fill> = (!is_whole).then_some(fill).into_iter().collect();
    copy::operation(node, inputs, &[y], &fills, &moves)
}
