//! The mapping of convolutions that are in the Winograd domain untuned.

use super::isa;
use super::kernels::has_winograd;
use super::space::{best_tile, default_layout};
use super::spec::Conv;
use crate::device::Isa;
use crate::space::Mapping;

/// Fewest channels on either side. With 16 and 16, 4×4 tiles took 0.45 of the time of direct
/// convolution, with more of them 0.3 to 0.45 (Zen 4, AVX-512, one thread).
const MIN_CHANNELS: usize = 16;
/// Fewest tiles: each reads all transformed weights, 4 times as many as there were. With 25 tiles
/// (20×20, 96 to 24 channels) the time was 0.4, with 16 and 256 channels on either side 0.6, where
/// 2×2 tiles took 0.53.
const MIN_TILES: usize = 24;
/// Outputs of all tiles, in sixteenths of the outputs that there are, that are not too many.
const MAX_BEYOND: usize = 22;

/// Returns the mapping of a convolution that is plainly faster in the Winograd domain.
pub(super) fn default_winograd(isa: Isa, conv: &Conv) -> Option<Mapping> {
    let [oc, oh, ow] = conv.output;
    if !has_winograd(conv) || conv.input[0].min(oc) < MIN_CHANNELS {
        return None;
    }
    let tiles = |side: usize| oh.div_ceil(side) * ow.div_ceil(side);
    let side = [4, 2].into_iter().find(|&side| {
        let outputs = tiles(side) * side * side;
        tiles(side) >= MIN_TILES && outputs * 16 <= oh * ow * MAX_BEYOND
    })?;
    let tables = isa::tables(isa).iter().copied();
    let table = isa::least_waste(tables, oc).unwrap_or(isa::widest(isa));
    let (r, p, _) = best_tile(table, oc.div_ceil(table.lanes), [1, tiles(side)], 1);
    let unroll = if conv.input[0].is_multiple_of(4) {
        4i64
    } else {
        1
    };
    Some(
        Mapping::default()
            .with("vector", "channels")
            .with("layout_in", default_layout(isa, false))
            .with("layout_out", default_layout(isa, false))
            .with("lanes", table.lanes as i64)
            .with("oc_vectors", r as i64)
            .with("tile_w", p.min(ow) as i64)
            .with("tile_h", 1i64)
            .with("ic_block", 0i64)
            .with("unroll", unroll)
            .with("order", "oc")
            .with("taps", if side == 4 { "winograd4" } else { "winograd2" })
            .with("padding", "border")
            .with("scale", "weights"),
    )
}
