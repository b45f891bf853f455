//! Convolution with vector lanes over output channels.

use minijinja::value::Serde;
use minijinja::{Value, context};

use super::share::Share;
use super::source::{Kernel, KernelCtx, KernelError, Slot, parameter, tile, unsupported};
use super::tiling::{self, Row, Variant};
use super::winograd::columns_beyond;
use crate::backend::native::layout::{Border, Geometry, Layout};
use crate::backend::native::spec::{Conv, literal};
use crate::space::Mapping;

/// Where the values of a convolution lie.
#[derive(Debug, Clone, Copy)]
pub struct ConvGeometry {
    /// Input.
    pub x: Geometry,
    /// Output.
    pub y: Geometry,
    /// Residual, if any.
    pub residual: Option<Geometry>,
    /// Whether nobody else reads the input, so that it may be scaled in place.
    pub x_is_exclusive: bool,
}

/// Returns the zeros that the kernel reads around its input: none if it leaves outside taps out.
pub fn conv_margins(conv: &Conv, mapping: &Mapping) -> Border {
    if mapping.word("padding") == Some("edge") {
        return Border::default();
    }
    let [top, left, bottom, right] = conv.margins();
    Border {
        top,
        left,
        bottom,
        right: right + columns_beyond(conv, mapping),
        fill: 0,
    }
}

/// How the channels of a convolution are blocked.
pub(super) struct Blocking {
    /// Groups after merging, and channels of each.
    pub(super) groups: usize,
    pub(super) ic: usize,
    pub(super) oc: usize,
    /// Input channels of a block, blocks of a split, splits, and channels left over.
    pub(super) ch: usize,
    blocks: usize,
    splits: usize,
    pub(super) rest: usize,
}

