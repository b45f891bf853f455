//! Dense 3×3 convolution in the Winograd domain, where tiles of outputs cost fewer products.
//!
//! Of `m`×`m` outputs, `(m + 2)²` products an input channel are left of `9·m²`. Lavin and Gray, Fast
//! algorithms for convolutional neural networks (2016), §4; the points of `m = 4` are 0, ±1, ±2.

use minijinja::value::Serde;
use minijinja::{Value, context};

use super::conv::ConvGeometry;
use super::source::{Kernel, KernelCtx, KernelError, Slot, parameter, unsupported};
use crate::backend::native::spec::Conv;
use crate::space::Mapping;

/// Bytes of the transformed inputs and products of one strip of tiles: half of an L2 cache of
/// 1 MB, so that weights find room beside them.
const STRIP_BYTES: usize = 512 << 10;
/// Elements between matrices of a strip beyond their own, so that the matrices do not meet in one
/// set of a cache.
const SKEW: usize = 16;

/// Rows of `G` in `U = G·g·Gᵀ`, by the outputs along one side of a tile.
const WEIGHTS_2: [[f64; 3]; 4] = [
    [1.0, 0.0, 0.0],
    [0.5, 0.5, 0.5],
    [0.5, -0.5, 0.5],
    [0.0, 0.0, 1.0],
];
const WEIGHTS_4: [[f64; 3]; 6] = [
    [1.0 / 4.0, 0.0, 0.0],
    [-1.0 / 6.0, -1.0 / 6.0, -1.0 / 6.0],
    [-1.0 / 6.0, 1.0 / 6.0, -1.0 / 6.0],
    [1.0 / 24.0, 1.0 / 12.0, 1.0 / 6.0],
    [1.0 / 24.0, -1.0 / 12.0, 1.0 / 6.0],
    [0.0, 0.0, 1.0],
];

/// Returns the outputs along one side of a tile, if the mapping is one of this kernel.
pub fn winograd_side(mapping: &Mapping) -> Option<usize> {
    match mapping.word("taps") {
        Some("winograd2") => Some(2),
        Some("winograd4") => Some(4),
        _ => None,
    }
}

/// Returns how many times as many weights there are, if they are transformed: a fraction.
pub fn weights_growth(mapping: &Mapping) -> [usize; 2] {
    winograd_side(mapping).map_or([1, 1], |side| [(side + 2) * (side + 2), 9])
}

/// Returns whether the kernel computes such a convolution at all.
pub fn has_winograd(conv: &Conv) -> bool {
    let window = (conv.kernel, conv.stride, conv.dilation);
    let plain = conv.scale.is_none() && conv.pooled.is_none() && conv.quantized.is_none();
    conv.groups == 1 && window == ([3; 2], [1; 2], [1; 2]) && plain && conv.stored
}

/// Returns the columns that whole tiles read to the right of what the outputs need.
pub(super) fn columns_beyond(conv: &Conv, mapping: &Mapping) -> usize {
    let columns = conv.output[2];
    winograd_side(mapping).map_or(0, |side| columns.next_multiple_of(side) - columns)
}

