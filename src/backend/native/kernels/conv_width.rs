//! Convolution with vector lanes along the width, over row-major values.
//!
//! One template for dense, grouped and depthwise convolutions: weights are broadcast, so groups of
//! any size use whole vectors, and no neighbour that is row-major needs a conversion.

use minijinja::value::Serde;
use minijinja::{Value, context};
use serde::Serialize;

use super::conv::ConvGeometry;
use super::depthwise::{InputRow, input_rows};
use super::share::Share;
use super::source::{Kernel, KernelCtx, KernelError, Slot, parameter, unsupported};
use crate::backend::native::layout::{Geometry, Layout};
use crate::backend::native::spec::{Conv, literal};
use crate::space::Mapping;

/// One vector of a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Vector {
    /// Index within the tile.
    i: usize,
    /// Its first column, counted from the tile's.
    at: usize,
    /// Lanes that are columns of the row.
    n: usize,
    /// The first lane that no other vector of the row has.
    new_from: usize,
}

/// A tile of `th` rows by some vectors.
#[derive(Debug, Serialize)]
struct Tile {
    name: String,
    th: usize,
    cols: Vec<Vector>,
    rows: Vec<InputRow>,
}

/// Tiles of a row that have the same code.
#[derive(Debug, Serialize)]
struct Run {
    tile: String,
    /// First column of the first, columns from one to the next, and how many.
    first: usize,
    step: usize,
    count: usize,
}

/// Makes the kernel. `oc_vectors` is the number of output channels of a tile, `tile_w` that of
/// vectors along the width.
///
/// # Errors
/// [`KernelError::Unsupported`] if the mapping does not fit the shapes or layouts.
pub fn conv_width(
    ctx: KernelCtx<'_>,
    conv: &Conv,
    mapping: &Mapping,
    geometry: &ConvGeometry,
) -> Result<Kernel, KernelError> {
    let int = |name| parameter(mapping, name, 1);
    let table = ctx.table(Some(int("lanes")? as i64))?;
    let lanes = table.lanes;
    let [oc, oh, ow] = conv.output;
    let (icg, ocg) = (conv.input[0] / conv.groups, oc / conv.groups);
    let r = if ocg == 1 { 1 } else { int("oc_vectors")? };
    let vw = int("tile_w")?.min(ow.div_ceil(lanes));
    let th = int("tile_h")?.min(oh);
    table.expect_room(vw * th * r + r + 1)?;
    if !ocg.is_multiple_of(r) {
        return Err(unsupported("output channels do not divide into tiles"));
    }
    if mapping.word("padding") == Some("edge") && conv.margins() != [0; 4] {
        return Err(unsupported("vectors along the width read zero borders"));
    }
    if conv.scale.is_some() && mapping.word("scale") == Some("input") {
        return Err(unsupported("the input cannot be scaled in place"));
    }
    let order = mapping.word("order").unwrap_or("oc");
    if !matches!(order, "oc" | "row") {
        return Err(unsupported("loops run over channel tiles or rows"));
    }
    let (x, y) = (geometry.x, geometry.y);
    let residual = geometry.residual.unwrap_or(y);
    let (xc, yc, qc) = (channel(x)?, channel(y)?, channel(residual)?);
    let share = match ctx.share {
        // Sums and scaled weights lie in memory that is free between calls.
        Share::Rows if conv.scale.is_some() || conv.pooled.is_some() => Share::Whole,
        share => share,
    };
    let needs_single = th > 1 && (share == Share::Rows || !oh.is_multiple_of(th));
    let (mut tiles, mut heights) = (Vec::new(), Vec::new());
    for height in if needs_single { vec![th, 1] } else { vec![th] } {
        let (made, columns) = cut(conv, height, vw, lanes);
        tiles.extend(made);
        heights.push(context! { th => height, columns => Value::from(Serde(columns)) });
    }
    let taps = conv.kernel[0] * conv.kernel[1];
    let scaled = if conv.scale.is_some() {
        oc * icg * taps
    } else {
        0
    };
    let values = context! {
        N => conv.n, G => conv.groups, OG => ocg / r, OGW => icg * taps * r, R => r, L => lanes,
        IC => icg, OC => oc, OH => oh, U => parameter(mapping, "unroll", 1).unwrap_or(1), th,
        KH => conv.kernel[0], KW => conv.kernel[1], SH => conv.stride[0],
        DH => conv.dilation[0], DW => conv.dilation[1], PT => conv.pad[0], PL => conv.pad[1],
        XE => x.pixel, XS => conv.stride[1] * x.pixel, XR => x.row, XC => xc, XN => x.batch,
        YR => y.row, YC => yc, YN => y.batch,
        QR => residual.row, QC => qc, QN => residual.batch,
        GN => oc.next_multiple_of(32), SN => conv.input[0].next_multiple_of(32), scaled,
    };
    // Depthwise mappings say it in their own words.
    let taps_are = match (mapping.word("taps"), mapping.word("hold")) {
        (Some(taps), _) => taps,
        (None, Some("inputs")) => "kw",
        (None, _) => "all",
    };
    let choices = context! {
        order, taps => taps_are, share => share.word(), rows => share.bounds(Share::Rows, oh),
        channels => share.bounds(Share::Channels, oc / r),
        tiles => Value::from(Serde(tiles)), heights, rest_th => needs_single,
        epilogue => Value::from(Serde(&conv.epilogue)), residual => geometry.residual.is_some(),
        scale => conv.scale.is_some(), gap => conv.pooled.is_some(), store => conv.stored,
        gap_factor => literal(1.0 / (oh * ow) as f32),
    };
    let mut slots = vec![Slot::Input, Slot::Weights, Slot::Output];
    slots.extend(geometry.residual.map(|_| Slot::Residual));
    slots.extend(conv.scale.map(|_| Slot::Scale));
    slots.extend(conv.pooled.map(|_| Slot::Pooled));
    let sums = if conv.pooled.is_some() { oc * lanes } else { 0 };
    if scaled + sums > 0 {
        slots.push(Slot::Scratch(scaled + sums));
    }
    let values = minijinja::value::merge_maps([values, choices]);
    let weights = pack(conv, r);
    let kernel = Kernel::render(ctx, "conv_width.rs.j2", table, values, slots, &weights)?;
    Ok(kernel.shared(share.of(oh, th, oc / r)))
}

