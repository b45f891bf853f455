//! Fully connected layer of u8 by s8 on few rows, which are the pixels of a convolution.

use super::conv::ConvGeometry;
use super::qconv::{qconv, registers};
use super::share::Share;
use super::source::{Kernel, KernelCtx, KernelError, parameter};
use crate::backend::native::layout::{Border, Geometry, Layout};
use crate::backend::native::spec::{Conv, Dense};
use crate::space::Mapping;

/// Rows that share each weight that is read.
const MOST_ROWS: usize = 4;

/// Makes the kernel. Input, output and residual are flat, rows padded to a multiple of 32.
///
/// # Errors
/// [`KernelError::Unsupported`] if the mapping does not fit the shapes.
pub fn qdense(ctx: KernelCtx<'_>, dense: &Dense, mapping: &Mapping) -> Result<Kernel, KernelError> {
    let int = |name| parameter(mapping, name, 1);
    let table = ctx.table(Some(int("lanes")? as i64))?;
    let r = int("oc_vectors")?;
    let rows = (1..=dense.n.min(MOST_ROWS)).rev();
    let rows = rows
        .clone()
        .find(|&rows| registers(table, rows, r) <= table.registers);
    let place = |c: usize| Geometry::new([1, c, dense.n, 1], Layout::Flat, Border::default());
    let (x, y) = (place(dense.k), place(dense.m));
    let geometry = ConvGeometry {
        x,
        y,
        residual: dense.residual.map(|_| y),
        x_is_exclusive: false,
    };
    let mapping = Mapping::default()
        .with("lanes", table.lanes as i64)
        .with("oc_vectors", r as i64)
        .with("tile_w", 1i64)
        .with("tile_h", rows.unwrap_or(1) as i64)
        .with("unroll", int("unroll")? as i64);
    // Rows are few.
    let share = ctx.share.along(Share::Channels);
    qconv(
        KernelCtx { share, ..ctx },
        &dense.as_conv(),
        &mapping,
        &geometry,
    )
}

impl Dense {
    /// Returns the pointwise convolution that has rows for pixels.
    fn as_conv(&self) -> Conv {
        Conv {
            n: 1,
            groups: 1,
            input: [self.k, self.n, 1],
            output: [self.m, self.n, 1],
            kernel: [1, 1],
            stride: [1, 1],
            dilation: [1, 1],
            pad: [0, 0],
            epilogue: self.epilogue.clone(),
            weights: Vec::new(),
            bias: self.bias.clone(),
            residual: self.residual,
            scale: None,
            pooled: None,
            stored: true,
            quantized: self.quantized.clone(),
        }
    }
}
