//! Joining values along the channels, in whatever layouts they have.

use minijinja::context;

use super::reorder::{element_type, gcd};
use super::share::Share;
use super::source::{Kernel, KernelCtx, KernelError, Slot};
use crate::backend::native::isa;
use crate::backend::native::layout::Geometry;

/// Makes the kernel that copies `inputs` one after the other along the channels of `y`;
/// their elements have that many bytes.
///
/// # Errors
/// [`KernelError::Render`] if the template fails.
pub fn concat(
    ctx: KernelCtx<'_>,
    inputs: &[Geometry],
    y: &Geometry,
    element: usize,
) -> Result<Kernel, KernelError> {
    let mut first = 0;
    let mut parts = Vec::new();
    for x in inputs {
        let [_, c, _, _] = x.dims;
        // Runs of channels that lie together on both sides, wherever they begin.
        let run = match (x.block, y.block) {
            (1, 1) => 1,
            (1, block) => gcd(block, first),
            (block, 1) => block,
            (a, b) => gcd(gcd(a, b), first),
        };
        parts.push(context! {
            C => c, first, RUN => run.min(c), tail => c % run.min(c).max(1),
            XB => x.block, XR => x.row, XC => x.plane, XN => x.batch,
            XE => if x.block == 1 { x.plane } else { 1 },
        });
        first += c;
    }
    let [n, _, h, w] = y.dims;
    let share = ctx.share.along(Share::Rows);
    let values = context! {
        T => element_type(element),
        share => share.word(), rows => share.bounds(Share::Rows, h), N => n, W => w, parts,
        YB => y.block, YR => y.row, YC => y.plane, YN => y.batch,
        YE => if y.block == 1 { y.plane } else { 1 },
    };
    let mut slots: Vec<Slot> = (0..inputs.len()).map(Slot::Operand).collect();
    slots.push(Slot::Output);
    let table = isa::widest(ctx.isa);
    let kernel = Kernel::render(ctx, "concat.rs.j2", table, values, slots, &[])?;
    Ok(kernel.shared(share.of(h, 1, 1)))
}