/// Returns the elements between channels of a value whose rows are vectors.
fn channel(geometry: Geometry) -> Result<usize, KernelError> {
    match geometry.layout {
        Layout::Nchw => Ok(geometry.plane),
        Layout::Flat => Ok(1),
        Layout::Nhwc | Layout::Blocked(_) => {
            Err(unsupported("vectors along the width need row-major values"))
        }
    }
}

/// Cuts rows of `ow` columns into tiles of at most `vw` vectors: the last vector ends where the
/// row ends, and so overlaps its neighbour if the row is no multiple of the lanes.
fn cut(conv: &Conv, th: usize, vw: usize, lanes: usize) -> (Vec<Tile>, Vec<Run>) {
    let ow = conv.output[2];
    let firsts: Vec<usize> = (0..ow.div_ceil(lanes))
        .map(|i| (i * lanes).min(ow.saturating_sub(lanes)))
        .collect();
    let (mut tiles, mut runs): (Vec<Tile>, Vec<Run>) = (Vec::new(), Vec::new());
    for (idx, firsts) in firsts.chunks(vw).enumerate() {
        let vector = |(i, &first): (usize, &usize)| Vector {
            i,
            at: first - firsts[0],
            n: lanes.min(ow),
            new_from: (idx * vw + i) * lanes - first,
        };
        let cols: Vec<Vector> = firsts.iter().enumerate().map(vector).collect();
        let tile = tiles.iter().position(|tile| tile.cols == cols);
        let tile = tile.unwrap_or_else(|| {
            tiles.push(Tile {
                name: format!("t{th}_{}", tiles.len()),
                th,
                cols,
                rows: input_rows(conv, th),
            });
            tiles.len() - 1
        });
        let name = tiles[tile].name.clone();
        match runs.last_mut() {
            Some(run) if run.tile == name => run.count += 1,
            _ => runs.push(Run {
                tile: name,
                first: firsts[0],
                step: vw * lanes,
                count: 1,
            }),
        }
    }
    (tiles, runs)
}

/// Packs biases, then weights `[group][og][ic][kh][kw][r]`.
fn pack(conv: &Conv, r: usize) -> Vec<f32> {
    let taps = conv.kernel[0] * conv.kernel[1];
    let per_oc = conv.input[0] / conv.groups * taps;
    let mut packed = conv.bias.clone();
    for tile in conv.weights.chunks(r * per_oc) {
        packed.extend((0..per_oc).flat_map(|at| (0..r).map(move |oc| tile[oc * per_oc + at])));
    }
    packed
}
