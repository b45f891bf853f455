//! `QuantizeLinear`, `DequantizeLinear` and `DynamicQuantizeLinear`.

use serde_json::json;

use super::element;
use super::node::{Known, LoopNode};
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;
use crate::graph::{DType, from_front};

/// Lowers a conversion from or to quantised numbers; `None` if it is none.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Result<Vec<Operation>, NotCovered>> {
    Some(match node.node.op.as_str() {
        "QuantizeLinear" => linear(node, true),
        "DequantizeLinear" => linear(node, false),
        "DynamicQuantizeLinear" => dynamic(node),
        _ => return None,
    })
}

/// Which scale belongs to which element.
struct Scales {
    /// Extents before, along and after the axis of the scales.
    extents: [usize; 3],
    /// Index of the scale in loops over `o`, `c` and `i`.
    place: String,
    /// Whether it differs along the last of them.
    is_inner: bool,
}

fn scales(node: &LoopNode<'_>, x: &Known<'_>, scale: &Known<'_>) -> Result<Scales, NotCovered> {
    let block = node.node.int("block_size", 0);
    if block == 0 && scale.shape.len() == 1 {
        return Ok(Scales {
            extents: [1, 1, x.shape.len()],
            place: "0".to_owned(),
            is_inner: false,
        });
    }
    let axis = from_front(node.node.int("axis", 1), x.dims().len())
        .ok_or_else(|| node.refuse("`axis` is out of range"))?;
    let (before, rest) = x.dims().split_at(axis);
    let extents = [before.iter().product(), rest[0], rest[1..].iter().product()];
    let [outer, along, inner] = extents;
    if block == 0 && scale.shape.len() == along {
        return Ok(Scales {
            extents,
            place: "c".to_owned(),
            is_inner: false,
        });
    }
    let blocks = usize::try_from(block).unwrap_or(0);
    let n_blocks = along.checked_div(blocks).map(|_| along.div_ceil(blocks));
    match n_blocks {
        Some(n_blocks) if scale.shape.len() == outer * n_blocks * inner => Ok(Scales {
            extents,
            place: format!("(o * {n_blocks} + c / {blocks}) * {inner} + i"),
            is_inner: inner > 1,
        }),
        _ => Err(node.refuse(format!(
            "scales of shape {} in blocks of {block}",
            scale.shape
        ))),
    }
}

fn linear(node: &LoopNode<'_>, quantizes: bool) -> Result<Vec<Operation>, NotCovered> {
    let (x, scale, y) = (node.required(0)?, node.required(1)?, node.main_output()?);
    let zero = node.input(2);
    let (float, integer) = if quantizes {
        (x.dtype, y.dtype)
    } else {
        (y.dtype, x.dtype)
    };
    let is_integer = matches!(integer, DType::I8 | DType::U8 | DType::I16 | DType::U16)
        || (integer == DType::I32 && !quantizes);
    let is_float = matches!(float, DType::F32 | DType::F16) || (float == DType::I32 && quantizes);
    if !is_integer || !is_float || !matches!(scale.dtype, DType::F32 | DType::F16) {
        return Err(node.refuse(format!(
            "{} to {} by scales of {}",
            x.dtype, y.dtype, scale.dtype
        )));
    }
    let scales = scales(node, &x, &scale)?;
    let at = |known: &Known<'_>, idx: usize| {
        let pointer = format!(
            "(x{idx} as *const {}).add({})",
            element::storage(known.dtype),
            scales.place
        );
        element::load(known.dtype, &pointer)
    };
    let mut inputs = vec![x, scale];
    inputs.extend(zero);
    let load = element::load(x.dtype, "x.add(at)");
    let zero = zero.map_or("0".to_owned(), |zero| format!("({} as i32)", at(&zero, 2)));
    let value = if quantizes {
        // Casts to integers saturate.
        format!(
            "(nearest({load} as f32 / scale) + zero as f32) as {}",
            element::rust_type(y.dtype)
        )
    } else {
        format!("({load} as i32).wrapping_sub(zero) as f32 * scale")
    };
    let facts = json!({
        "extents": scales.extents, "is_inner": scales.is_inner,
        "x": element::storage(x.dtype), "y": element::storage(y.dtype),
        "scale": at(&scale, 1), "zero": zero, "value": value, "store": element::store(y.dtype, "v"),
    });
    Ok(vec![node.operation(
        "loops/quantize.rs.j2",
        facts,
        &inputs,
        &[y],
        0,
    )])
}

fn dynamic(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let x = node.required(0)?;
    if x.dtype != DType::F32 {
        return Err(node.refuse(format!("elements of {}", x.dtype)));
    }
    let mut outputs = Vec::new();
    let mut place = |idx: usize| {
        let known = node.output(idx)?;
        outputs.push(known);
        Some(format!("y{}", outputs.len() - 1))
    };
    let facts = json!({
        "len": x.shape.len(), "y": place(0), "scale": place(1), "zero": place(2),
    });
    Ok(vec![node.operation(
        "loops/dynamic_quantize.rs.j2",
        facts,
        &[x],
        &outputs,
        0,
    )])
}