/// Makes the kernel.
///
/// # Errors
/// [`KernelError::Unsupported`] if the mapping does not fit the shapes or layouts.
pub fn conv(
    ctx: KernelCtx<'_>,
    conv: &Conv,
    mapping: &Mapping,
    geometry: &ConvGeometry,
) -> Result<Kernel, KernelError> {
    let int = |name| parameter(mapping, name, 0);
    let table = ctx.table(Some(int("lanes")? as i64))?;
    let (x, y) = (geometry.x, geometry.y);
    let lanes = table.lanes;
    let r = int("oc_vectors")?.max(1);
    let [th, tw] = tile(mapping, conv)?;
    table.expect_room(tw * th * r + r + 1)?;
    if conv.stored && !y.holds_vectors(lanes) {
        return Err(unsupported("the output layout does not hold vectors"));
    }
    if geometry
        .residual
        .is_some_and(|residual| !residual.holds_vectors(lanes))
    {
        return Err(unsupported("the residual's layout does not hold vectors"));
    }
    let blocking = Blocking::new(conv, int("ic_block")?, x, lanes, 1)?;
    let vectors = blocking.oc.div_ceil(lanes);
    if !vectors.is_multiple_of(r) || (blocking.groups > 1 && !blocking.oc.is_multiple_of(lanes)) {
        return Err(unsupported("output channels do not divide into tiles"));
    }
    if blocking.splits > 1 && !conv.stored {
        return Err(unsupported(
            "input channels cannot be split without a stored output",
        ));
    }
    let edge = mapping.word("padding") == Some("edge") && conv.margins() != [0; 4];
    let scale = match (conv.scale.is_some(), mapping.word("scale")) {
        (false, _) => "",
        (true, Some("input")) if geometry.x_is_exclusive && x.holds_vectors(lanes) => "input",
        (true, Some("input")) => return Err(unsupported("the input cannot be scaled in place")),
        (true, _) => "weights",
    };
    let order = mapping.word("order").unwrap_or("oc");
    let rows_apart = conv.kernel[0] == 1 && conv.output[1] == conv.input[1];
    let share = match (ctx.share, scale) {
        // Each call would scale all weights anew, in the same memory; and rows of the input are
        // scaled by the one call that reads them, channels by all.
        (Share::Rows, "weights") | (Share::Channels, "input") => Share::Whole,
        (Share::Rows, "input") if !rows_apart => Share::Whole,
        (share, _) => share,
    };
    let (variants, heights, needs_single) = tiles(conv, th, tw, edge, share)?;
    let oc_groups = vectors / r;
    let per_og = blocking.ic * conv.kernel[0] * conv.kernel[1] * r * lanes;
    let padded_oc = blocking.groups * vectors * lanes;
    let residual = geometry.residual.unwrap_or(y);
    let element = if x.block == 1 { x.plane } else { 1 };
    let values = context! {
        N => conv.n, G => blocking.groups, ICG => blocking.ic, IC => blocking.ic,
        OG => oc_groups, OV => blocking.groups * vectors, OCP => padded_oc, OGW => per_og,
        R => r, L => lanes, th, U => int("unroll")?.max(1),
        CH => blocking.ch, CT => blocking.rest, blocks => blocking.blocks,
        splits => blocking.splits, BS => block_stride(x, blocking.ch),
        SPW => blocking.blocks * conv.kernel[0] * conv.kernel[1] * blocking.ch * r * lanes,
        ES => element,
        IH => conv.input[1], IW => conv.input[2], OH => conv.output[1],
        KH => conv.kernel[0], KW => conv.kernel[1], SH => conv.stride[0], SW => conv.stride[1],
        DH => conv.dilation[0], DW => conv.dilation[1], PT => conv.pad[0], PL => conv.pad[1],
    };
    let places = context! {
        XB => x.block, XR => x.row, XC => x.plane, XN => x.batch,
        XCB => conv.input[0].div_ceil(x.block), XV => conv.input[0].min(x.block).div_ceil(lanes),
        YB => y.block, YP => y.pixel, YR => y.row, YC => y.plane, YN => y.batch,
        QB => residual.block, QR => residual.row, QC => residual.plane, QN => residual.batch,
        GN => conv.output[0].next_multiple_of(32), SN => conv.input[0].next_multiple_of(32),
    };
    let choices = context! {
        edge, order, scale, share => share.word(),
        rows => share.bounds(Share::Rows, conv.output[1]),
        channels => share.bounds(Share::Channels, blocking.groups * oc_groups),
        variants => Value::from(Serde(variants)), heights, rest_th => needs_single,
        taps => mapping.word("taps").unwrap_or("loop"),
        epilogue => Value::from(Serde(&conv.epilogue)), residual => geometry.residual.is_some(),
        gap => conv.pooled.is_some(), store => conv.stored,
        gap_factor => literal(1.0 / (conv.output[1] * conv.output[2]) as f32),
    };
    let mut slots = vec![Slot::Input, Slot::Weights, Slot::Output];
    slots.extend(geometry.residual.map(|_| Slot::Residual));
    slots.extend(conv.scale.map(|_| Slot::Scale));
    slots.extend(conv.pooled.map(|_| Slot::Pooled));
    if scale == "weights" {
        slots.push(Slot::Scratch(oc_groups * per_og));
    }
    let weights = pack(conv, &blocking, r, lanes, vectors);
    let values = minijinja::value::merge_maps([values, places, choices]);
    let kernel = Kernel::render(ctx, "conv.rs.j2", table, values, slots, &weights)?;
    Ok(kernel.shared(share.of_conv(conv, th, blocking.groups * oc_groups)))
}

/// Cuts the rows for tiles of `th` rows, and of one where those do not fit.
pub(super) fn tiles(
    conv: &Conv,
    th: usize,
    tw: usize,
    edge: bool,
    share: Share,
) -> Result<(Vec<Variant>, Vec<Value>, bool), KernelError> {
    let row = Row {
        ow: conv.output[2],
        iw: conv.input[2],
        kw: conv.kernel[1],
        stride: conv.stride[1],
        dilation: conv.dilation[1],
        pad: conv.pad[1],
        skip: edge,
    };
    let mut variants = Vec::new();
    let mut heights = Vec::new();
    let needs_single =
        th > 1 && (edge || share == Share::Rows || !conv.output[1].is_multiple_of(th));
    for height in if needs_single { vec![th, 1] } else { vec![th] } {
        let (tiles, columns) = tiling::cut(row, height, tw);
        variants.extend(tiles);
        heights.push(context! { th => height, columns => Value::from(Serde(columns)) });
    }
    if variants.len() > 10 {
        return Err(unsupported("too many tiles differ at the edges"));
    }
    Ok((variants, heights, needs_single))
}

