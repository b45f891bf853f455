//! Elementwise operators.

use minijinja::value::Serde;
use minijinja::{Value, context};

use super::share::Share;
use super::source::{Kernel, KernelCtx, KernelError, Slot};
use crate::backend::native::layout::Geometry;
use crate::backend::native::spec::{Map, MapStep, Operand};

/// Constants are padded to that many numbers, so that vectors may read beyond their end.
const CONSTANT_ALIGN: usize = 32;

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
    let strides = |f: fn(&Geometry) -> usize| operands.iter().map(f).collect::<Vec<_>>();
    let (share, blocks) = (ctx.share, c.div_ceil(x.block));
    let values = context! {
        share => share.word(), rows => share.bounds(Share::Rows, h),
        channels => share.bounds(Share::Channels, blocks), N => n, W => w,
        XB => x.block, XR => x.row, XC => x.plane, XN => x.batch,
        YR => y.row, YC => y.plane, YN => y.batch,
        QR => strides(|g| g.row), QC => strides(|g| g.plane), QN => strides(|g| g.batch),
        chain, operands => kinds, tail => !run.is_multiple_of(table.lanes),
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
    let kernel = Kernel::render(ctx, "map.rs.j2", table, values, slots, &weights)?;
    Ok(kernel.shared(share.of(h, 1, blocks)))
}
