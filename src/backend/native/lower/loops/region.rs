//! Operators that read `[n, c, h, w]` at places that are computed: `RoiAlign`, `MaxRoiPool`,
//! `DeformConv`.

use serde_json::{Value, json};

use super::element;
use super::node::{Known, LoopNode};
use super::sliding::Window;
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;
use crate::graph::DType;

type Lowered = Result<Vec<Operation>, NotCovered>;

/// Lowers an operator that reads at computed places; `None` if the node is none.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Lowered> {
    match node.node.op.as_str() {
        "RoiAlign" => Some(align(node)),
        "MaxRoiPool" => Some(pool(node)),
        "DeformConv" => Some(deform(node)),
        _ => None,
    }
}

/// Returns the extents of an operand of four axes of floats, and how an element is read and stored.
fn image(node: &LoopNode<'_>, x: &Known<'_>) -> Result<([usize; 4], Value), NotCovered> {
    let &[n, c, h, w] = x.dims() else {
        return Err(node.refuse(format!("input {} has not four axes", x.shape)));
    };
    if !x.dtype.is_float() {
        return Err(node.refuse(format!("elements of {}", x.dtype)));
    }
    let load = |pointer: &str| element::load(x.dtype, &format!("{pointer}.add(at)"));
    let facts = json!({
        "n": n, "c": c, "h": h, "w": w,
        "type": element::rust_type(x.dtype), "storage": element::storage(x.dtype),
        "f": if x.dtype == DType::F64 { "" } else { "f" },
        "load_x": load("x"), "load_r": load("rois"), "load_w": load("w"),
        "load_b": load("b"), "load_o": load("offsets"), "load_m": load("mask"),
        "store": element::store(x.dtype, "v"),
    });
    Ok(([n, c, h, w], facts))
}

fn extended(facts: Value, more: Value) -> Value {
    match (facts, more) {
        (Value::Object(mut facts), Value::Object(more)) => {
            facts.extend(more);
            Value::Object(facts)
        }
        (facts, _) => facts,
    }
}

/// `RoiAlign`: since opset 16 pixels have their centres at halves unless it says otherwise.
fn align(node: &LoopNode<'_>) -> Lowered {
    let (x, rois, batch, y) = (
        node.required(0)?,
        node.required(1)?,
        node.required(2)?,
        node.main_output()?,
    );
    let (_, facts) = image(node, &x)?;
    let (&[n_rois, 4], &[_, _, oh, ow]) = (rois.dims(), y.dims()) else {
        return Err(node.refuse(format!("regions {}", rois.shape)));
    };
    if rois.dtype != x.dtype || y.dtype != x.dtype || batch.dtype != DType::I64 {
        return Err(node.refuse(format!("regions of {}", rois.dtype)));
    }
    let default = if node.opset() < 16 {
        "output_half_pixel"
    } else {
        "half_pixel"
    };
    let is_half = match node.node.string("coordinate_transformation_mode", default) {
        "half_pixel" => true,
        "output_half_pixel" => false,
        other => return Err(node.refuse(format!("coordinates by `{other}`"))),
    };
    let is_max = match node.node.string("mode", "avg") {
        "avg" => false,
        "max" => true,
        other => return Err(node.refuse(format!("mode `{other}`"))),
    };
    let number = |value: f32| element::float(value.into(), x.dtype);
    let facts = extended(
        facts,
        json!({
            "rois": n_rois, "oh": oh, "ow": ow, "is_max": is_max, "is_half": is_half,
            "scale": number(node.node.float("spatial_scale", 1.0)),
            "sampling": node.node.int("sampling_ratio", 0).max(0),
        }),
    );
    let operation = node.operation("loops/roi_align.rs.j2", facts, &[x, rois, batch], &[y], 0);
    Ok(vec![operation])
}

/// `MaxRoiPool`: regions `[batch, x1, y1, x2, y2]`, rounded to elements.
fn pool(node: &LoopNode<'_>) -> Lowered {
    let (x, rois, y) = (node.required(0)?, node.required(1)?, node.main_output()?);
    let (_, facts) = image(node, &x)?;
    let (&[n_rois, 5], &[_, _, oh, ow]) = (rois.dims(), y.dims()) else {
        return Err(node.refuse(format!("regions {}", rois.shape)));
    };
    if rois.dtype != x.dtype || y.dtype != x.dtype {
        return Err(node.refuse(format!("regions of {}", rois.dtype)));
    }
    let scale = node.node.float("spatial_scale", 1.0);
    let facts = extended(
        facts,
        json!({
            "rois": n_rois, "oh": oh, "ow": ow,
            "scale": element::float(scale.into(), x.dtype),
        }),
    );
    Ok(vec![node.operation(
        "loops/roi_pool.rs.j2",
        facts,
        &[x, rois],
        &[y],
        0,
    )])
}

/// `DeformConv` over two spatial axes: every tap has an offset and a factor of its own.
fn deform(node: &LoopNode<'_>) -> Lowered {
    let (x, w, offsets, y) = (
        node.required(0)?,
        node.required(1)?,
        node.required(2)?,
        node.main_output()?,
    );
    let ([n, c, h, width], facts) = image(node, &x)?;
    let (&[m, c_group, kh, kw], &[_, _, oh, ow]) = (w.dims(), y.dims()) else {
        return Err(node.refuse(format!("weights {}", w.shape)));
    };
    let window = Window::read(node, &[kh, kw], &[h, width], &[oh, ow])?;
    let count = |name: &str| usize::try_from(node.node.int(name, 1)).unwrap_or(0);
    let (groups, offset_groups) = (count("group"), count("offset_group"));
    let fits = groups > 0
        && offset_groups > 0
        && c == groups * c_group
        && m.is_multiple_of(groups)
        && c.is_multiple_of(offset_groups)
        && offsets.shape.len() == n * offset_groups * kh * kw * 2 * oh * ow;
    let (bias, mask) = (node.input(3), node.input(4));
    let others = [Some(w), Some(offsets), bias, mask, Some(y)];
    if !fits || others.iter().flatten().any(|known| known.dtype != x.dtype) {
        return Err(node.refuse(format!(
            "input {}, weights {} and offsets {} do not fit",
            x.shape, w.shape, offsets.shape
        )));
    }
    let mut inputs = vec![x, w, offsets];
    let mut parameter = |known: Option<Known<'_>>| match known {
        None => Value::Null,
        Some(known) => {
            inputs.push(node.known(known.id));
            json!(format!("x{}", inputs.len() - 1))
        }
    };
    let (bias, mask) = (parameter(bias), parameter(mask));
    let facts = extended(
        facts,
        json!({
            "m": m, "c_group": c_group, "m_group": m / groups, "kh": kh, "kw": kw,
            "oh": oh, "ow": ow, "offset_groups": offset_groups,
            "offset_channels": c / offset_groups,
            "stride": window.stride, "dilation": window.dilation, "pad": window.begin,
            "bias": bias, "mask": mask,
        }),
    );
    Ok(vec![node.operation(
        "loops/deform.rs.j2",
        facts,
        &inputs,
        &[y],
        0,
    )])
}
