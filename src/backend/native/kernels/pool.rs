//! Max and average pooling.

use minijinja::value::Serde;
use minijinja::{Value, context};

use super::map::Reading;
use super::share::Share;
use super::source::{Kernel, KernelCtx, KernelError, Slot};
use crate::backend::native::isa;
use crate::backend::native::layout::Geometry;
use crate::backend::native::spec::{Pool, literal};

/// Makes the kernel; vectors run over channels where both layouts hold them.
///
/// # Errors
/// [`KernelError::Unsupported`] if an epilogue asks for vectors that the layouts do not hold.
pub fn pool(
    ctx: KernelCtx<'_>,
    pool: &Pool,
    x: &Geometry,
    y: &Geometry,
) -> Result<Kernel, KernelError> {
    let table = ctx.table_for(&[x.block, y.block]);
    let is_bytes = pool.bytes.iter().any(Option::is_some);
    if table.is_none() && (is_bytes || !pool.epilogue.is_empty()) {
        return Err(KernelError::Unsupported(
            "a layout does not hold vectors".to_owned(),
        ));
    }
    let [n, c, ih, iw] = x.dims;
    let start = match (pool.average, table.is_some()) {
        (true, true) => "zero!()".to_owned(),
        (true, false) => literal(0.0),
        (false, true) => format!("splat!({})", literal(f32::NEG_INFINITY)),
        (false, false) => literal(f32::NEG_INFINITY),
    };
    let (share, oh) = (ctx.share, y.dims[2]);
    let vectors = table.map_or(c, |table| c.div_ceil(table.lanes));
    let values = context! {
        share => share.word(), rows => share.bounds(Share::Rows, oh),
        channels => share.bounds(Share::Channels, vectors),
        N => n,
        vector => table.is_some(), start,
        op => if pool.average { "average" } else { "max" }, count_pad => pool.count_pad,
        IH => ih, IW => iw, OW => y.dims[3],
        KH => pool.kernel[0], KW => pool.kernel[1], SH => pool.stride[0], SW => pool.stride[1],
        DH => pool.dilation[0], DW => pool.dilation[1],
        PT => pool.pad[0], PL => pool.pad[1], PB => pool.pad[2], PR => pool.pad[3],
        epilogue => Value::from(Serde(&pool.epilogue)), bytes => is_bytes,
        reads => Value::from(Serde(pool.bytes[0].map(Reading::of))),
        writes => Value::from(Serde(pool.bytes[1].map(Reading::of))),
    };
    let places = context! {
        XB => x.block, XR => x.row, XC => x.plane, XN => x.batch,
        YB => y.block, YR => y.row, YC => y.plane, YN => y.batch,
    };
    let table = table.unwrap_or(isa::widest(ctx.isa));
    let values = minijinja::value::merge_maps([values, places]);
    let slots = vec![Slot::Input, Slot::Output];
    let kernel = if is_bytes {
        Kernel::render_integers(ctx, "pool.rs.j2", table, values, slots, Vec::new())?
    } else {
        Kernel::render(ctx, "pool.rs.j2", table, values, slots, &[])?
    };
    Ok(kernel.shared(share.of(oh, 1, vectors)))
}
