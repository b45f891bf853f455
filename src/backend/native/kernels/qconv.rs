//! Convolution of u8 by s8 with vector lanes over output channels.

use minijinja::value::Serde;
use minijinja::{Value, context};
use serde::Serialize;

use super::conv::{Blocking, ConvGeometry, block_stride, tiles};
use super::qresult::{Results, place_of, sums_of_rows};
use super::share::Share;
use super::source::{Kernel, KernelCtx, KernelError, Slot, parameter, tile, unsupported};
use super::tiling::Pixel;
use crate::backend::native::isa::VectorTable;
use crate::backend::native::layout::Geometry;
use crate::backend::native::spec::{Conv, Quantized, literal};
use crate::space::Mapping;

/// Bytes that are multiplied and summed up at once.
pub const FOUR: usize = 4;

/// A vector of results in a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Element {
    /// Its pixel.
    #[serde(flatten)]
    pixel: Pixel,
    /// Which vector of output channels.
    r: usize,
}

/// Makes the kernel.
///
/// # Errors
/// [`KernelError::Unsupported`] if the mapping does not fit the shapes or layouts.
pub fn qconv(
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
    let r = int("oc_vectors")?.max(1);
    let [th, tw] = tile(mapping, conv)?;
    table.expect_room(registers(table, tw * th, r))?;
    if conv.scale.is_some() {
        return Err(unsupported("kernels of integers take no input factors"));
    }
    let blocking = Blocking::new(conv, 0, x, lanes, FOUR)?;
    if !x.block.is_multiple_of(FOUR) || (blocking.groups > 1 && !blocking.ic.is_multiple_of(FOUR)) {
        return Err(unsupported("input channels do not lie in groups of four"));
    }
    let layouts = [conv.stored.then_some(y), geometry.residual];
    if layouts.iter().flatten().any(|g| !g.holds_vectors(lanes)) {
        return Err(unsupported("a layout does not hold vectors"));
    }
    let vectors = blocking.oc.div_ceil(lanes);
    if !vectors.is_multiple_of(r) || (blocking.groups > 1 && !blocking.oc.is_multiple_of(lanes)) {
        return Err(unsupported("output channels do not divide into tiles"));
    }
    let share = ctx.share;
    let (tiles, heights, needs_single) = tiles(conv, th, tw, false, share)?;
    let variants = tiles.iter().map(|tile| {
        let stores = stores(&tile.pixels, r, lanes, &y, quantized.y.is_some());
        context! {
            name => tile.name.clone(), pixels => Value::from(Serde(&tile.pixels)),
            stores => Value::from(Serde(stores)),
        }
    });
    let per_channel = conv.input[0] / conv.groups * conv.kernel[0] * conv.kernel[1];
    let sums = sums_of_rows(&quantized.weights, per_channel);
    let results = Results::new(quantized, &conv.bias, &conv.epilogue, &sums)?;
    let fours =
        blocking.ic / blocking.ch * blocking.ch.div_ceil(FOUR) + blocking.rest.div_ceil(FOUR);
    let per_og = fours * conv.kernel[0] * conv.kernel[1] * r * lanes * FOUR;
    let padded = blocking.groups * vectors * lanes;
    let residual = geometry.residual.unwrap_or(y);
    let values = context! {
        N => conv.n, G => blocking.groups, ICG => blocking.ic,
        OG => vectors / r, OV => blocking.groups * vectors, OCP => padded, OGW => per_og,
        R => r, L => lanes, th, U => int("unroll")?.max(1),
        CH => blocking.ch.div_ceil(FOUR), CT => blocking.rest.div_ceil(FOUR),
        blocks => blocking.ic / blocking.ch, BS => block_stride(x, blocking.ch),
        OH => conv.output[1], KH => conv.kernel[0], KW => conv.kernel[1], SH => conv.stride[0], SW => conv.stride[1],
        DH => conv.dilation[0], DW => conv.dilation[1], PT => conv.pad[0], PL => conv.pad[1],
    };
    let places = context! {
        XB => x.block, XR => x.row, XC => x.plane, XN => x.batch,
        YB => y.block, YP => y.pixel, YR => y.row, YC => y.plane, YN => y.batch,
        QB => residual.block, QR => residual.row, QC => residual.plane, QN => residual.batch,
        GN => conv.output[0].next_multiple_of(32),
    };
    let choices = context! {
        order => mapping.word("order").unwrap_or("oc"),
        taps => mapping.word("taps").unwrap_or("loop"),
        share => share.word(), rows => share.bounds(Share::Rows, conv.output[1]),
        variants => variants.collect::<Vec<_>>(), heights, rest_th => needs_single,
        results => results.facts.clone(), residual => geometry.residual.is_some(),
        store => conv.stored, sums => quantized.sums,
    };
    let mut slots = vec![Slot::Input, Slot::Weights, Slot::Output];
    slots.extend(geometry.residual.map(|_| Slot::Residual));
    slots.extend(conv.pooled.map(|_| Slot::Pooled));
    slots.extend(quantized.sums.then_some(Slot::Source(1)));
    let mut packed = results.pack(padded, |channel| {
        channel / blocking.oc * vectors * lanes + channel % blocking.oc
    });
    pack(conv, quantized, &blocking, r, table, &mut packed);
    let values = minijinja::value::merge_maps([values, places, choices, means(conv, quantized)]);
    let kernel = Kernel::render_integers(ctx, "qconv.rs.j2", table, values, slots, packed)?;
    Ok(kernel.shared(share.of_conv(conv, th, blocking.groups * (vectors / r))))
}

