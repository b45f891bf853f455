//! Transposed convolution: a convolution for each phase of the outputs.

use std::fmt::Write as _;

use super::conv::{ConvGeometry, conv, conv_margins};
use super::share::Share;
use super::source::{Kernel, KernelCtx, KernelError, Slot};
use crate::backend::native::layout::{Border, Geometry};
use crate::backend::native::spec::Deconv;
use crate::space::Mapping;

/// Returns the zeros that the kernel reads around its input.
pub fn deconv_margins(deconv: &Deconv, mapping: &Mapping) -> Border {
    let margins = deconv
        .phases
        .iter()
        .map(|(_, conv)| conv_margins(conv, mapping));
    margins.fold(Border::default(), Border::union)
}

/// Makes the kernel: one after the other those of the phases, each of which writes the outputs at
/// distances of the strides.
///
/// # Errors
/// [`KernelError::Unsupported`] if the mapping does not fit the shapes or layouts.
pub fn deconv(
    ctx: KernelCtx<'_>,
    deconv: &Deconv,
    mapping: &Mapping,
    x: Geometry,
    y: Geometry,
) -> Result<Kernel, KernelError> {
    let mut parts = Vec::new();
    for ([row, column], phase) in &deconv.phases {
        let geometry = ConvGeometry {
            x,
            y: y.strided(deconv.stride),
            residual: None,
            x_is_exclusive: false,
        };
        let kernel = conv(ctx, phase, mapping, &geometry)?;
        parts.push((kernel, row * y.row + column * y.pixel));
    }
    // All phases have as many rows and channel tiles, or calls do all of each.
    let shares = parts.first().and_then(|(kernel, _)| kernel.shares);
    if parts.iter().any(|(kernel, _)| kernel.shares != shares) {
        let share = Share::Whole;
        return self::deconv(KernelCtx { share, ..ctx }, deconv, mapping, x, y);
    }
    Ok(Kernel::sequence(parts).shared(shares))
}

impl Kernel {
    /// Joins kernels of an input, weights and an output, each with the number of elements from the
    /// start of the output to its own.
    fn sequence(parts: Vec<(Self, usize)>) -> Self {
        let mut modules = String::new();
        let mut calls = String::new();
        let mut weights: Vec<u8> = Vec::new();
        let shared = parts.iter().any(|(kernel, _)| kernel.shares.is_some());
        let (range, passed) = if shared {
            (", first: usize, end: usize", ", first, end")
        } else {
            ("", "")
        };
        for (idx, (kernel, offset)) in parts.into_iter().enumerate() {
            let symbol = kernel.symbol();
            let _ = writeln!(modules, "mod part_{idx} {{\n{}\n}}", kernel.source);
            let first = weights.len() / size_of::<f32>();
            let _ = writeln!(
                calls,
                "    part_{idx}::{symbol}(x, w.add({first}), y.add({offset}){passed});"
            );
            weights.extend(kernel.weights);
            weights.resize(weights.len().next_multiple_of(64), 0);
        }
        let text = format!(
            "{modules}pub unsafe extern \"C\" fn KERNEL(x: *const f32, w: *const f32, y: *mut f32{range}) {{\n{calls}}}\n"
        );
        let slots = vec![Slot::Input, Slot::Weights, Slot::Output];
        Self::named(&text, slots, weights)
    }
}
