//! Any operator as plain loops.

use minijinja::value::Serde;
use minijinja::{Value, context};

use super::share::Share;
use super::source::{Kernel, KernelCtx, KernelError, Slot};
use crate::backend::native::isa;
use crate::backend::native::spec::{Loops, Source};

/// Bytes that constants are aligned to.
const ALIGN: usize = 64;

/// Makes the kernel; its constants are packed one after the other.
///
/// # Errors
/// [`KernelError::Render`] if the template fails.
pub fn loops(ctx: KernelCtx<'_>, loops: &Loops) -> Result<Kernel, KernelError> {
    let (mut slots, weights) = bind_sources(&loops.inputs);
    slots.extend((0..loops.outputs.len()).map(Slot::Result));
    if loops.room > 0 {
        slots.push(Slot::Room(loops.room));
    }
    let table = isa::widest(ctx.isa);
    let units = loops.facts["units"].as_u64().map(|units| units as usize);
    let share = ctx.share.along(Share::Rows);
    let shares = units.and_then(|units| share.of(units, 1, 0));
    let n_outputs = loops.outputs.len();
    let values = context! {
        parameters => signature(loops.inputs.len(), n_outputs, loops.room, shares.is_some()),
        turns => units.map(|units| share.bounds(Share::Rows, units)),
        lanes => table.lanes,
        registers => table.registers,
        converts_halves => table.converts_halves(),
        ..Value::from(Serde(&loops.facts))
    };
    let mut kernel = Kernel::render(ctx, loops.template, table, values, slots, &[])?;
    kernel.weights = weights;
    Ok(kernel.shared(shares))
}

/// Returns the slots of operands, and the constants among them, packed.
pub(super) fn bind_sources(sources: &[Source]) -> (Vec<Slot>, Vec<u8>) {
    let mut weights = Vec::new();
    let slots = sources
        .iter()
        .enumerate()
        .map(|(idx, source)| match source {
            Source::Value(_) => Slot::Source(idx),
            Source::Constant(tensor) => {
                let at = weights.len();
                weights.extend(tensor.data().to_le_bytes());
                weights.resize(weights.len().next_multiple_of(ALIGN), 0);
                Slot::Bytes(at)
            }
        });
    (slots.collect(), weights)
}

/// Returns the parameters of a kernel: inputs `x0`, `x1`, …, outputs `y0`, …, room, and the range of
/// its work if that is divided.
pub(super) fn signature(
    n_inputs: usize,
    n_outputs: usize,
    room: usize,
    is_divided: bool,
) -> String {
    let parameters = |n: usize, letter: char, kind: &str| {
        (0..n)
            .map(|idx| format!("{letter}{idx}: *{kind} u8"))
            .collect::<Vec<_>>()
    };
    let mut signature = parameters(n_inputs, 'x', "const");
    signature.extend(parameters(n_outputs, 'y', "mut"));
    if room > 0 {
        signature.push("room: *mut u8".to_owned());
    }
    if is_divided {
        signature.extend(["first: usize".to_owned(), "end: usize".to_owned()]);
    }
    signature.join(", ")
}
