//! Attributes of the operator sets to nearest neighbours or taps.

use super::axis::{self, Axis};
use super::coordinate::Transformation;
use super::separable;
use super::taps::{Interpolation, taps};
use crate::backend::native::lower::loops::crop;
use crate::backend::native::lower::loops::node::LoopNode;
use crate::backend::native::lower::loops::{element, remap};
use crate::backend::native::lower::subgraph::{Lowering, NotCovered};
use crate::backend::native::spec::Operation;
use crate::graph::{DType, Node};

/// Lowers a resampling; `None` if it is another operator.
pub(in crate::backend::native::lower::loops) fn lower(
    node: &LoopNode<'_>,
) -> Option<Result<Vec<Operation>, NotCovered>> {
    matches!(node.node.op.as_str(), "Resize" | "Upsample").then(|| resize(node))
}

fn resize(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (axes, transformation) = coordinates(node)?;
    let inside: Vec<[usize; 2]> = axes
        .iter()
        .map(|axis| inside(axis, transformation))
        .collect();
    match node.node.string("mode", "nearest") {
        "nearest" => nearest(node, &axes, transformation, &inside),
        mode @ ("linear" | "bilinear" | "cubic") => {
            let flag = |name| has_modes(node) && node.node.int(name, 0) != 0;
            let how = Interpolation {
                cubic: (mode == "cubic").then(|| node.node.float("cubic_coeff_a", -0.75)),
                antialias: flag("antialias"),
                exclude_outside: flag("exclude_outside"),
            };
            let taps: Vec<_> = axes
                .iter()
                .map(|axis| taps(axis, transformation, how))
                .collect();
            let outside = node.node.float("extrapolation_value", 0.0);
            separable::operation(node, &axes, &taps, &inside, outside)
        }
        other => Err(node.refuse(format!("its mode is `{other}`"))),
    }
}

/// Returns whether the attributes of operator set 11 say how to resample.
fn has_modes(node: &LoopNode<'_>) -> bool {
    node.node.op == "Resize" && node.opset() >= 11
}

/// Returns the axes, none of which is empty, and how places on them are found.
fn coordinates(node: &LoopNode<'_>) -> Result<(Vec<Axis>, Transformation), NotCovered> {
    let axes = axis::axes(node)?;
    if axes.iter().any(|axis| axis.old == 0) {
        return Err(node.refuse("there is nothing to resample"));
    }
    let name = if has_modes(node) {
        node.node
            .string("coordinate_transformation_mode", "half_pixel")
    } else {
        "asymmetric"
    };
    let transformation = Transformation::parse(name)
        .ok_or_else(|| node.refuse(format!("its coordinate transformation is `{name}`")))?;
    Ok((axes, transformation))
}

/// Returns the range of outputs along an axis that lie in the input; the others are extrapolated.
fn inside(axis: &Axis, transformation: Transformation) -> [usize; 2] {
    if transformation != Transformation::TfCropAndResize {
        return [0, axis.new];
    }
    let is_inside = |&at: &usize| {
        let place = transformation.place(axis, at);
        (0.0..=axis.old as f32 - 1.0).contains(&place)
    };
    // Places go one way, so those inside follow each other.
    let start = (0..axis.new).find(is_inside).unwrap_or(axis.new);
    let n = (start..axis.new).take_while(is_inside).count();
    [start, start + n]
}

fn nearest(
    node: &LoopNode<'_>,
    axes: &[Axis],
    transformation: Transformation,
    inside: &[[usize; 2]],
) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = (node.required(0)?, node.main_output()?);
    let maps = nearest_maps(node, axes, transformation, inside)?;
    let is_whole = axes
        .iter()
        .zip(inside)
        .all(|(axis, range)| *range == [0, axis.new]);
    let outside = f64::from(node.node.float("extrapolation_value", 0.0));
    let fill = (!is_whole).then(|| fill(outside, y.dtype));
    remap::operation(node, x, y, fill, &maps)
}

/// Returns for each output along each axis the input that it is.
fn nearest_maps(
    node: &LoopNode<'_>,
    axes: &[Axis],
    transformation: Transformation,
    inside: &[[usize; 2]],
) -> Result<Vec<remap::Axis>, NotCovered> {
    let rounding = if has_modes(node) {
        node.node.string("nearest_mode", "round_prefer_floor")
    } else {
        "simple"
    };
    let round = |place: f32, scale: f32| {
        Some(match rounding {
            // Before operator set 11: upwards only where the value becomes smaller.
            "simple" if scale < 1.0 => place.ceil(),
            "simple" | "floor" => place.floor(),
            "ceil" => place.ceil(),
            "round_prefer_floor" => (place - 0.5).ceil(),
            "round_prefer_ceil" => (place + 0.5).floor(),
            _ => return None,
        })
    };
    let mut maps = Vec::new();
    for (axis, &[start, end]) in axes.iter().zip(inside) {
        let map: Option<Vec<usize>> = (start..end)
            .map(|at| {
                let place = round(transformation.place(axis, at), axis.scale)?;
                // The cast saturates, and makes 0 of what is not a number.
                Some((place as i64).clamp(0, axis.old as i64 - 1) as usize)
            })
            .collect();
        let map = map.ok_or_else(|| node.refuse(format!("its rounding is `{rounding}`")))?;
        maps.push(remap::Axis { start, map });
    }
    Ok(maps)
}

/// Returns the rows and columns of the input that those of the output are, if a resampling of
/// `[n, c, h, w]` takes the nearest ones and keeps batches and channels.
pub(in crate::backend::native::lower) fn nearest_pixels(
    ctx: &Lowering<'_>,
    node: &Node,
) -> Option<[Vec<usize>; 2]> {
    let node = &LoopNode::new(ctx, node).ok()?;
    let (axes, transformation) = coordinates(node).ok()?;
    let [batch, channels, _, _] = axes.as_slice() else {
        return None;
    };
    let is_nearest = node.node.string("mode", "nearest") == "nearest";
    let is_kept = batch.old == batch.new && channels.old == channels.new;
    if !is_nearest || !is_kept || transformation == Transformation::TfCropAndResize {
        return None;
    }
    let inside: Vec<[usize; 2]> = axes.iter().map(|axis| [0, axis.new]).collect();
    let maps = nearest_maps(node, &axes, transformation, &inside).ok()?;
    let mut maps = maps.into_iter().map(|axis| axis.map);
    let is_identity = |map: Vec<usize>| map.iter().enumerate().all(|(idx, &at)| idx == at);
    let kept = is_identity(maps.next()?) && is_identity(maps.next()?);
    Some([maps.next()?, maps.next()?]).filter(|_| kept)
}

/// Returns the expression of the bits of what is extrapolated.
fn fill(value: f64, dtype: DType) -> String {
    if dtype.is_float() {
        return crop::bits(value, dtype);
    }
    let number = element::float(value, DType::F64);
    match dtype {
        DType::Bool => format!("({number} != 0.0) as u8"),
        _ => format!("{number} as {} as _", dtype.name()),
    }
}
