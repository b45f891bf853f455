//! Elementwise operators.

use minijinja::value::Serde;
use minijinja::{Value, context};

use serde::Serialize;

use super::share::Share;
use super::source::{Kernel, KernelCtx, KernelError, Slot};
use crate::backend::native::layout::Geometry;
use crate::backend::native::spec::{Affine, Map, MapStep, Operand, literal};

/// Constants are padded to that many numbers, so that vectors may read beyond their end.
const CONSTANT_ALIGN: usize = 32;

/// A scale and a zero point as templates read them.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Reading {
    scale: String,
    per_step: String,
    zero: String,
    /// What is beyond the range of u8, and yet an i32.
    most: String,
}

impl Reading {
    pub(super) fn of(affine: Affine) -> Self {
        Self {
            scale: literal(affine.scale),
            per_step: literal(1.0 / affine.scale),
            zero: affine.zero_point.to_string(),
            most: literal(65536.0),
        }
    }
}

/// Makes the kernel. All values have the layout of `x`; `operands` are the geometries of the other
/// operands, in order.
///
/// # Errors
/// [`KernelError::Unsupported`] if a constant operand does not fit the layout.
pub fn map(
    ctx: KernelCtx<'_>,
    map: &Map,
    x: &Geometry,
    y: &Geometry,
    operands: &[Geometry],
) -> Result<Kernel, KernelError> {
    let table = ctx
        .table_for(&[x.block])
        .unwrap_or(super::super::isa::widest(ctx.isa));
    let [n, c, h, w] = x.dims;
    let run = w * x.block;
    let kinds: Vec<&str> = map
        .operands
        .iter()
        .map(|operand| match operand {
            Operand::Same(_) => "same",
            Operand::Channel(_) | Operand::Constant(_) => "channel",
        })
        .collect();
    let chain: Vec<Value> = map
        .chain
        .iter()
        .map(|step| match step {
            MapStep::Unary(op) => Value::from(Serde(op)),
            MapStep::Binary { op, operand } => {
                context! { op => *op, operand => *operand, broadcast => kinds[*operand] }
            }
        })
        .collect();
    let reads: Vec<Value> = (0..=map.operands.len())
        .map(|idx| {
            Value::from(Serde(
                map.reads.get(idx).copied().flatten().map(Reading::of),
            ))
        })
        .collect();
    let writes = map.writes.map(Reading::of);
    let is_bytes = map.reads.iter().chain([&map.writes]).any(Option::is_some);
    let strides = |f: fn(&Geometry) -> usize| operands.iter().map(f).collect::<Vec<_>>();
    let (share, blocks) = (ctx.share, c.div_ceil(x.block));
    let values = context! {
        share => share.word(), rows => share.bounds(Share::Rows, h),
        channels => share.bounds(Share::Channels, blocks), N => n, W => w,
        XB => x.block, XR => x.row, XC => x.plane, XN => x.batch,
        YR => y.row, YC => y.plane, YN => y.batch,
        QR => strides(|g| g.row), QC => strides(|g| g.plane), QN => strides(|g| g.batch),
        reads, writes => Value::from(Serde(writes)), bytes => is_bytes, chain, operands => kinds, tail => !run.is_multiple_of(table.lanes),
    };
    let mut slots = vec![Slot::Input, Slot::Output];
    let mut weights = Vec::new();
    for (idx, operand) in map.operands.iter().enumerate() {
        slots.push(match operand {
            Operand::Constant(data) => {
                let at = weights.len() * size_of::<f32>();
                weights.extend_from_slice(data);
                weights.resize(weights.len().next_multiple_of(CONSTANT_ALIGN), 0.0);
                Slot::Constant(at)
            }
            Operand::Same(_) | Operand::Channel(_) => Slot::Operand(idx),
        });
    }
    let kernel = if is_bytes {
        let weights = weights.iter().flat_map(|weight| weight.to_le_bytes());
        let weights = weights.collect();
        Kernel::render_integers(ctx, "map.rs.j2", table, values, slots, weights)?
    } else {
        Kernel::render(ctx, "map.rs.j2", table, values, slots, &weights)?
    };
    Ok(kernel.shared(share.of(h, 1, blocks)))
}
