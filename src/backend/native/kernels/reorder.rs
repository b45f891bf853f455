//! Copies between layouts.

use minijinja::{Value, context};

use super::share::Share;
use super::source::{Kernel, KernelCtx, KernelError, Slot};
use crate::backend::native::isa;
use crate::backend::native::layout::Geometry;

/// Bytes that are transposed at once.
const VECTOR_BYTES: usize = 16;

/// Elements of a value that lie between two visits of the same pixels, at most: a fraction of L1.
const CHUNK: usize = 2048;

/// Makes the kernel that copies a value from `x` to `y`; its elements have that many bytes. Where
/// the channels of a block end, zeros may follow them in `y`.
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
    let share = ctx.share.along(Share::Rows);
    // Rows that follow each other in both values are one.
    let is_dense = [x, y].iter().all(|g| g.row == w * g.block);
    let (rows, columns) = match share {
        Share::Whole if is_dense => (1, h * w),
        _ => (h, w),
    };
    let [x_step, y_step] = [x, y].map(|g| if g.block == 1 { g.plane } else { 1 });
    // Channels of single pixels lie together unless there are borders between their blocks.
    let is_together = |g: &&Geometry| g.block >= c || g.plane == g.block;
    let is_pixel = h * w == 1 && [x, y].iter().all(is_together);
    let copies = match (x.block, y.block) {
        _ if is_pixel => Some(c),
        (a, b) if a == b => Some(columns * a),
        _ => None,
    };
    let run = match (x.block, y.block) {
        (1, block) | (block, 1) => block,
        (a, b) => gcd(a, b),
    };
    let squares = squares(ctx, [x.block, y.block], c, columns, element);
    let values = context! {
        T => element_type(element), copies, squares => squares.unwrap_or(Value::from(false)),
        down => y.block == 1,
        share => share.word(), rows => share.bounds(Share::Rows, rows), N => n, C => c,
        W => columns, RUN => run, CB => if is_pixel { 1 } else { c.div_ceil(x.block) },
        XB => x.block, XR => x.row, XC => x.plane, XN => x.batch, XE => x_step,
        YB => y.block, YR => y.row, YC => y.plane, YN => y.batch, YE => y_step,
    };
    let slots = vec![Slot::Source(0), Slot::Result(0)];
    let table = isa::widest(ctx.isa);
    let kernel = Kernel::render(ctx, "reorder.rs.j2", table, values, slots, &[])?;
    Ok(kernel.shared(share.of(h, 1, 1)))
}

/// Returns how squares of pixels and channels are transposed between blocks and planes, if they
/// are and rows are long enough for one.
fn squares(
    ctx: KernelCtx<'_>,
    blocks: [usize; 2],
    channels: usize,
    columns: usize,
    element: usize,
) -> Option<Value> {
    let block = match blocks {
        [1, block] | [block, 1] if block > 1 => block,
        _ => return None,
    };
    let zips = isa::zips(ctx.isa)?;
    let lanes = VECTOR_BYTES / element;
    // Each of the vectors is one channel; those of a short block are two or more pixels.
    let vectors = lanes.min(block);
    if columns < lanes {
        return None;
    }
    let is_down = blocks[1] == 1;
    let rounds = if is_down { lanes } else { vectors }.ilog2();
    let overlaps = block.min(channels).next_multiple_of(vectors) > block;
    let is_part = if overlaps {
        channels < block
    } else {
        !channels.is_multiple_of(vectors)
    };
    Some(context! {
        zips => ctx.renderer.text(zips), lanes, vectors, rounds, bits => element * 8,
        part => is_part, overlaps => if overlaps { block } else { 0 },
        pixels => (CHUNK / block).clamp(1, 64).next_multiple_of(lanes),
    })
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
