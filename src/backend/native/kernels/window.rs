//! Moving and clearing rows of a buffer that holds some rows of a value.

use minijinja::context;

use super::source::{Kernel, KernelCtx, KernelError, Slot};
use crate::backend::native::isa;
use crate::backend::native::layout::Geometry;

/// Makes the kernel that moves rows `first..end` of a buffer to its start; its elements have that
/// many bytes.
///
/// # Errors
/// [`KernelError::Render`] if the template fails.
pub fn slide(ctx: KernelCtx<'_>, buffer: &Geometry, element: usize) -> Result<Kernel, KernelError> {
    rows(ctx, buffer, element, true)
}

/// Makes the kernel that gives rows `first..end` of a buffer the value of its border.
///
/// # Errors
/// [`KernelError::Render`] if the template fails.
pub fn clear(ctx: KernelCtx<'_>, buffer: &Geometry, element: usize) -> Result<Kernel, KernelError> {
    rows(ctx, buffer, element, false)
}

fn rows(
    ctx: KernelCtx<'_>,
    buffer: &Geometry,
    element: usize,
    slide: bool,
) -> Result<Kernel, KernelError> {
    let values = context! {
        slide, fill => buffer.border.fill, planes => buffer.len / buffer.plane.max(1),
        plane => buffer.plane * element, row => buffer.row * element,
    };
    let slots = vec![Slot::Result(0), Slot::First, Slot::End];
    Kernel::render(
        ctx,
        "window.rs.j2",
        isa::widest(ctx.isa),
        values,
        slots,
        &[],
    )
}
