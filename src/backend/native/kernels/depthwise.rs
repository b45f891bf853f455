//! Depthwise convolution with vector lanes over channels.

use minijinja::value::Serde;
use minijinja::{Value, context};
use serde::Serialize;

use super::conv::ConvGeometry;
use super::share::Share;
use super::source::{Kernel, KernelCtx, KernelError, Slot, parameter, tile, unsupported};
use super::tiling::{self, Row, Variant};
use crate::backend::native::spec::{Conv, literal};
use crate::space::Mapping;

/// An input row of a tile and the outputs it feeds.
#[derive(Debug, Serialize)]
pub(super) struct InputRow {
    pub(super) iy: usize,
    uses: Vec<RowUse>,
}

#[derive(Debug, Serialize, Clone, Copy)]
struct RowUse {
    y: usize,
    kh: usize,
}

/// An input column of a tile and the outputs it feeds.
#[derive(Serialize)]
pub(super) struct InputColumn {
    pub(super) ix: usize,
    pub(super) uses: Vec<ColumnUse>,
}

/// A kernel column and the outputs it feeds.
#[derive(Serialize)]
pub(super) struct Tap {
    kw: usize,
    uses: Vec<ColumnUse>,
}

#[derive(Serialize, Clone, Copy)]
pub(super) struct ColumnUse {
    p: usize,
    pub(super) kw: usize,
    ix: usize,
}

/// How outputs along a row read columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    pub(super) stride: usize,
    pub(super) dilation: usize,
    pub(super) kernel: usize,
}

impl Axis {
    pub(super) fn of(conv: &Conv) -> Self {
        Self {
            stride: conv.stride[1],
            dilation: conv.dilation[1],
            kernel: conv.kernel[1],
        }
    }
}

/// Makes the kernel.
///
/// # Errors
/// [`KernelError::Unsupported`] if the mapping does not fit the shapes or layouts.
pub fn depthwise(
    ctx: KernelCtx<'_>,
    conv: &Conv,
    mapping: &Mapping,
    geometry: &ConvGeometry,
) -> Result<Kernel, KernelError> {
    let int = |name| parameter(mapping, name, 0);
    let table = ctx.table(Some(int("lanes")? as i64))?;
    let (x, y) = (geometry.x, geometry.y);
    let lanes = table.lanes;
    let [th, tw] = tile(mapping, conv)?;
    table.expect_room(tw * th + 2)?;
    let layouts = [Some(x), conv.stored.then_some(y), geometry.residual];
    if layouts
        .iter()
        .flatten()
        .any(|geometry| !geometry.holds_vectors(lanes))
    {
        return Err(unsupported("a layout does not hold vectors"));
    }
    if conv.scale.is_some() {
        return Err(unsupported("depthwise kernels take no input factors"));
    }
    let edge = mapping.word("padding") == Some("edge") && conv.margins() != [0; 4];
    let row = Row {
        ow: conv.output[2],
        iw: conv.input[2],
        kw: conv.kernel[1],
        stride: conv.stride[1],
        dilation: conv.dilation[1],
        pad: conv.pad[1],
        skip: edge,
    };
    let share = ctx.share;
    let needs_single = th > 1 && (share == Share::Rows || !conv.output[1].is_multiple_of(th));
    let mut variants = Vec::new();
    let mut heights = Vec::new();
    for height in if needs_single { vec![th, 1] } else { vec![th] } {
        let rows = input_rows(conv, height);
        let (tiles, columns) = tiling::cut(row, height, tw);
        let used: Vec<usize> = rows.iter().map(|row| row.iy).collect();
        for tile in tiles {
            let (cols, taps) = input_columns(Axis::of(conv), &tile);
            variants.push(context! {
                name => tile.name, pixels => Value::from(Serde(&tile.pixels)),
                rows => Value::from(Serde(&rows)), cols => Value::from(Serde(&cols)),
                taps => Value::from(Serde(&taps)),
            });
        }
        let n_rows = used.last().map_or(0, |iy| iy + 1);
        heights.push(context! {
            th => height, columns => Value::from(Serde(columns)), n_rows,
            used => Value::from(Serde(used))
        });
    }
    if variants.len() > 10 {
        return Err(unsupported("too many tiles differ at the edges"));
    }
    let vectors = conv.output[0].div_ceil(lanes);
    let residual = geometry.residual.unwrap_or(y);
    let values = context! {
        N => conv.n, V => vectors, L => lanes, th,
        IH => conv.input[1], OH => conv.output[1],
        KH => conv.kernel[0], KW => conv.kernel[1], SH => conv.stride[0], SW => conv.stride[1],
        PT => conv.pad[0], PL => conv.pad[1],
        XB => x.block, XR => x.row, XC => x.plane, XN => x.batch,
        YB => y.block, YR => y.row, YC => y.plane, YN => y.batch,
        QB => residual.block, QR => residual.row, QC => residual.plane, QN => residual.batch,
        GN => conv.output[0].next_multiple_of(32),
    };
    let choices = context! {
        edge, share => share.word(), rows => share.bounds(Share::Rows, conv.output[1]),
        channels => share.bounds(Share::Channels, vectors), variants, heights, rest_th => needs_single,
        order => mapping.word("order").unwrap_or("oc"),
        hold => mapping.word("hold").unwrap_or("weights"),
        epilogue => Value::from(Serde(&conv.epilogue)), residual => geometry.residual.is_some(),
        gap => conv.pooled.is_some(), store => conv.stored,
        gap_factor => literal(1.0 / (conv.output[1] * conv.output[2]) as f32),
    };
    let mut slots = vec![Slot::Input, Slot::Weights, Slot::Output];
    slots.extend(geometry.residual.map(|_| Slot::Residual));
    slots.extend(conv.pooled.map(|_| Slot::Pooled));
    if edge {
        slots.push(Slot::Zeros(x.row + 2 * x.block * (conv.pad[1] + 1)));
    }
    let weights = pack(conv, vectors, lanes);
    let values = minijinja::value::merge_maps([values, choices]);
    let kernel = Kernel::render(ctx, "depthwise.rs.j2", table, values, slots, &weights)?;
    Ok(kernel.shared(share.of_conv(conv, th, vectors)))
}

