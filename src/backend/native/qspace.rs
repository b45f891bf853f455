//! The mappings that convolutions of integers have untuned.

use super::isa::{self, VectorTable};
use super::kernels::FOUR;
use super::space::{best_tile, default_layout, merged_channels};
use super::spec::Conv;
use crate::device::Isa;
use crate::space::Mapping;

/// Returns the mapping of a convolution that mixes channels.
pub(super) fn default_qconv(isa: Isa, conv: &Conv) -> Mapping {
    let table = isa::widest(isa);
    let [ic, oc] = merged_channels(conv, table.lanes, FOUR);
    let [_, oh, ow] = conv.output;
    let vectors = oc.div_ceil(table.lanes);
    let (r, tw, th) = best_tile(table, vectors, [oh, ow], table.integers.registers());
    let flat_in = conv.input[1] * conv.input[2] == 1;
    let starts_fit = conv.groups == 1 || ic.is_multiple_of(32) || ic == conv.input[0];
    let layout_in = if !flat_in && (ic < 8 || !starts_fit) {
        "nhwc"
    } else {
        default_layout(isa, flat_in)
    };
    Mapping::default()
        .with("layout_in", layout_in)
        .with("layout_out", default_layout(isa, oh * ow == 1))
        .with("lanes", table.lanes as i64)
        .with("oc_vectors", r as i64)
        .with("tile_w", tw as i64)
        .with("tile_h", th as i64)
        .with("unroll", if ic >= 2 * FOUR { 2i64 } else { 1i64 })
        .with("order", "oc")
        .with("taps", if ic < 8 { "kw" } else { "loop" })
}

/// Returns the mapping of a depthwise convolution: rows share the pixels that they read.
pub(super) fn default_qdepthwise(isa: Isa, conv: &Conv) -> Mapping {
    let table = isa::widest(isa);
    let [_, oh, ow] = conv.output;
    let (tw, th) = depthwise_tile(table, [oh, ow]);
    Mapping::default()
        .with("layout_in", default_layout(isa, false))
        .with("layout_out", default_layout(isa, oh * ow == 1))
        .with("lanes", table.lanes as i64)
        .with("tile_w", tw as i64)
        .with("tile_h", th as i64)
        .with("order", "oc")
}

fn depthwise_tile(table: VectorTable, [oh, ow]: [usize; 2]) -> (usize, usize) {
    let room = table.registers.saturating_sub(4).max(1);
    let tiles = (1..=oh.min(4)).flat_map(|th| (1..=ow.min(14)).map(move |tw| (tw, th)));
    let used = |size: usize, tile: usize| size as f64 / (tile * size.div_ceil(tile)) as f64;
    let score = |&(tw, th): &(usize, usize)| {
        let busy = ((tw * th) as f64 / 8.0).min(1.0);
        // Rows of a tile share inputs; four columns are stored at once.
        let shared = 1.0 + 0.1 * (th - 1) as f64;
        let packed = if tw.is_multiple_of(4) { 1.05 } else { 1.0 };
        used(ow, tw) * used(oh, th) * busy * shared * packed
    };
    let fitting = tiles.filter(|(tw, th)| tw * th <= room);
    let best = fitting.max_by(|a, b| score(a).total_cmp(&score(b)));
    best.unwrap_or((1, 1))
}
