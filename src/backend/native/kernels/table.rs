//! Functions of 8 bits.

use minijinja::context;

use super::share::Share;
use super::source::{Kernel, KernelCtx, KernelError, Slot};
use crate::backend::native::isa;
use crate::backend::native::layout::Geometry;
use crate::backend::native::spec::Table;

/// Makes the kernel; both values have one layout.
///
/// # Errors
/// [`KernelError::Render`] if the template fails.
pub fn table(
    ctx: KernelCtx<'_>,
    table: &Table,
    x: &Geometry,
    y: &Geometry,
) -> Result<Kernel, KernelError> {
    let [n, c, h, w] = x.dims;
    let (mut blocks, mut rows, mut run) = (c.div_ceil(x.block), h, w * x.block);
    // Rows, then blocks, that follow each other in both values are one run.
    let share = ctx.share;
    if share == Share::Whole && [x.row, y.row] == [run; 2] {
        (rows, run) = (1, run * h);
        if [x.plane, y.plane] == [run; 2] {
            (blocks, run) = (1, run * blocks);
        }
    }
    let vectors = isa::widest(ctx.isa);
    let values = context! {
        share => share.word(), rows => share.bounds(Share::Rows, rows),
        channels => share.bounds(Share::Channels, blocks), N => n, RUN => run,
        XR => x.row, XC => x.plane, XN => x.batch,
        YR => y.row, YC => y.plane, YN => y.batch,
        permutes => vectors.integers.permutes,
    };
    let slots = vec![Slot::Input, Slot::Weights, Slot::Output];
    let mut kernel = Kernel::render(ctx, "table.rs.j2", vectors, values, slots, &[])?;
    kernel.weights.clone_from(&table.entries);
    Ok(kernel.shared(share.of(rows, 1, blocks)))
}