/// Returns what templates know of the means over height and width.
pub(super) fn means(conv: &Conv, quantized: &Quantized) -> Value {
    let [_, oh, ow] = conv.output;
    let (scale, zero_point) = quantized.y.map_or((1.0, 0), |y| (y.scale, y.zero_point));
    context! {
        gap => conv.pooled.is_some(), gap_factor => literal(scale / (oh * ow) as f32),
        gap_shift => literal(-scale * zero_point as f32),
    }
}

/// Returns the registers that a tile takes. Weights that are used once stay in memory.
pub(super) fn registers(table: VectorTable, pixels: usize, r: usize) -> usize {
    let weights = if pixels == 1 { 1 } else { r };
    pixels * r + (weights + 1) * table.integers.registers()
}

/// Returns the vectors of a tile in the order of their stores: four together where they lie one
/// after the other, as four vectors of i32 make one of u8.
pub(super) fn stores(
    pixels: &[Pixel],
    r: usize,
    lanes: usize,
    y: &Geometry,
    rounds: bool,
) -> Vec<Vec<Element>> {
    // Vectors of one pixel lie at fixed distances if tiles start at blocks or blocks at tiles.
    let width = r * lanes;
    let is_fixed = y.block.is_multiple_of(width) || width.is_multiple_of(y.block);
    let place = |e: &Element| {
        let channel = e.r * lanes;
        let own = if is_fixed {
            channel / y.block * y.plane + channel % y.block
        } else {
            0
        };
        let apart = if is_fixed { 0 } else { e.r };
        (apart, e.pixel.y * y.row + e.pixel.xx * y.pixel + own)
    };
    let elements = pixels
        .iter()
        .flat_map(|&pixel| (0..r).map(move |r| Element { pixel, r }));
    let mut elements: Vec<Element> = elements.collect();
    elements.sort_by_key(place);
    let mut stores = Vec::new();
    let mut rest = elements.as_slice();
    while let Some(first) = rest.first() {
        let (apart, start) = place(first);
        let run = rest.iter().enumerate().take(4);
        let run = run.take_while(|(idx, e)| place(e) == (apart, start + idx * lanes));
        let n = if rounds && run.count() == 4 { 4 } else { 1 };
        stores.push(rest[..n].to_vec());
        rest = &rest[n..];
    }
    stores
}

/// Appends weights `[group][og][block][kh][kw][four][r][4·lanes]`.
fn pack(
    conv: &Conv,
    quantized: &Quantized,
    blocking: &Blocking,
    r: usize,
    table: VectorTable,
    packed: &mut Vec<u8>,
) {
    let lanes = table.lanes;
    let taps = conv.kernel[0] * conv.kernel[1];
    let (group_ic, group_oc) = (conv.input[0] / conv.groups, conv.output[0] / conv.groups);
    let weight = |group: usize, oc: usize, ic: usize, tap: usize| {
        if oc >= blocking.oc || ic >= blocking.ic {
            return 0;
        }
        let (oc, ic) = (group * blocking.oc + oc, group * blocking.ic + ic);
        if oc / group_oc != ic / group_ic {
            return 0;
        }
        quantized.weights[(oc * group_ic + ic % group_ic) * taps + tap]
    };
    for group in 0..blocking.groups {
        for og in 0..blocking.oc.div_ceil(r * lanes) {
            for first in (0..blocking.ic).step_by(blocking.ch) {
                let end = blocking.ic.min(first + blocking.ch);
                for tap in 0..taps {
                    for four in (first..end).step_by(FOUR) {
                        for vector in 0..r {
                            let at = packed.len();
                            packed.resize(at + lanes * FOUR, 0);
                            for (lane, i) in
                                (0..lanes).flat_map(|lane| (0..FOUR).map(move |i| (lane, i)))
                            {
                                let oc = (og * r + vector) * lanes + lane;
                                let place = place_of(table.integers.halves, lanes, lane, i);
                                packed[at + place] = weight(group, oc, four + i, tap) as u8;
                            }
                        }
                    }
                }
            }
        }
    }
}
