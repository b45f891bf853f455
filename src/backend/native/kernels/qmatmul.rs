//! Product of a u8 matrix and a constant s8 one, whose rows are the pixels of a convolution.

use super::conv::ConvGeometry;
use super::matmul_tiling::or_untuned;
use super::qconv::{qconv, registers};
use super::share::Share;
use super::source::{Kernel, KernelCtx, KernelError, Slot, parameter, unsupported};
use crate::backend::native::isa;
use crate::backend::native::layout::{Border, Geometry, Layout};
use crate::backend::native::spec::{Conv, MatMul, Matrix, Quantized, Source};
use crate::device::Isa;
use crate::space::Mapping;

/// Columns whose sums begin with numbers on the stack.
const MOST_SUMS: usize = 1 << 14;

/// Makes the kernel; untuned if the mapping says nothing of products. The inner extent must be a multiple of 8, the number of columns one of 16,
/// rows must lie one after the other, and what is added be constant: one number a column.
///
/// # Errors
/// [`KernelError::Unsupported`] if they are not, or if the mapping does not fit.
pub fn qmatmul(
    ctx: KernelCtx<'_>,
    matmul: &MatMul,
    mapping: &Mapping,
) -> Result<Kernel, KernelError> {
    let Some(quantized) = &matmul.quantized else {
        return Err(unsupported("the product is not one of integers"));
    };
    let [m, k, n] = matmul.extents;
    if !qmatmul_fits([k, n]) {
        return Err(unsupported("rows do not divide into vectors"));
    }
    if !is_dense(&matmul.lhs, m, k, &matmul.batch) || !is_dense(&matmul.result, m, n, &matmul.batch)
    {
        return Err(unsupported("rows do not lie one after the other"));
    }
    let rows = matmul.n_rows();
    if quantized.sums && n > MOST_SUMS {
        return Err(unsupported(
            "too many columns to keep what their sums begin with",
        ));
    }
    let others = [matmul.addend.is_some(), quantized.sums];
    let others = others.into_iter().filter(|&is_there| is_there).count();
    let has_residual = matmul.operands.len() > 1 + others;
    let scales = quantized.weight_scales.iter();
    let conv = Conv {
        n: 1,
        groups: 1,
        input: [k, 1, rows],
        output: [n, 1, rows],
        kernel: [1, 1],
        stride: [1, 1],
        dilation: [1, 1],
        pad: [0, 0],
        epilogue: matmul.epilogue.clone(),
        weights: Vec::new(),
        bias: bias(matmul)?,
        residual: has_residual.then_some(matmul.output),
        scale: None,
        pooled: None,
        stored: true,
        quantized: Some(Quantized {
            weights: transposed(&quantized.weights, [k, n]),
            weight_scales: scales.map(|scale| scale * matmul.alpha).collect(),
            ..*quantized
        }),
    };
    let place = |c: usize| Geometry::new([1, c, 1, rows], Layout::Nhwc, Border::default());
    let geometry = ConvGeometry {
        x: place(k),
        y: place(n),
        residual: has_residual.then(|| place(n)),
        x_is_exclusive: false,
    };
    let mapping = or_untuned(mapping, || untuned_qmatmul(ctx.isa, matmul));
    let int = |name| parameter(&mapping, name, 1).map(|value| value as i64);
    let mapping = Mapping::default()
        .with("lanes", int("lanes")?)
        .with("oc_vectors", int("vectors")?)
        .with("tile_w", int("rows")?)
        .with("tile_h", 1i64)
        .with("unroll", int("unroll")?)
        .with(
            "order",
            if mapping.word("order") == Some("rows") {
                "px"
            } else {
                "oc"
            },
        );
    // All rows are pixels of one.
    let share = ctx.share.along(Share::Channels);
    let mut kernel = qconv(KernelCtx { share, ..ctx }, &conv, &mapping, &geometry)?;
    for slot in &mut kernel.slots {
        *slot = match *slot {
            Slot::Input => Slot::Source(0),
            Slot::Output => Slot::Result(0),
            Slot::Residual => Slot::Source(matmul.operands.len() - 1),
            other => other,
        };
    }
    Ok(kernel)
}

/// Returns how a product is computed untuned: tiles that fill the registers.
pub fn untuned_qmatmul(isa: Isa, matmul: &MatMul) -> Mapping {
    let table = isa::widest(isa);
    let is_even = (matmul.extents[2] / table.lanes).is_multiple_of(2);
    let vectors = if is_even { 2 } else { 1 };
    let most = matmul.n_rows().clamp(1, table.registers);
    let mut rows = (1..=most).rev();
    let rows = rows.find(|&rows| registers(table, rows, vectors) <= table.registers);
    Mapping::default()
        .with("lanes", table.lanes as i64)
        .with("rows", rows.unwrap_or(1) as i64)
        .with("vectors", vectors as i64)
        .with("unroll", 2i64)
        .with("order", "panels")
}

/// Returns whether there is a kernel for an inner extent and a number of columns.
pub fn qmatmul_fits([k, n]: [usize; 2]) -> bool {
    k.is_multiple_of(8) && n.is_multiple_of(16)
}

/// Returns whether all rows of all matrices lie one after the other.
fn is_dense(matrix: &Matrix, rows: usize, columns: usize, batch: &[usize]) -> bool {
    let mut next = rows * columns;
    let batches = batch.iter().zip(&matrix.batch).rev();
    let follows = batches.fold(true, |follows, (&extent, &stride)| {
        let follows = follows && (extent == 1 || stride == next);
        next *= extent;
        follows
    });
    follows && matrix.row == columns && matrix.column == 1
}

/// Returns what is added to each column.
fn bias(matmul: &MatMul) -> Result<Vec<f32>, KernelError> {
    let n = matmul.extents[2];
    let Some((matrix, factor)) = &matmul.addend else {
        return Ok(vec![0.0; n]);
    };
    let is_row = matrix.row == 0 && matrix.column == 1 && matrix.batch.iter().all(|&s| s == 0);
    let data = match matmul.operands.get(1) {
        Some(Source::Constant(tensor)) if is_row => tensor.as_f32(),
        _ => None,
    };
    let data = data.and_then(|data| data.get(..n));
    let data = data.ok_or_else(|| unsupported("what is added is not one number a column"))?;
    Ok(data.iter().map(|v| v * factor).collect())
}

fn transposed(weights: &[i8], [k, n]: [usize; 2]) -> Vec<i8> {
    let columns = (0..n).flat_map(|column| (0..k).map(move |row| row * n + column));
    columns.map(|at| weights[at]).collect()
}
