//! Depthwise convolution of u8 by s8 with vector lanes over channels.

use minijinja::value::Serde;
use minijinja::{Value, context};
use serde::Serialize;

use super::conv::{ConvGeometry, tiles};
use super::depthwise::{Axis, ColumnUse, input_columns, input_rows};
use super::qconv::{FOUR, means, stores};
use super::qresult::{Results, place_of, sums_of_rows};
use super::share::Share;
use super::source::{Kernel, KernelCtx, KernelError, Slot, parameter, tile, unsupported};
use crate::backend::native::isa::VectorTable;
use crate::backend::native::spec::{Conv, Quantized};
use crate::space::Mapping;

/// An input column of a tile and the outputs it feeds.
#[derive(Serialize)]
struct Column {
    ix: usize,
    /// The bytes that are read, as bits.
    mask: u64,
    uses: Vec<ColumnUse>,
}

/// Makes the kernel.
///
/// # Errors
/// [`KernelError::Unsupported`] if the mapping does not fit the shapes or layouts.
pub fn qdepthwise(
    ctx: KernelCtx<'_>,
    conv: &Conv,
    mapping: &Mapping,
    geometry: &ConvGeometry,
) -> Result<Kernel, KernelError> {
    let Some(quantized) = &conv.quantized else {
        return Err(unsupported("the convolution is not one of integers"));
    };
    let int = |name| parameter(mapping, name, 0);
    let table = ctx.table(Some(int("lanes")? as i64))?;
    let lanes = table.lanes;
    let (x, y) = (geometry.x, geometry.y);
    let [th, tw] = tile(mapping, conv)?;
    table.expect_room(tw * th + 3)?;
    let layouts = [Some(x), conv.stored.then_some(y), geometry.residual];
    if layouts.iter().flatten().any(|g| !g.holds_vectors(lanes)) {
        return Err(unsupported("a layout does not hold vectors"));
    }
    if conv.scale.is_some() {
        return Err(unsupported("kernels of integers take no input factors"));
    }
    // Pixels that lie next to each other, as taps do, are permuted at once.
    let permutes = table.integers.permutes && x.block == lanes && conv.dilation[1] == 1;
    let axis = Axis::of(conv);
    let axis = if permutes {
        Axis {
            kernel: axis.kernel.div_ceil(FOUR),
            dilation: FOUR,
            ..axis
        }
    } else {
        axis
    };
    let share = ctx.share;
    let (tiles, heights, needs_single) = tiles(conv, th, tw, false, share)?;
    let variants = tiles.iter().map(|tile| {
        let (cols, _) = input_columns(axis, tile);
        let cols = cols.into_iter().map(|col| Column {
            ix: col.ix,
            mask: mask(conv, &col.uses),
            uses: col.uses,
        });
        let rows = input_rows(conv, tile.pixels.len() / tile.tw);
        context! {
            name => tile.name.clone(), pixels => Value::from(Serde(&tile.pixels)),
            rows => Value::from(Serde(rows)), cols => Value::from(Serde(cols.collect::<Vec<_>>())),
            stores => Value::from(Serde(stores(&tile.pixels, 1, lanes, &y, quantized.y.is_some()))),
        }
    });
    let heights = heights.into_iter().zip([th, 1]).map(|(height, th)| {
        let used: Vec<usize> = input_rows(conv, th).iter().map(|row| row.iy).collect();
        context! { used, ..height }
    });
    let sums = sums_of_rows(&quantized.weights, conv.kernel[0] * conv.kernel[1]);
    let results = Results::new(quantized, &conv.bias, &conv.epilogue, &sums)?;
    let vectors = conv.output[0].div_ceil(lanes);
    let residual = geometry.residual.unwrap_or(y);
    let values = context! {
        N => conv.n, V => vectors, L => lanes, CP => vectors * lanes, th,
        OH => conv.output[1], KH => conv.kernel[0], KW => axis.kernel, SH => conv.stride[0], SW => conv.stride[1],
        PT => conv.pad[0], PL => conv.pad[1],
        XB => x.block, XR => x.row, XC => x.plane, XN => x.batch,
        YB => y.block, YR => y.row, YC => y.plane, YN => y.batch,
        QB => residual.block, QR => residual.row, QC => residual.plane, QN => residual.batch,
        GN => conv.output[0].next_multiple_of(32),
    };
    let choices = context! {
        permutes, order => mapping.word("order").unwrap_or("oc"),
        share => share.word(), rows => share.bounds(Share::Rows, conv.output[1]),
        channels => share.bounds(Share::Channels, vectors),
        variants => variants.collect::<Vec<_>>(), heights => heights.collect::<Vec<_>>(),
        rest_th => needs_single, results => results.facts.clone(),
        residual => geometry.residual.is_some(), store => conv.stored,
    };
    let mut slots = vec![Slot::Input, Slot::Weights, Slot::Output];
    slots.extend(geometry.residual.map(|_| Slot::Residual));
    slots.extend(conv.pooled.map(|_| Slot::Pooled));
    let mut packed = results.pack(vectors * lanes, |channel| channel);
    if permutes {
        pack_fours(conv, quantized, table, &mut packed);
    } else {
        pack_taps(conv, quantized, lanes, &mut packed);
    }
    let values = minijinja::value::merge_maps([values, choices, means(conv, quantized)]);
    let kernel = Kernel::render_integers(ctx, "qdepthwise.rs.j2", table, values, slots, packed)?;
    Ok(kernel.shared(share.of_conv(conv, th, vectors)))
}

/// Returns the bytes of a column that its uses read, as bits: no more than the taps there are, as
/// the last ones may lie at the end of all memory.
fn mask(conv: &Conv, uses: &[ColumnUse]) -> u64 {
    let taps = uses
        .iter()
        .map(|u| conv.kernel[1].saturating_sub(u.kw * FOUR));
    match taps.max().unwrap_or(0).min(FOUR) {
        FOUR => u64::MAX,
        taps => (1 << (taps * 16)) - 1,
    }
}

/// Appends weights `[vector][kh][four][lanes][4]`.
fn pack_fours(conv: &Conv, quantized: &Quantized, table: VectorTable, packed: &mut Vec<u8>) {
    let (lanes, [kh, kw]) = (table.lanes, conv.kernel);
    let fours = kw.div_ceil(FOUR);
    let base = packed.len();
    packed.resize(
        base + conv.output[0].div_ceil(lanes) * kh * fours * lanes * FOUR,
        0,
    );
    for (idx, weight) in quantized.weights.iter().enumerate() {
        let (channel, row, tap) = (idx / (kh * kw), idx / kw % kh, idx % kw);
        let vector = (channel / lanes * kh + row) * fours + tap / FOUR;
        let place = place_of(table.integers.halves, lanes, channel % lanes, tap % FOUR);
        packed[base + vector * lanes * FOUR + place] = *weight as u8;
    }
}

/// Appends weights `[vector][kh·kw][lanes]` as i32.
fn pack_taps(conv: &Conv, quantized: &Quantized, lanes: usize, packed: &mut Vec<u8>) {
    let taps = conv.kernel[0] * conv.kernel[1];
    let base = packed.len();
    packed.resize(base + conv.output[0].div_ceil(lanes) * taps * lanes * 4, 0);
    for (idx, weight) in quantized.weights.iter().enumerate() {
        let (channel, tap) = (idx / taps, idx % taps);
        let at = base + ((channel / lanes * taps + tap) * lanes + channel % lanes) * 4;
        packed[at..at + 4].copy_from_slice(&i32::from(*weight).to_le_bytes());
    }
}
