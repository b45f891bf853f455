//! Operators that pick elements or rows by index: `Gather`, `GatherElements`, `GatherND`,
//! `ReverseSequence`, `Compress` by a constant.
//!
//! Whatever an index holds when the kernel runs, it reads inside of the data.

use serde_json::json;

use super::copy;
use super::element;
use super::nest;
use super::node::{Known, LoopNode};
use super::remap;
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;
use crate::graph::{Shape, Tensor};

/// Lowers an operator that picks; `None` if it is not one.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Result<Vec<Operation>, NotCovered>> {
    Some(match node.node.op.as_str() {
        "Gather" => gather(node),
        "GatherElements" => gather_elements(node),
        "GatherND" => gather_nd(node),
        "ReverseSequence" => reverse_sequence(node),
        "Compress" => compress(node),
        _ => return None,
    })
}

/// Loops that copy `run` elements each.
struct Picks {
    extents: Vec<usize>,
    /// The expressions of `j0`, `j1`, … in terms of `i0`, `i1`, ….
    indices: Vec<String>,
    /// Where the run is read, in terms of all of these.
    x_at: String,
    /// Distances of the runs that are written.
    y_strides: Vec<usize>,
    run: usize,
}

fn operation(
    node: &LoopNode<'_>,
    x: Known<'_>,
    indices: Known<'_>,
    picks: &Picks,
) -> Result<Vec<Operation>, NotCovered> {
    let y = node.main_output()?;
    if x.shape.is_empty() && !y.shape.is_empty() {
        return Err(node.refuse("there is nothing to pick from"));
    }
    let n_written = picks.extents.iter().product::<usize>() * picks.run;
    if n_written != y.shape.len() {
        return Err(node.refuse("its shapes do not fit"));
    }
    let facts = json!({
        "element": copy::storage(y.dtype),
        "index": element::storage(indices.dtype),
        "extents": picks.extents,
        "indices": picks.indices,
        "x_at": picks.x_at,
        "y_at": nest::place(&picks.y_strides),
        "run": picks.run,
    });
    Ok(vec![node.operation(
        "loops/gather.rs.j2",
        facts,
        &[x, indices],
        &[y],
        0,
    )])
}

/// Returns the expression of an index along an axis of `size`, read at `place`.
pub(super) fn index(place: &str, size: usize) -> String {
    format!("index(*k.add({place}) as i64, {size})")
}

/// Joins an index expression of loops with multiples of picked indices.
pub(super) fn offset(strides: &[usize], picked: &[usize]) -> String {
    let mut terms = vec![nest::place(strides)];
    for (idx, stride) in picked.iter().enumerate() {
        terms.push(format!("j{idx} * {stride}"));
    }
    terms.join(" + ")
}

/// `Gather`: whole slices along `axis`.
fn gather(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, indices) = (node.required(0)?, node.required(1)?);
    let axis = node.axis(0, x.dims().len())?;
    let (outer, size) = (x.dims()[..axis].iter().product(), x.dims()[axis]);
    let run: usize = x.dims()[axis + 1..].iter().product();
    let n = indices.shape.len();
    let picks = Picks {
        extents: vec![outer, n],
        indices: vec![index("i1", size)],
        x_at: offset(&[size * run, 0], &[run]),
        y_strides: vec![n * run, run],
        run,
    };
    operation(node, x, indices, &picks)
}

/// `GatherElements`: one element for each index, which replaces its own place along `axis`.
fn gather_elements(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, indices) = (node.required(0)?, node.required(1)?);
    let (index, x_at) = replaced(node, x, indices)?;
    let picks = Picks {
        extents: indices.dims().to_vec(),
        indices: vec![index],
        x_at,
        y_strides: nest::dense(indices.dims()),
        run: 1,
    };
    operation(node, x, indices, &picks)
}

