//! The mappings that an operation can have, and the one it has untuned.

use std::collections::BTreeMap;

use super::dspace::{default_dense, may_halve};
use super::isa::{self, VectorTable};
use super::kernels::{FOUR, are_halves, has_winograd, untuned_matmul, untuned_qmatmul};
use super::layout::is_flat;
use super::qspace::{default_qconv, default_qdepthwise};
use super::spec::{Conv, Kind, Operation};
use super::wspace::default_winograd;
use crate::device::Isa;
use crate::space::{Facts, Mapping, ParamValue, SearchSpace, SpaceError, SpaceTemplate};

/// Includes spaces below `templates/spaces` under their paths.
macro_rules! shipped {
    ($($name:literal,)*) => {
        [$(($name, include_str!(concat!("../../../templates/spaces/", $name))),)*]
    };
}

/// The shipped spaces by name.
pub const SPACES: [(&str, &str); 7] = shipped![
    "native/conv.toml",
    "native/depthwise.toml",
    "native/dense.toml",
    "native/matmul.toml",
    "native/qconv.toml",
    "native/qdepthwise.toml",
    "native/qmatmul.toml",
];

/// Parsed templates of the native backend's spaces.
#[derive(Debug)]
pub struct Spaces {
    threads: usize,
    conv: SpaceTemplate,
    depthwise: SpaceTemplate,
    dense: SpaceTemplate,
    matmul: SpaceTemplate,
    qconv: SpaceTemplate,
    qdepthwise: SpaceTemplate,
    qmatmul: SpaceTemplate,
}

impl Spaces {
    /// Parses the shipped templates, each replaced by the one of the same name in `overrides`, for
    /// models that run on so many threads.
    ///
    /// # Errors
    /// [`SpaceError`] names the template and the place.
    pub fn new(overrides: &BTreeMap<String, String>, threads: usize) -> Result<Self, SpaceError> {
        let parse = |(name, shipped): (&str, &str)| {
            SpaceTemplate::parse(name, overrides.get(name).map_or(shipped, String::as_str))
        };
        Ok(Self {
            threads,
            conv: parse(SPACES[0])?,
            depthwise: parse(SPACES[1])?,
            dense: parse(SPACES[2])?,
            matmul: parse(SPACES[3])?,
            qconv: parse(SPACES[4])?,
            qdepthwise: parse(SPACES[5])?,
            qmatmul: parse(SPACES[6])?,
        })
    }

    /// Returns the mappings of an operation; `None` if there is nothing to choose.
    ///
    /// # Errors
    /// [`SpaceError`] if a template does not fit the facts.
    pub fn of(&self, isa: Isa, operation: &Operation) -> Result<Option<SearchSpace>, SpaceError> {
        let widest = isa::widest(isa);
        let mut facts = Facts::new();
        let mut fact = |name: &str, value: usize| {
            facts.insert(name.to_owned(), ParamValue::Int(value as i64));
        };
        fact("lanes_max", widest.lanes);
        fact("registers", widest.registers);
        fact("weight_registers", widest.integers.registers());
        fact("threads", self.threads);
        let template = match &operation.kind {
            Kind::Conv(_) | Kind::Deconv(_) => {
                let Some(conv) = main_conv(operation) else {
                    return Ok(None);
                };
                let four = if conv.quantized.is_some() { FOUR } else { 1 };
                let [ic, oc] = merged_channels(conv, widest.lanes, four);
                let [_, ih, iw] = conv.input;
                fact("ic", ic);
                fact("oc", oc);
                fact("oc_group", conv.output[0] / conv.groups);
                fact("oc_total", conv.output[0].next_multiple_of(8));
                fact("flat_in", usize::from(is_flat([1, 1, ih, iw])));
                fact("scaled", usize::from(conv.scale.is_some()));
                fact("stored", usize::from(conv.stored));
                let starts_fit = conv.groups == 1 || ic.is_multiple_of(32) || ic == conv.input[0];
                fact("blocked_ok", usize::from(starts_fit));
                // Where many channels are mixed, vectors over them win by far.
                let few = conv.groups > 1 || conv.input[0] <= 64 || conv.output[0] <= 16;
                // Phases of a transposed convolution do not write whole rows.
                let is_whole = matches!(operation.kind, Kind::Conv(_));
                let width_ok = few && is_whole && rows_hold_vectors(isa, conv);
                fact("width_ok", usize::from(width_ok));
                // Phases of a transposed convolution have one mapping, and windows that differ.
                let winograd_ok = is_whole && has_winograd(conv) && ic >= 8;
                fact("winograd_ok", usize::from(winograd_ok));
                window_facts(&mut fact, conv);
                if conv.quantized.is_some() {
                    &self.qconv
                } else {
                    &self.conv
                }
            }
            Kind::Depthwise(conv) => {
                fact("c", conv.output[0]);
                fact("width_ok", usize::from(rows_hold_vectors(isa, conv)));
                window_facts(&mut fact, conv);
                if conv.quantized.is_some() {
                    &self.qdepthwise
                } else {
                    &self.depthwise
                }
            }
            Kind::Dense(dense) => {
                fact("k", dense.k);
                fact("m", dense.m);
                let halves = may_halve(isa, dense);
                fact("halves", usize::from(halves));
                fact("exact", usize::from(halves && are_halves(&dense.weights)));
                &self.dense
            }
            // Where there is nothing to compute, there is nothing to choose.
            Kind::MatMul(matmul) if matmul.is_empty() => return Ok(None),
            Kind::MatMul(matmul) => {
                let [m, k, n] = matmul.extents;
                fact("m", m);
                fact("k", k);
                fact("n", n);
                fact("rows_total", matmul.n_rows());
                fact("row_major", usize::from(matmul.rhs.column == 1));
                if matmul.quantized.is_some() {
                    &self.qmatmul
                } else {
                    &self.matmul
                }
            }
            Kind::Concat(_)
            | Kind::Resample(_)
            | Kind::Pool(_)
            | Kind::Map(_)
            | Kind::Table(_)
            | Kind::Loops(_)
            | Kind::Alias => {
                return Ok(None);
            }
        };
        template.instantiate(&facts).map(Some)
    }
}

