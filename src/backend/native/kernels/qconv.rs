//! Convolution of u8 by s8 with vector lanes over output channels.

use super::conv::ConvGeometry;
use super::source::{Kernel, KernelCtx, KernelError};
use crate::backend::native::spec::Conv;
use crate::space::Mapping;

/// Makes the kernel.
///
/// # Errors
/// [`KernelError::Unsupported`] if the mapping does not fit the shapes or layouts.
pub fn qconv(
    ctx: KernelCtx<'_>,
    _conv: &Conv,
    _mapping: &Mapping,
    _geometry: &ConvGeometry,
) -> Result<Kernel, KernelError> {
    Err(KernelError::Unsupported(format!(
        "{} has no kernel of integers yet",
        ctx.isa
    )))
}
