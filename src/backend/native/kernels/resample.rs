//! Pixels of a value, each with all of its channels.

use minijinja::context;

use super::reorder::element_type;
use super::share::Share;
use super::source::{Kernel, KernelCtx, KernelError, Slot};
use crate::backend::native::isa;
use crate::backend::native::layout::Geometry;
use crate::backend::native::spec::Resample;

/// Makes the kernel; both values have one layout, and elements of so many bytes.
///
/// # Errors
/// [`KernelError::Render`] if the template fails.
pub fn resample(
    ctx: KernelCtx<'_>,
    resample: &Resample,
    x: &Geometry,
    y: &Geometry,
    element: usize,
) -> Result<Kernel, KernelError> {
    let table = ctx
        .table_for(&[x.block])
        .filter(|_| element == size_of::<f32>());
    let [n, c, _, _] = x.dims;
    let (share, oh) = (ctx.share.along(Share::Rows), resample.rows.len());
    let values = context! {
        share => share.word(), bounds => share.bounds(Share::Rows, oh),
        T => element_type(element),
        N => n, CB => c.div_ceil(x.block), rows => &resample.rows, columns => &resample.columns,
        XB => x.block, XR => x.row, XC => x.plane, XN => x.batch,
        YR => y.row, YC => y.plane, YN => y.batch, vector => table.is_some(),
    };
    let slots = vec![Slot::Input, Slot::Output];
    let table = table.unwrap_or(isa::widest(ctx.isa));
    let kernel = Kernel::render(ctx, "resample.rs.j2", table, values, slots, &[])?;
    Ok(kernel.shared(share.of(oh, 1, 1)))
}