/// Returns the convolution that an operation is, or the largest of its phases.
fn main_conv(operation: &Operation) -> Option<&Conv> {
    match &operation.kind {
        Kind::Conv(conv) => Some(conv),
        Kind::Deconv(deconv) => {
            let phases = deconv.phases.iter().map(|(_, conv)| conv);
            phases.max_by_key(|conv| conv.macs())
        }
        _ => None,
    }
}

fn window_facts(fact: &mut impl FnMut(&str, usize), conv: &Conv) {
    let [_, oh, ow] = conv.output;
    fact("oh", oh);
    fact("ow", ow);
    fact("kh", conv.kernel[0]);
    fact("kw", conv.kernel[1]);
    fact("sw", conv.stride[1]);
    fact("flat_out", usize::from(oh * ow == 1));
    fact("padded", usize::from(conv.margins() != [0; 4]));
}

/// Returns whether rows of results hold vectors of the two widest tables.
fn rows_hold_vectors(isa: Isa, conv: &Conv) -> bool {
    let narrower = isa::tables(isa).iter().take(2).map(|table| table.lanes);
    narrower.min().is_some_and(|lanes| conv.output[2] >= lanes)
}

/// Returns the input and output channels of a group after groups are merged to fill a vector, with
/// a multiple of `four` inputs.
pub(super) fn merged_channels(conv: &Conv, lanes: usize, four: usize) -> [usize; 2] {
    let (ic, oc) = (conv.input[0] / conv.groups, conv.output[0] / conv.groups);
    let merged = (1..=conv.groups)
        .find(|&m| {
            let fills = (m * oc).is_multiple_of(lanes) && (m * ic).is_multiple_of(four);
            conv.groups.is_multiple_of(m) && fills
        })
        .unwrap_or(conv.groups);
    [ic * merged, oc * merged]
}

