//! `Col2Im`: blocks of an image, one a column, summed where they overlap.

use serde_json::json;

use super::element;
use super::nest;
use super::node::LoopNode;
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;
use crate::graph::DType;

/// Lowers `Col2Im`; `None` if it is another operator.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Result<Vec<Operation>, NotCovered>> {
    (node.node.op == "Col2Im").then(|| columns_to_image(node))
}

/// `Col2Im`: `[n, c · block, l]` to `[n, c, …]`, each element of the image as a sum of its own.
fn columns_to_image(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = (node.required(0)?, node.main_output()?);
    let &[n, c, ref image @ ..] = y.dims() else {
        return Err(node.refuse("its output is not `[n, c, …]`"));
    };
    if x.dtype == DType::Bool {
        return Err(node.refuse("Booleans have no sum"));
    }
    let rank = image.len();
    let misfit = || node.refuse("its columns do not fit its image");
    let list = |name: &str, default: i64, len: usize| -> Result<Vec<i64>, NotCovered> {
        let list = match node.node.ints(name) {
            Some(list) => list.to_vec(),
            None => vec![default; len],
        };
        let fits = list.len() == len && list.iter().all(|&value| value >= default);
        if fits { Ok(list) } else { Err(misfit()) }
    };
    let block = node.constant_ints(2)?.unwrap_or_default();
    let (strides, dilations) = (list("strides", 1, rank)?, list("dilations", 1, rank)?);
    let pads = list("pads", 0, 2 * rank)?;
    if block.len() != rank || block.iter().any(|&size| size < 1) {
        return Err(misfit());
    }
    let mut n_blocks = Vec::new();
    for axis in 0..rank {
        let reach = dilations[axis]
            .checked_mul(block[axis] - 1)
            .ok_or_else(misfit)?;
        let room = (image[axis] as i64)
            .saturating_add(pads[axis])
            .saturating_add(pads[rank + axis])
            .saturating_sub(reach)
            - 1;
        if room < 0 {
            return Err(misfit());
        }
        n_blocks.push((room / strides[axis] + 1) as usize);
    }
    let block: Vec<usize> = block.into_iter().map(|size| size as usize).collect();
    let (per_block, columns) = (
        block.iter().product::<usize>(),
        n_blocks.iter().product::<usize>(),
    );
    if x.dims() != [n, c * per_block, columns] {
        return Err(misfit());
    }
    let is_float = x.dtype.is_float();
    let facts = json!({
        "planes": n * c,
        "image": image,
        "y_at": nest::place(&nest::dense(image)),
        "y_block": image.iter().product::<usize>(),
        "x_block": per_block * columns,
        "block": block,
        "block_strides": nest::dense(&block),
        "columns": columns,
        "n_blocks": n_blocks,
        "column_strides": nest::dense(&n_blocks),
        "strides": strides, "dilations": dilations, "pads": pads[..rank],
        "storage": element::storage(x.dtype),
        "dtype": element::rust_type(x.dtype),
        "load": element::load(x.dtype, "s"),
        "sum": if is_float { "v + b" } else { "v.wrapping_add(b)" },
        "zero": if is_float { "0.0" } else { "0" },
        "store": element::store(y.dtype, "v"),
    });
    Ok(vec![node.operation(
        "loops/columns.rs.j2",
        facts,
        &[x],
        &[y],
        0,
    )])
}