/// Returns the input rows that `th` output rows read.
pub(super) fn input_rows(conv: &Conv, th: usize) -> Vec<InputRow> {
    let (stride, dilation, kernel) = (conv.stride[0], conv.dilation[0], conv.kernel[0]);
    let n_rows = (th - 1) * stride + (kernel - 1) * dilation + 1;
    (0..n_rows)
        .map(|iy| {
            let uses = (0..th)
                .flat_map(|y| (0..kernel).map(move |kh| RowUse { y, kh }))
                .filter(|u| u.y * stride + u.kh * dilation == iy)
                .collect::<Vec<_>>();
            InputRow { iy, uses }
        })
        .filter(|row| !row.uses.is_empty())
        .collect()
}

/// Returns the input columns of a tile, and the columns of the kernel.
pub(super) fn input_columns(axis: Axis, tile: &Variant) -> (Vec<InputColumn>, Vec<Tap>) {
    let Axis {
        stride,
        dilation,
        kernel,
    } = axis;
    let skipped = |kw: usize, p: usize| !tile.mask.is_empty() && tile.mask[kw][p];
    let uses: Vec<ColumnUse> = (0..kernel)
        .flat_map(|kw| {
            (0..tile.tw).map(move |p| ColumnUse {
                p,
                kw,
                ix: p * stride + kw * dilation,
            })
        })
        .filter(|u| !skipped(u.kw, u.p))
        .collect();
    let n_columns = (tile.tw - 1) * stride + (kernel - 1) * dilation + 1;
    let columns = (0..n_columns)
        .map(|ix| InputColumn {
            ix,
            uses: uses.iter().copied().filter(|u| u.ix == ix).collect(),
        })
        .filter(|column| !column.uses.is_empty())
        .collect();
    let taps = (0..kernel)
        .map(|kw| Tap {
            kw,
            uses: uses.iter().copied().filter(|u| u.kw == kw).collect(),
        })
        .filter(|tap| !tap.uses.is_empty())
        .collect();
    (columns, taps)
}

/// Packs `[vector][bias, kh·kw][lanes]`.
fn pack(conv: &Conv, vectors: usize, lanes: usize) -> Vec<f32> {
    let taps = conv.kernel[0] * conv.kernel[1];
    let mut packed = vec![0.0; vectors * (taps + 1) * lanes];
    for channel in 0..conv.output[0] {
        let base = channel / lanes * (taps + 1) * lanes + channel % lanes;
        packed[base] = conv.bias[channel];
        for tap in 0..taps {
            packed[base + (tap + 1) * lanes] = conv.weights[channel * taps + tap];
        }
    }
    packed
}