/// Returns the mapping that an operation has untuned: what an expert would write without
/// measuring. One layout throughout, tiles that fill the registers.
pub fn default_mapping(isa: Isa, operation: &Operation) -> Mapping {
    match &operation.kind {
        Kind::Conv(conv) if conv.quantized.is_some() => default_qconv(isa, conv),
        Kind::Depthwise(conv) if conv.quantized.is_some() => default_qdepthwise(isa, conv),
        Kind::Conv(conv) if prefers_width(isa, conv) => default_width(isa, conv),
        Kind::Conv(conv) => {
            default_winograd(isa, conv).unwrap_or_else(|| default_channels(isa, conv))
        }
        Kind::Deconv(_) => main_conv(operation)
            .map(|conv| default_channels(isa, conv))
            .unwrap_or_default(),
        Kind::Depthwise(conv) => default_depthwise(isa, conv),
        Kind::Dense(dense) => default_dense(isa, dense),
        Kind::MatMul(matmul) if matmul.is_empty() => Mapping::default(),
        Kind::MatMul(matmul) if matmul.quantized.is_some() => untuned_qmatmul(isa, matmul),
        Kind::MatMul(matmul) => untuned_matmul(isa, matmul),
        Kind::Concat(_)
        | Kind::Resample(_)
        | Kind::Pool(_)
        | Kind::Map(_)
        | Kind::Table(_)
        | Kind::Loops(_)
        | Kind::Alias => Mapping::default(),
    }
}

/// The layout that everything is in by default: blocks of one vector, or of 8 where vectors are
/// narrower.
pub(super) fn default_layout(isa: Isa, flat: bool) -> &'static str {
    match (flat, isa::widest(isa).lanes) {
        (true, _) => "flat",
        (false, 16) => "nchw16c",
        (false, _) => "nchw8c",
    }
}

/// Returns whether vectors along the width are plainly better: those over output channels would
/// be half zeros or more, and there is enough to do for conversions before and behind to pay.
fn prefers_width(isa: Isa, conv: &Conv) -> bool {
    let per_vector = if conv.stride == [1, 1] { 2 } else { 4 };
    let lanes = isa::widest(isa).lanes;
    let is_small = conv.output[0] / conv.groups * per_vector <= lanes;
    is_small && conv.kernel != [1, 1] && conv.output[2] >= lanes.min(8)
}

/// Adds to an untuned mapping what each of several threads computes of the operation, if there is a
/// choice: rows if there are enough and they do not depend on each other, or else channels.
pub fn shared(threads: usize, operation: &Operation, mapping: Mapping) -> Mapping {
    let conv = match &operation.kind {
        // Those of integers are divided along columns only.
        Kind::MatMul(matmul) if matmul.quantized.is_some() || matmul.is_empty() => None,
        Kind::MatMul(_) if threads > 1 => return mapping.with("share", "rows"),
        Kind::Depthwise(conv) => Some(conv),
        _ => main_conv(operation),
    };
    let Some(conv) = conv.filter(|_| threads > 1) else {
        return mapping;
    };
    // Means are summed up over rows, and factors of the input go into a copy of all weights.
    let is_joined = conv.pooled.is_some() || conv.scale.is_some();
    if conv.output[1] >= 2 * threads && !is_joined {
        mapping.with("share", "rows")
    } else if conv.scale.is_some() {
        // Each thread scales the weights of its channels; the input is that of all.
        mapping.with("scale", "weights").with("share", "channels")
    } else {
        mapping.with("share", "channels")
    }
}

fn default_width(isa: Isa, conv: &Conv) -> Mapping {
    let [oc, oh, ow] = conv.output;
    let fitting = isa::tables(isa).iter().filter(|table| table.lanes <= ow);
    let table = isa::least_waste(fitting.copied(), ow).unwrap_or(isa::widest(isa));
    let vectors = ow.div_ceil(table.lanes);
    let accumulators = if table.registers > 16 { 16 } else { 8 };
    let r = [4, 3, 2]
        .into_iter()
        .find(|r| (oc / conv.groups).is_multiple_of(*r))
        .unwrap_or(1);
    // One channel alone reuses input rows; more of them reuse each input vector.
    let rows = if r > 1 { 1 } else { oh.min(4) };
    let tw = vectors.min(accumulators / (r * rows));
    let th = rows.max((accumulators / (r * tw)).min(4)).min(oh);
    Mapping::default()
        .with("vector", "width")
        .with("layout_in", "nchw")
        .with("layout_out", "nchw")
        .with("lanes", table.lanes as i64)
        .with("oc_vectors", r as i64)
        .with("tile_w", tw as i64)
        .with("tile_h", th as i64)
        .with("ic_block", 0i64)
        .with("unroll", 1i64)
        .with("order", "oc")
        .with("taps", if r > 1 { "kw" } else { "all" })
        .with("padding", "border")
        .with("scale", "weights")
}

