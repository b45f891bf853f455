//! Operators that put elements into another order or repeat them: `Tile`, `DepthToSpace`,
//! `SpaceToDepth`.

use super::copy::{self, Move};
use super::nest;
use super::node::LoopNode;
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;

/// Lowers an operator that arranges elements; `None` if it is not one.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Result<Vec<Operation>, NotCovered>> {
    Some(match node.node.op.as_str() {
        "Tile" => tile(node),
        "DepthToSpace" => depth_to_space(node),
        "SpaceToDepth" => space_to_depth(node),
        _ => return None,
    })
}

/// `Tile`: each axis is walked again and again.
fn tile(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = (node.required(0)?, node.main_output()?);
    let own = nest::dense(x.dims());
    let out = nest::dense(y.dims());
    if own.len() != out.len() {
        return Err(node.refuse("its input and output differ in rank"));
    }
    let mut one = Move {
        input: 0,
        output: 0,
        extents: Vec::new(),
        x: (0, Vec::new()),
        y: (0, Vec::new()),
    };
    for axis in 0..own.len() {
        let size = x.dims()[axis];
        one.extents.extend([y.dims()[axis] / size.max(1), size]);
        one.x.1.extend([0, own[axis] as isize]);
        one.y.1.extend([size * out[axis], out[axis]]);
    }
    copy::operation(node, &[x], &[y], &[], &[one])
}

/// `DepthToSpace`: `[n, c · b², h, w]` to `[n, c, h · b, w · b]`, blocks first (`DCR`) or channels
/// first (`CRD`).
fn depth_to_space(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = (node.required(0)?, node.main_output()?);
    let (&[n, _, h, w], &[_, c, ..]) = (x.dims(), y.dims()) else {
        return Err(node.refuse("it is not over `[n, c, h, w]`"));
    };
    let b = block(node)?;
    // Distances between rows and columns of a block, and between channels, in planes.
    let [row, column, channel] = match node.node.string("mode", "DCR") {
        "CRD" => [b, 1, b * b],
        _ => [b * c, c, 1],
    };
    let plane = h * w;
    let one = Move {
        input: 0,
        output: 0,
        extents: vec![n, c, h, b, w, b],
        x: (
            0,
            copy::signed(&[
                c * b * b * plane,
                channel * plane,
                w,
                row * plane,
                1,
                column * plane,
            ]),
        ),
        y: (0, nest::dense(&[n, c, h, b, w, b])),
    };
    copy::operation(node, &[x], &[y], &[], &[one])
}

/// `SpaceToDepth`: `[n, c, h · b, w · b]` to `[n, b² · c, h, w]`, blocks first (`DCR`) or channels
/// first (`CRD`).
fn space_to_depth(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = (node.required(0)?, node.main_output()?);
    let (&[n, c, ..], &[_, _, h, w]) = (x.dims(), y.dims()) else {
        return Err(node.refuse("it is not over `[n, c, h, w]`"));
    };
    let b = block(node)?;
    let plane = h * w * b * b;
    let block = [(b, w * b), (b, 1)];
    let depth = match node.node.string("mode", "DCR") {
        "CRD" => [(c, plane), block[0], block[1]],
        _ => [block[0], block[1], (c, plane)],
    };
    let walks = [
        [(n, c * plane)].as_slice(),
        &depth,
        &[(h, b * w * b), (w, b)],
    ]
    .concat();
    let (extents, strides): (Vec<usize>, Vec<usize>) = walks.into_iter().unzip();
    let one = Move {
        input: 0,
        output: 0,
        x: (0, copy::signed(&strides)),
        y: (0, nest::dense(&extents)),
        extents,
    };
    copy::operation(node, &[x], &[y], &[], &[one])
}

fn block(node: &LoopNode<'_>) -> Result<usize, NotCovered> {
    usize::try_from(node.node.int("blocksize", 0))
        .ok()
        .filter(|&block| block > 0)
        .ok_or_else(|| node.refuse("`blocksize` is not positive"))
}
