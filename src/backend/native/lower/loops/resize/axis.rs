//! What a resampled axis looks like: sizes, scale and region.

use crate::backend::native::lower::loops::node::LoopNode;
use crate::backend::native::lower::subgraph::NotCovered;
use crate::graph::{Attribute, Tensor, TensorData, from_front};

/// An axis of the input, and what it becomes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    /// Extent of the input.
    pub(super) old: usize,
    /// Extent of the output.
    pub(super) new: usize,
    /// Output over input, as stated or as the extents say.
    pub(super) scale: f32,
    /// Start and end of the region, in extents of the input, for `tf_crop_and_resize`.
    pub(super) region: [f32; 2],
}

/// Returns the axes of a node; those that are not named keep their extent.
pub(super) fn axes(node: &LoopNode<'_>) -> Result<Vec<Axis>, NotCovered> {
    let (x, y) = (node.required(0)?, node.main_output()?);
    let rank = x.dims().len();
    if y.dims().len() != rank {
        return Err(node.refuse("its input and output differ in rank"));
    }
    let mut axes: Vec<Axis> = x
        .dims()
        .iter()
        .zip(y.dims())
        .map(|(&old, &new)| Axis {
            old,
            new,
            scale: new as f32 / old as f32,
            region: [0.0, 1.0],
        })
        .collect();
    let named: Option<Vec<usize>> = match node.node.ints("axes") {
        Some(list) => list.iter().map(|&axis| from_front(axis, rank)).collect(),
        None => Some((0..rank).collect()),
    };
    let named = named.ok_or_else(|| node.refuse("`axes` is out of range"))?;
    let is_upsample = node.node.op == "Upsample" || node.opset() < 11;
    let stated = scales(node, if is_upsample { 1 } else { 2 })?;
    if !stated.is_empty() {
        if stated.len() != named.len() {
            return Err(node.refuse("its scales do not fit its axes"));
        }
        for (&axis, scale) in named.iter().zip(stated) {
            axes[axis].scale = scale;
        }
    } else if node.node.string("keep_aspect_ratio_policy", "stretch") != "stretch" {
        keep_ratio(node, &mut axes, &named)?;
    }
    if node.node.string("coordinate_transformation_mode", "") == "tf_crop_and_resize" {
        let region = numbers(node, 1)?;
        if region.len() != 2 * named.len() {
            return Err(node.refuse("its region does not fit its axes"));
        }
        for (idx, &axis) in named.iter().enumerate() {
            axes[axis].region = [region[idx], region[named.len() + idx]];
        }
    }
    Ok(axes)
}

/// One scale for all named axes, from the sizes that were asked for.
fn keep_ratio(node: &LoopNode<'_>, axes: &mut [Axis], named: &[usize]) -> Result<(), NotCovered> {
    let sizes = node.constant_ints(3)?.unwrap_or_default();
    if sizes.len() != named.len() {
        return Err(node.refuse("its sizes do not fit its axes"));
    }
    let ratios = named
        .iter()
        .zip(&sizes)
        .map(|(&axis, &size)| size as f32 / axes[axis].old as f32);
    let scale = match node.node.string("keep_aspect_ratio_policy", "stretch") {
        "not_larger" => ratios.fold(f32::INFINITY, f32::min),
        "not_smaller" => ratios.fold(0.0, f32::max),
        other => return Err(node.refuse(format!("its policy is `{other}`"))),
    };
    for &axis in named {
        axes[axis].scale = scale;
    }
    Ok(())
}

/// Returns the scales: an attribute in operator sets before 9, empty if sizes are given.
fn scales(node: &LoopNode<'_>, idx: usize) -> Result<Vec<f32>, NotCovered> {
    match node.node.attributes.get("scales") {
        Some(Attribute::Floats(scales)) => Ok(scales.clone()),
        _ => numbers(node, idx),
    }
}

/// Returns the numbers of an input, which must be constant if it is given.
fn numbers(node: &LoopNode<'_>, idx: usize) -> Result<Vec<f32>, NotCovered> {
    let Some(known) = node.input(idx) else {
        return Ok(Vec::new());
    };
    if known.shape.is_empty() {
        return Ok(Vec::new());
    }
    match known.data.map(Tensor::data) {
        Some(TensorData::F32(data)) => Ok(data.clone()),
        Some(TensorData::F64(data)) => Ok(data.iter().map(|&v| v as f32).collect()),
        Some(_) => Err(node.refuse(format!("input {idx} is neither f32 nor f64"))),
        None => Err(node.refuse(format!("input {idx} is not constant"))),
    }
}
