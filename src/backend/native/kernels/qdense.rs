//! Fully connected layer of u8 by s8 on few rows.

use super::source::{Kernel, KernelCtx, KernelError};
use crate::backend::native::spec::Dense;
use crate::space::Mapping;

/// Makes the kernel.
///
/// # Errors
/// [`KernelError::Unsupported`] if the mapping does not fit the shapes or layouts.
pub fn qdense(
    ctx: KernelCtx<'_>,
    _dense: &Dense,
    _mapping: &Mapping,
) -> Result<Kernel, KernelError> {
    Err(KernelError::Unsupported(format!(
        "{} has no kernel of integers yet",
        ctx.isa
    )))
}
