//! Product of a u8 matrix and a constant s8 one.

use super::source::{Kernel, KernelCtx, KernelError};
use crate::backend::native::spec::MatMul;

/// Makes the kernel.
///
/// # Errors
/// [`KernelError::Unsupported`] if the mapping does not fit the shapes or layouts.
pub fn qmatmul(ctx: KernelCtx<'_>, _matmul: &MatMul) -> Result<Kernel, KernelError> {
    Err(KernelError::Unsupported(format!(
        "{} has no kernel of integers yet",
        ctx.isa
    )))
}
