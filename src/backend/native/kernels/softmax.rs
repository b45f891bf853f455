//! Softmax over one axis of a row-major value.

use minijinja::context;

use super::source::{Kernel, KernelCtx, KernelError, Slot};
use crate::backend::native::isa;
use crate::backend::native::spec::Softmax;

/// Makes the kernel; `x_row` and `y_row` are the elements between outer positions.
///
/// # Errors
/// [`KernelError::Render`] if the template fails.
pub fn softmax(
    ctx: KernelCtx<'_>,
    softmax: &Softmax,
    x_row: usize,
    y_row: usize,
) -> Result<Kernel, KernelError> {
    let values = context! {
        OUTER => softmax.outer, AXIS => softmax.axis, INNER => softmax.inner,
        XO => x_row, YO => y_row,
    };
    let slots = vec![Slot::Input, Slot::Output];
    Kernel::render(
        ctx,
        "softmax.rs.j2",
        isa::widest(ctx.isa),
        values,
        slots,
        &[],
    )
}
