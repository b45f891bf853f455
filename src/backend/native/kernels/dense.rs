//! Fully connected layer on few rows.

use minijinja::value::Serde;
use minijinja::{Value, context};

use super::halves::halved;
use super::share::Share;
use super::source::{Kernel, KernelCtx, KernelError, Slot, parameter, unsupported};
use crate::backend::native::spec::Dense;
use crate::space::Mapping;

/// Makes the kernel. Input, output and residual are flat, rows padded to a multiple of 32.
///
/// # Errors
/// [`KernelError::Unsupported`] if the mapping does not fit the shapes.
pub fn dense(ctx: KernelCtx<'_>, dense: &Dense, mapping: &Mapping) -> Result<Kernel, KernelError> {
    let int = |name| parameter(mapping, name, 1);
    let table = ctx.table(Some(int("lanes")? as i64))?;
    let lanes = table.lanes;
    let (r, unroll) = (int("oc_vectors")?, int("unroll")?);
    let vectors = dense.m.div_ceil(lanes);
    if !vectors.is_multiple_of(r) || r * unroll + 1 > table.registers {
        return Err(KernelError::Unsupported(
            "outputs do not divide into tiles".to_owned(),
        ));
    }
    let half = matches!(mapping.word("weights"), Some("f16" | "rounded"));
    if half && !table.converts_halves() {
        return Err(unsupported("no instruction reads half precision"));
    }
    let (x_row, y_row) = (dense.k.next_multiple_of(32), dense.m.next_multiple_of(32));
    let values = context! {
        N => dense.n, K => dense.k, R => r, L => lanes, U => unroll,
        OG => vectors / r, OCP => vectors * lanes, XN => x_row, YN => y_row, QN => y_row,
        epilogue => Value::from(Serde(&dense.epilogue)), residual => dense.residual.is_some(), half,
    };
    let share = ctx.share.along(Share::Channels);
    let dividing = context! {
        share => share.word(), channels => share.bounds(Share::Channels, vectors / r),
    };
    let mut slots = vec![Slot::Input, Slot::Weights, Slot::Output];
    slots.extend(dense.residual.map(|_| Slot::Residual));
    let values = minijinja::value::merge_maps([values, dividing]);
    let packed = pack(dense, r * lanes);
    // Biases stay as they are: they are few.
    let (single, rest) = packed.split_at(if half { vectors * lanes } else { packed.len() });
    let mut kernel = Kernel::render(ctx, "dense.rs.j2", table, values, slots, single)?;
    let halves = halved(rest)?;
    kernel
        .weights
        .extend(halves.into_iter().flat_map(u16::to_le_bytes));
    Ok(kernel.shared(share.of(1, 1, vectors / r)))
}

/// Packs biases, then `[og][k][width]`.
fn pack(dense: &Dense, width: usize) -> Vec<f32> {
    let groups = dense.m.div_ceil(width);
    let mut packed = vec![0.0; groups * width * (dense.k + 1)];
    packed[..dense.m].copy_from_slice(&dense.bias);
    let base = groups * width;
    for (m, row) in dense.weights.chunks_exact(dense.k.max(1)).enumerate() {
        let column = base + m / width * dense.k * width + m % width;
        for (k, weight) in row.iter().enumerate() {
            packed[column + k * width] = *weight;
        }
    }
    packed
}