/// Makes the kernel.
///
/// # Errors
/// [`KernelError::Unsupported`] if the mapping does not fit the shapes or layouts.
pub fn winograd(
    ctx: KernelCtx<'_>,
    conv: &Conv,
    mapping: &Mapping,
    geometry: &ConvGeometry,
) -> Result<Kernel, KernelError> {
    let int = |name| parameter(mapping, name, 0);
    let side = winograd_side(mapping).ok_or(KernelError::Parameter("taps"))?;
    if !has_winograd(conv) {
        return Err(unsupported("only dense 3×3 windows have a Winograd domain"));
    }
    if mapping.word("padding") == Some("edge") {
        return Err(unsupported("whole windows are read, outside taps included"));
    }
    let table = ctx.table(Some(int("lanes")? as i64))?;
    let lanes = table.lanes;
    let (x, y) = (geometry.x, geometry.y);
    let residual = geometry.residual.unwrap_or(y);
    if ![x, y, residual].iter().all(|g| g.holds_vectors(lanes)) {
        return Err(unsupported("a layout does not hold vectors"));
    }
    let (r, p) = (int("oc_vectors")?.max(1), int("tile_w")?.max(1));
    table.expect_room(p * r + r + 1)?;
    let [ic, oc] = [conv.input[0], conv.output[0]];
    let vectors = oc.div_ceil(lanes);
    if !vectors.is_multiple_of(r) {
        return Err(unsupported("output channels do not divide into tiles"));
    }
    let [rows, columns] = [1, 2].map(|axis| conv.output[axis].div_ceil(side));
    let domain = (side + 2) * (side + 2);
    let [padded_ic, padded_oc] = [ic, oc].map(|c| c.next_multiple_of(lanes));
    let per_tile = domain * (padded_ic + padded_oc) * size_of::<f32>();
    let strip = strip(rows * columns, p, per_tile);
    let [x_matrix, y_matrix] = [padded_ic, padded_oc].map(|c| strip * c + SKEW);
    let shares = ctx.share.of_rows(conv.output[1], side);
    let values = context! {
        shared => shares.is_some(), N => conv.n, M => side, A => side + 2, L => lanes, R => r, P => p,
        U => int("unroll")?.clamp(1, ic), IC => ic, ICP => padded_ic, OCP => padded_oc,
        OG => vectors / r, OH => conv.output[1], TILES => rows * columns, COLUMNS => columns,
        OW => conv.output[2], STRIP => strip, VX => x_matrix, MX => y_matrix,
        PT => conv.pad[0], PL => conv.pad[1],
    };
    let places = context! {
        XB => x.block, XR => x.row, XC => x.plane, XN => x.batch,
        YB => y.block, YR => y.row, YC => y.plane, YN => y.batch,
        QB => residual.block, QR => residual.row, QC => residual.plane, QN => residual.batch,
        epilogue => Value::from(Serde(&conv.epilogue)), residual => geometry.residual.is_some(),
    };
    let mut slots = vec![Slot::Input, Slot::Weights, Slot::Output];
    slots.extend(geometry.residual.map(|_| Slot::Residual));
    let room = domain * (x_matrix + y_matrix) * size_of::<f32>();
    slots.push(Slot::Room(room));
    let weights = match side {
        2 => pack(conv, &WEIGHTS_2, r * lanes, padded_oc),
        _ => pack(conv, &WEIGHTS_4, r * lanes, padded_oc),
    };
    let values = minijinja::value::merge_maps([values, places]);
    let kernel = Kernel::render(ctx, "winograd.rs.j2", table, values, slots, &weights)?;
    Ok(kernel.shared(shares))
}

/// Returns how many tiles a strip has: as many as fit, in strips of about one size, and a multiple
/// of the `step` that are multiplied at once.
fn strip(tiles: usize, step: usize, bytes: usize) -> usize {
    let most = (STRIP_BYTES / bytes.max(1)).max(step);
    tiles
        .div_ceil(tiles.div_ceil(most).max(1))
        .next_multiple_of(step)
}

/// Packs biases, then transformed weights `[domain][og][ic][width]`.
fn pack(conv: &Conv, matrix: &[[f64; 3]], width: usize, padded_oc: usize) -> Vec<f32> {
    let (ic, domain) = (conv.input[0], matrix.len() * matrix.len());
    let mut packed = conv.bias.clone();
    packed.resize(padded_oc, 0.0);
    packed.resize(padded_oc + domain * ic * padded_oc, 0.0);
    for (idx, window) in conv.weights.chunks_exact(9).enumerate() {
        let (oc, channel) = (idx / ic, idx % ic);
        for at in 0..domain {
            let (row, column) = (matrix[at / matrix.len()], matrix[at % matrix.len()]);
            let taps = window.iter().enumerate();
            let sum: f64 = taps
                .map(|(tap, &weight)| row[tap / 3] * column[tap % 3] * f64::from(weight))
                .sum();
            let panel = at * (padded_oc / width) + oc / width;
            packed[padded_oc + (panel * ic + channel) * width + oc % width] = sum as f32;
        }
    }
    packed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_are_even_and_fit_unless_one_step_does_not() {
        let bytes = 36 * (96 + 24) * 4;
        assert_eq!(strip(1600, 8, bytes), 32);
        assert!(strip(1600, 8, bytes) * bytes <= STRIP_BYTES + 8 * bytes);
        assert_eq!(strip(33, 8, bytes), 24, "not 32 and 1");
        assert_eq!(strip(5, 8, bytes), 8);
        assert_eq!(strip(100, 8, 1 << 20), 8);
    }
}
