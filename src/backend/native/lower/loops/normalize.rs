//! Normalisation of contiguous groups: over the last axes, over channels of one image, over one
//! channel.

use serde_json::json;

use super::element;
use super::nest;
use super::node::{Known, LoopNode};
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;
use crate::graph::{DType, from_front};

/// Lowers a normalisation; `None` if it is none.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Result<Vec<Operation>, NotCovered>> {
    Some(match node.node.op.as_str() {
        "LayerNormalization" | "RMSNormalization" => over_last_axes(node),
        "GroupNormalization" | "InstanceNormalization" => over_channels(node),
        _ => return None,
    })
}

/// What is normalised together: `parts` runs of `run` elements, one after the other.
struct Groups {
    count: usize,
    parts: usize,
    run: usize,
}

fn over_last_axes(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let x = node.required(0)?;
    let dims = x.dims();
    let axis = from_front(node.node.int("axis", -1), dims.len())
        .ok_or_else(|| node.refuse("`axis` is out of range"))?;
    let groups = Groups {
        count: dims[..axis].iter().product(),
        parts: 1,
        run: dims[axis..].iter().product(),
    };
    let statistics = [node.output(1), node.output(2)];
    let has_statistics = statistics.iter().flatten().next().is_some();
    if !matches!(node.node.int("stash_type", 1), 1 | 11) && x.dtype != DType::F32 {
        return Err(node.refuse("statistics of a type other than f32 and f64"));
    }
    let is_row = |known: &Known<'_>| {
        let given = known.dims();
        let first = given
            .iter()
            .position(|&extent| extent != 1)
            .unwrap_or(given.len());
        let kept = dims[axis..]
            .iter()
            .position(|&extent| extent != 1)
            .unwrap_or(dims.len() - axis);
        given[first..] == dims[axis + kept..]
    };
    let strides = |known: &Known<'_>| nest::broadcast(known.dims(), dims);
    let affine = [node.input(1), node.input(2)];
    let is_simple = affine.iter().flatten().all(is_row);
    if x.dtype == DType::F32 && is_simple && !has_statistics {
        return rows(node, &groups, "row", "0");
    }
    let places = affine.map(|known| known.map(|known| flat_place(dims, &strides(&known))));
    any_type(node, &groups, &places)
}

fn over_channels(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let x = node.required(0)?;
    let &[n, channels, ref spatial @ ..] = x.dims() else {
        return Err(node.refuse(format!("an input of shape {}", x.shape)));
    };
    let run: usize = spatial.iter().product();
    let is_group = node.node.op == "GroupNormalization";
    let n_groups = match usize::try_from(node.node.int("num_groups", 0)) {
        _ if !is_group => channels,
        Ok(n_groups) if n_groups > 0 && channels.is_multiple_of(n_groups) => n_groups,
        _ => return Err(node.refuse("its channels do not split into `num_groups`")),
    };
    let parts = channels / n_groups;
    let groups = Groups {
        count: n * n_groups,
        parts,
        run,
    };
    let len = node.required(1)?.shape.len();
    node.required(2)?;
    // Up to opset 20 groups have one factor each, since then channels have.
    let (channel, place) = if len == n_groups {
        let place = format!("at / {} % {n_groups}", parts * run);
        (format!("g % {n_groups}"), place)
    } else if len == channels {
        let place = format!("at / {run} % {channels}");
        (format!("g % {n_groups} * {parts} + p"), place)
    } else {
        return Err(node.refuse(format!("{len} factors for {channels} channels")));
    };
    if x.dtype == DType::F32 {
        return rows(node, &groups, "channel", &channel);
    }
    any_type(node, &groups, &[Some(place.clone()), Some(place)])
}

/// Returns the index into an operand with those strides along `dims`, from the flat index `at`.
fn flat_place(dims: &[usize], strides: &[usize]) -> String {
    let own = nest::dense(dims);
    let terms = (0..dims.len())
        .filter(|&axis| strides[axis] > 0)
        .map(|axis| format!("at / {} % {} * {}", own[axis], dims[axis], strides[axis]));
    let terms: Vec<String> = terms.collect();
    if terms.is_empty() {
        "0".to_owned()
    } else {
        terms.join(" + ")
    }
}

fn is_centred(node: &LoopNode<'_>) -> bool {
    node.node.op != "RMSNormalization"
}

fn epsilon(node: &LoopNode<'_>, dtype: DType) -> String {
    element::float(node.node.float("epsilon", 1e-5).into(), dtype)
}

/// Vectors of f32; factors lie in `mode` "row" as the elements do, in "channel" at `channel`.
fn rows(
    node: &LoopNode<'_>,
    groups: &Groups,
    mode: &str,
    channel: &str,
) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = (node.required(0)?, node.main_output()?);
    let affine = [node.input(1), node.input(2)];
    let inputs: Vec<Known<'_>> = std::iter::once(x)
        .chain(affine.into_iter().flatten())
        .collect();
    let facts = json!({
        "units": groups.count, "parts": groups.parts, "run": groups.run,
        "mode": mode, "channel": channel, "has_scale": affine[0].is_some(), "has_bias": affine[1].is_some(),
        "centred": is_centred(node), "epsilon": epsilon(node, DType::F32),
    });
    Ok(vec![node.operation(
        "loops/normalize_rows.rs.j2",
        facts,
        &inputs,
        &[y],
        0,
    )])
}

/// Any type, any broadcasting of the factors.
fn any_type(
    node: &LoopNode<'_>,
    groups: &Groups,
    places: &[Option<String>; 2],
) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = (node.required(0)?, node.main_output()?);
    if !x.dtype.is_float() {
        return Err(node.refuse(format!("elements of {}", x.dtype)));
    }
    let own = element::rust_type(x.dtype);
    let mut inputs = vec![x];
    let mut factors = Vec::new();
    for (idx, place) in places.iter().enumerate() {
        let (Some(place), Some(known)) = (place, node.input(idx + 1)) else {
            factors.push(None);
            continue;
        };
        let pointer = format!(
            "(x{} as *const {}).add({place})",
            inputs.len(),
            element::storage(known.dtype)
        );
        factors.push(Some(format!(
            "({} as {own})",
            element::load(known.dtype, &pointer)
        )));
        inputs.push(known);
    }
    let mut outputs = vec![y];
    let mut statistics = Vec::new();
    for (idx, value) in [(1, "mean"), (2, "scale")] {
        let Some(known) = node.output(idx) else {
            continue;
        };
        let v = format!("({value} as {})", element::rust_type(known.dtype));
        statistics.push(json!({
            "output": outputs.len(), "storage": element::storage(known.dtype),
            "store": element::store(known.dtype, &v),
        }));
        outputs.push(known);
    }
    let facts = json!({
        "units": groups.count, "len": groups.parts * groups.run, "type": own,
        "storage": element::storage(x.dtype), "load": element::load(x.dtype, "x.add(at)"),
        "store": element::store(y.dtype, "v"), "factor": factors[0], "bias": factors[1],
        "centred": is_centred(node), "epsilon": epsilon(node, x.dtype),
        "sqrt": if own == "f64" { "sqrt" } else { "sqrtf" }, "statistics": statistics,
    });
    Ok(vec![node.operation(
        "loops/normalize.rs.j2",
        facts,
        &inputs,
        &outputs,
        0,
    )])
}