/// Returns the index at each place of `indices`, and the place in `x` that it leads to: its own,
/// replaced along `axis`.
pub(super) fn replaced(
    node: &LoopNode<'_>,
    x: Known<'_>,
    indices: Known<'_>,
) -> Result<(String, String), NotCovered> {
    let rank = x.dims().len();
    let axis = node.axis(0, rank)?;
    let fits = indices.dims().len() == rank
        && (0..rank).all(|idx| idx == axis || indices.dims()[idx] <= x.dims()[idx]);
    if !fits {
        return Err(node.refuse("its indices do not fit its data"));
    }
    let mut kept = nest::dense(x.dims());
    let along = std::mem::take(&mut kept[axis]);
    let place = nest::place(&nest::dense(indices.dims()));
    Ok((index(&place, x.dims()[axis]), offset(&kept, &[along])))
}

/// `GatherND`: the last axis of the indices names a place in the axes after `batch_dims`.
fn gather_nd(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, indices) = (node.required(0)?, node.required(1)?);
    let (dims, rank) = (x.dims(), x.dims().len());
    let batch = usize::try_from(node.node.int("batch_dims", 0)).unwrap_or(usize::MAX);
    let Some((&depth, outer)) = indices.dims().split_last() else {
        return Err(node.refuse("its indices are a scalar"));
    };
    let fits = batch.saturating_add(depth) <= rank
        && batch <= outer.len()
        && dims[..batch] == outer[..batch];
    if !fits {
        return Err(node.refuse("its indices do not fit its data"));
    }
    let own = nest::dense(dims);
    let n_batches: usize = dims[..batch].iter().product();
    let n: usize = outer[batch..].iter().product();
    let run: usize = dims[batch + depth..].iter().product();
    let per_batch: usize = dims[batch..].iter().product();
    let picks = Picks {
        extents: vec![n_batches, n],
        indices: (0..depth)
            .map(|idx| {
                let place = nest::place(&[n * depth, depth]);
                index(&format!("{place} + {idx}"), dims[batch + idx])
            })
            .collect(),
        x_at: offset(&[per_batch, 0], &own[batch..batch + depth]),
        y_strides: vec![n * run, run],
        run,
    };
    operation(node, x, indices, &picks)
}

/// `ReverseSequence`: the first elements of each sequence in reverse, as many as its length says.
fn reverse_sequence(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, lengths) = (node.required(0)?, node.required(1)?);
    let Some(&[rows, columns]) = x.dims().first_chunk::<2>() else {
        return Err(node.refuse("its input has no sequences"));
    };
    let run: usize = x.dims()[2..].iter().product();
    let is_time_first = node.node.int("time_axis", 0) == 0;
    let (time, batch, size) = if is_time_first {
        ("i0", "i1", rows)
    } else {
        ("i1", "i0", columns)
    };
    if lengths.shape.len() != if is_time_first { columns } else { rows } {
        return Err(node.refuse("its lengths do not fit its data"));
    }
    let (kept, picked) = if is_time_first {
        ([0, run], columns * run)
    } else {
        ([columns * run, 0], run)
    };
    let turned = format!(
        "{{ let n = (*k.add({batch}) as i64).min({size}).max(0) as usize; if {time} < n {{ n - 1 - {time} }} else {{ {time} }} }}"
    );
    let picks = Picks {
        extents: vec![rows, columns],
        indices: vec![turned],
        x_at: offset(&kept, &[picked]),
        y_strides: vec![columns * run, run],
        run,
    };
    operation(node, x, lengths, &picks)
}

/// `Compress`: the slices, or the elements, that a constant condition names.
fn compress(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, condition, y) = (node.required(0)?, node.required(1)?, node.main_output()?);
    let chosen = condition.data.and_then(Tensor::to_i64);
    let chosen = chosen.ok_or_else(|| node.refuse("its condition is not constant"))?;
    let chosen: Vec<usize> = (0..chosen.len()).filter(|&idx| chosen[idx] != 0).collect();
    if node.node.attributes.contains_key("axis") {
        let axis = node.axis(0, x.dims().len())?;
        let mut maps: Vec<Vec<usize>> = x.dims().iter().map(|&size| (0..size).collect()).collect();
        maps[axis] = chosen;
        return remap::operation(node, x, y, None, &remap::boxed(maps));
    }
    let flat = Shape(vec![x.shape.len()]);
    let x = Known { shape: &flat, ..x };
    remap::operation(node, x, y, None, &remap::boxed(vec![chosen]))
}