/// Elements between blocks of `ch` input channels.
pub(super) fn block_stride(x: Geometry, ch: usize) -> usize {
    match x.layout {
        Layout::Nchw => ch * x.plane,
        Layout::Blocked(block) if ch >= block => x.plane,
        _ => ch,
    }
}

impl Blocking {
    pub(super) fn new(
        conv: &Conv,
        ic_block: usize,
        x: Geometry,
        lanes: usize,
        four: usize,
    ) -> Result<Self, KernelError> {
        let (ic, oc) = (conv.input[0] / conv.groups, conv.output[0] / conv.groups);
        // Groups are merged until their outputs fill vectors and their inputs come in the groups
        // that are read at once; weights across groups are zero.
        let merged = (1..=conv.groups)
            .find(|&m| {
                conv.groups.is_multiple_of(m)
                    && ((m * oc).is_multiple_of(lanes) && (m * ic).is_multiple_of(four)
                        || m == conv.groups)
            })
            .unwrap_or(conv.groups);
        let (groups, ic, oc) = (conv.groups / merged, ic * merged, oc * merged);
        let blocked = match x.layout {
            Layout::Blocked(block) => Some(block),
            Layout::Nchw | Layout::Nhwc | Layout::Flat => None,
        };
        if let Some(block) = blocked
            && groups > 1
            && !ic.is_multiple_of(block)
            && !block.is_multiple_of(ic)
        {
            return Err(unsupported("groups do not start at channel blocks"));
        }
        let ch = match blocked {
            Some(block) => block.min(ic),
            None if ic_block == 0 || ic_block >= ic => ic,
            None => ic_block,
        };
        let total = ic / ch;
        let blocks = match blocked {
            Some(block) if ic_block != 0 && ic_block < ic => {
                if !ic_block.is_multiple_of(block) || !total.is_multiple_of(ic_block / block) {
                    return Err(unsupported("input channels do not divide into blocks"));
                }
                ic_block / block
            }
            Some(_) => total,
            None => 1,
        };
        Ok(Self {
            groups,
            ic,
            oc,
            ch,
            blocks,
            splits: total / blocks,
            rest: ic % ch,
        })
    }
}

/// Packs biases, then weights `[group][og][block][kh][kw][ic in block][r·lanes]`.
fn pack(conv: &Conv, blocking: &Blocking, r: usize, lanes: usize, vectors: usize) -> Vec<f32> {
    let width = r * lanes;
    let [kh, kw] = conv.kernel;
    let (group_ic, group_oc) = (conv.input[0] / conv.groups, conv.output[0] / conv.groups);
    let mut packed = vec![0.0; blocking.groups * vectors * lanes];
    for (oc, bias) in conv.bias.iter().enumerate() {
        packed[oc / blocking.oc * vectors * lanes + oc % blocking.oc] = *bias;
    }
    let base = packed.len();
    let size = blocking.groups * (vectors / r) * blocking.ic * kh * kw * width;
    packed.resize(base + size, 0.0);
    let mut at = base;
    for group in 0..blocking.groups {
        for og in 0..vectors / r {
            let mut first = 0;
            while first < blocking.ic {
                let count = blocking.ch.min(blocking.ic - first);
                for tap in 0..kh * kw {
                    for ic in first..first + count {
                        for lane in 0..width {
                            let oc = og * width + lane;
                            if oc < blocking.oc {
                                let (oc, ic) = (group * blocking.oc + oc, group * blocking.ic + ic);
                                if oc / group_oc == ic / group_ic {
                                    let row = oc * group_ic + ic % group_ic;
                                    packed[at + lane] = conv.weights[row * kh * kw + tap];
                                }
                            }
                        }
                        at += width;
                    }
                }
                first += count;
            }
        }
    }
    packed
}
