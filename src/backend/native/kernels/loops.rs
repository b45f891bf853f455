//! Any operator as plain loops.

use minijinja::value::Serde;
use minijinja::{Value, context};

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
    let mut slots = Vec::new();
    let mut weights = Vec::new();
    for (idx, source) in loops.inputs.iter().enumerate() {
        slots.push(match source {
            Source::Value(_) => Slot::Source(idx),
            Source::Constant(tensor) => {
                let at = weights.len();
                weights.extend(tensor.data().to_le_bytes());
                weights.resize(weights.len().next_multiple_of(ALIGN), 0);
                Slot::Bytes(at)
            }
        });
    }
    slots.extend((0..loops.outputs.len()).map(Slot::Result));
    if loops.room > 0 {
        slots.push(Slot::Room(loops.room));
    }
    let parameters = |n: usize, letter: char, kind: &str| {
        (0..n)
            .map(|idx| format!("{letter}{idx}: *{kind} u8"))
            .collect::<Vec<_>>()
    };
    let mut signature = parameters(loops.inputs.len(), 'x', "const");
    signature.extend(parameters(loops.outputs.len(), 'y', "mut"));
    if loops.room > 0 {
        signature.push("room: *mut u8".to_owned());
    }
    let values = context! {
        parameters => signature.join(", "),
        ..Value::from(Serde(&loops.facts))
    };
    let table = isa::widest(ctx.isa);
    let mut kernel = Kernel::render(ctx, loops.template, table, values, slots, &[])?;
    kernel.weights = weights;
    Ok(kernel)
}
