//! Copies between layouts.

use minijinja::context;

use super::share::Share;
use super::source::{Kernel, KernelCtx, KernelError, Slot};
use crate::backend::native::isa;
use crate::backend::native::layout::Geometry;

/// Makes the kernel that copies a value from `x` to `y`; its elements have that many bytes.
///
/// # Errors
/// [`KernelError::Render`] if the template fails.
pub fn reorder(
    ctx: KernelCtx<'_>,
    x: &Geometry,
    y: &Geometry,
    element: usize,
) -> Result<Kernel, KernelError> {
    let [n, c, h, w] = x.dims;
    let run = match (x.block, y.block) {
        (1, block) | (block, 1) => block.min(c),
        (a, b) if a.is_multiple_of(b) => b,
        (a, b) if b.is_multiple_of(a) => a,
        (a, b) => gcd(a, b),
    };
    let share = ctx.share.along(Share::Rows);
    let values = context! {
        T => element_type(element),
        share => share.word(), rows => share.bounds(Share::Rows, h), N => n, C => c, W => w, RUN => run, CB => c.div_ceil(x.block),
        XB => x.block, XR => x.row, XC => x.plane, XN => x.batch,
        XE => if x.block == 1 { x.plane } else { 1 },
        YB => y.block, YR => y.row, YC => y.plane, YN => y.batch,
        YE => if y.block == 1 { y.plane } else { 1 },
    };
    let slots = vec![Slot::Source(0), Slot::Result(0)];
    let table = isa::widest(ctx.isa);
    let kernel = Kernel::render(ctx, "reorder.rs.j2", table, values, slots, &[])?;
    Ok(kernel.shared(share.of(h, 1, 1)))
}

/// Returns a type of that many bytes to copy elements as.
pub(super) fn element_type(bytes: usize) -> &'static str {
    match bytes {
        1 => "u8",
        2 => "u16",
        8 => "u64",
        _ => "f32",
    }
}

pub(super) fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
