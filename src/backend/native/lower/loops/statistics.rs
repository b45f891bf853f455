//! Normalisation by given statistics, over windows of channels and over any axes.

use serde_json::json;

use super::axes::{Axes, marked};
use super::element;
use super::nest;
use super::node::{Known, LoopNode};
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;

/// Lowers a normalisation; `None` if it is none.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Result<Vec<Operation>, NotCovered>> {
    Some(match node.node.op.as_str() {
        "BatchNormalization" => batch(node),
        "LRN" => local_response(node),
        "LpNormalization" | "MeanVarianceNormalization" => over_axes(node),
        _ => return None,
    })
}

/// Refuses elements that are no floats.
fn floats<'a>(node: &LoopNode<'a>) -> Result<(Known<'a>, Known<'a>), NotCovered> {
    let (x, y) = (node.required(0)?, node.main_output()?);
    if x.dtype.is_float() {
        Ok((x, y))
    } else {
        Err(node.refuse(format!("elements of {}", x.dtype)))
    }
}

/// Splits extents into images, channels and elements of a channel.
fn channels(dims: &[usize]) -> (usize, usize, usize) {
    match dims {
        [n, channels, spatial @ ..] => (*n, *channels, spatial.iter().product()),
        _ => (dims.iter().product(), 1, 1),
    }
}

/// `BatchNormalization` as inference does it.
fn batch(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = floats(node)?;
    if node.node.int("training_mode", 0) != 0
        || node.node.outputs.iter().skip(1).any(Option::is_some)
    {
        return Err(node.refuse("training mode"));
    }
    if node.node.int("spatial", 1) == 0 {
        return Err(node.refuse("statistics of each element (`spatial` = 0)"));
    }
    let (n, channels, inner) = channels(x.dims());
    let mut inputs = vec![x];
    let own = element::rust_type(x.dtype);
    let mut statistics = Vec::new();
    for idx in 1..5 {
        let known = node.required(idx)?;
        if known.shape.len() != channels {
            return Err(node.refuse(format!("input {idx} is not one number a channel")));
        }
        let pointer = format!(
            "(x{idx} as *const {}).add(ch)",
            element::storage(known.dtype)
        );
        statistics.push(format!("{} as {own}", element::load(known.dtype, &pointer)));
        inputs.push(known);
    }
    let facts = json!({
        "n": n, "channels": channels, "inner": inner, "type": own,
        "storage": element::storage(x.dtype), "load": element::load(x.dtype, "x.add(at)"),
        "store": element::store(y.dtype, "v"), "statistics": statistics,
        "epsilon": element::float(node.node.float("epsilon", 1e-5).into(), x.dtype),
        "sqrt": if own == "f64" { "sqrt" } else { "sqrtf" },
    });
    Ok(vec![node.operation(
        "loops/batch_norm.rs.j2",
        facts,
        &inputs,
        &[y],
        0,
    )])
}

/// `LRN`: over a window of channels.
fn local_response(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = floats(node)?;
    let size = usize::try_from(node.node.int("size", 0)).unwrap_or(0);
    if size == 0 {
        return Err(node.refuse("its `size` is not positive"));
    }
    let (n, channels, inner) = channels(x.dims());
    let number =
        |name: &str, default: f32| element::float(node.node.float(name, default).into(), x.dtype);
    let own = element::rust_type(x.dtype);
    let facts = json!({
        "n": n, "channels": channels, "inner": inner, "type": own, "size": size,
        "before": (size - 1) / 2, "after": size / 2,
        "storage": element::storage(x.dtype), "load": element::load(x.dtype, "x.add(at)"),
        "store": element::store(y.dtype, "v"), "pow": if own == "f64" { "pow" } else { "powf" },
        "alpha": number("alpha", 1e-4), "beta": number("beta", 0.75), "bias": number("bias", 1.0),
    });
    Ok(vec![node.operation(
        "loops/lrn.rs.j2",
        facts,
        &[x],
        &[y],
        0,
    )])
}

/// `LpNormalization` and `MeanVarianceNormalization`.
fn over_axes(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = floats(node)?;
    let rank = x.dims().len();
    let is_lp = node.node.op == "LpNormalization";
    let list = if is_lp {
        vec![node.node.int("axis", -1)]
    } else {
        node.node.ints("axes").unwrap_or(&[0, 2, 3]).to_vec()
    };
    let power = node.node.int("p", 2);
    if is_lp && !matches!(power, 1 | 2) {
        return Err(node.refuse(format!("`p` is {power}")));
    }
    let axes = Axes::new(x.dims(), &marked(node, &list, rank)?);
    let gone: Vec<String> = axes
        .gone
        .1
        .iter()
        .enumerate()
        .map(|(i, s)| format!("j{i} * {s}"))
        .collect();
    let own = element::rust_type(x.dtype);
    let suffix = if own == "f64" { "" } else { "f" };
    let facts = json!({
        "kept": axes.kept.0, "gone": axes.gone.0, "count": axes.count(), "type": own,
        "at": format!("{} + {}", nest::place(&axes.kept.1), gone.join(" + ")),
        "storage": element::storage(x.dtype), "load": element::load(x.dtype, "x.add(at)"),
        "store": element::store(y.dtype, "v"),
        "kind": if is_lp { format!("l{power}") } else { "mean_variance".to_owned() },
        "sqrt": format!("sqrt{suffix}"),
    });
    Ok(vec![node.operation(
        "loops/normalize_axes.rs.j2",
        facts,
        &[x],
        &[y],
        0,
    )])
}