/// Returns vectors that the output channels fill, as far as there are any: of 8 and 24 channels,
/// those of 16 would be half and a quarter zeros. Those of 4 gain nothing beside those of 8, as
/// multiply-adds of both take the same time; and merged groups are such that vectors are full.
fn channel_table(isa: Isa, conv: &Conv) -> VectorTable {
    let widest = isa::widest(isa);
    if conv.groups > 1 || widest.lanes < 16 {
        return widest;
    }
    let tables = isa::tables(isa).iter().copied();
    isa::least_waste(tables, conv.output[0]).unwrap_or(widest)
}

fn default_channels(isa: Isa, conv: &Conv) -> Mapping {
    let table = channel_table(isa, conv);
    let [ic, oc] = merged_channels(conv, table.lanes, 1);
    let [_, oh, ow] = conv.output;
    let vectors = oc.div_ceil(table.lanes);
    let (r, tw, th) = best_tile(table, vectors, [oh, ow], 1);
    let flat_in = conv.input[1] * conv.input[2] == 1;
    let from_input = ic < 8 && conv.groups == 1;
    let layout_in = if from_input {
        "nchw"
    } else {
        default_layout(isa, flat_in)
    };
    let padded = conv.margins() != [0; 4];
    let taps = if from_input && conv.kernel[0] > 1 {
        "kw"
    } else {
        "loop"
    };
    let weights = conv.weights.len();
    let activations = conv.input.iter().product::<usize>() * 3 / 2;
    let in_weights = conv.scale.is_none() || weights < activations;
    Mapping::default()
        .with("vector", "channels")
        .with("layout_in", layout_in)
        .with("layout_out", default_layout(isa, oh * ow == 1))
        .with("lanes", table.lanes as i64)
        .with("oc_vectors", r as i64)
        .with("tile_w", tw as i64)
        .with("tile_h", th as i64)
        .with("ic_block", 0i64)
        .with("unroll", if ic.is_multiple_of(4) { 4i64 } else { 1i64 })
        .with("order", "oc")
        .with("taps", taps)
        .with(
            "padding",
            if padded && from_input {
                "edge"
            } else {
                "border"
            },
        )
        .with("scale", if in_weights { "weights" } else { "input" })
}

/// Most columns of a tile, as in the spaces.
const MAX_COLUMNS: usize = 28;

/// Returns output vectors, columns and rows of the tile that should keep most units busy where a
/// vector of weights takes `weight_registers`.
pub(super) fn best_tile(
    table: VectorTable,
    vectors: usize,
    [oh, ow]: [usize; 2],
    weight_registers: usize,
) -> (usize, usize, usize) {
    let mut best = (f64::NEG_INFINITY, 1, 1, 1);
    for r in (1..=8).filter(|r| vectors.is_multiple_of(*r)) {
        let room = table.registers.saturating_sub((r + 1) * weight_registers);
        for th in 1..=oh.min(2) {
            for tw in (1..=ow.min(MAX_COLUMNS)).filter(|tw| tw * th * r <= room) {
                let used = (ow as f64 / (tw * ow.div_ceil(tw)) as f64)
                    * (oh as f64 / (th * oh.div_ceil(th)) as f64);
                let pixels = (tw * th) as f64;
                let loads = 1.0 / r as f64 + 1.0 / pixels;
                let busy = (pixels * r as f64 / 12.0).min(1.0);
                let score = used * busy - 0.3 * loads + if r == 2 { 0.001 } else { 0.0 };
                if score > best.0 {
                    best = (score, r, tw, th);
                }
            }
        }
    }
    let (_, r, tw, th) = best;
    (r, tw, th)
}

fn default_depthwise(isa: Isa, conv: &Conv) -> Mapping {
    let table = isa::widest(isa);
    let [_, oh, ow] = conv.output;
    let room = table.registers - 2;
    let score = |tw: usize| (tw.min(8) as f64) * ow as f64 / (tw * ow.div_ceil(tw)) as f64;
    let tw = (1..=ow.min(14).min(room)).max_by(|a, b| score(*a).total_cmp(&score(*b)));
    Mapping::default()
        .with("vector", "channels")
        .with("layout_in", default_layout(isa, false))
        .with("layout_out", default_layout(isa, oh * ow == 1))
        .with("lanes", table.lanes as i64)
        .with("tile_w", tw.unwrap_or(1) as i64)
        .with("tile_h", 1i64)
        .with("order", "oc")
        .with("hold", "weights")
        .with("padding", "border")
}
