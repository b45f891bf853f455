//! Products of matrices.

use minijinja::value::Serde;
use minijinja::{Value, context};
use serde_json::json;

use super::loops::{bind_sources, signature};
use super::matmul_tiling::{Tiling, packed_before};
use super::share::{Share, Shares};
use super::source::{Kernel, KernelCtx, KernelError, Slot};
use crate::backend::native::spec::{MatMul, Matrix, Source, literal};
use crate::graph::Tensor;
use crate::space::Mapping;

/// What is divided among calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Divided {
    /// The outermost loop over matrices.
    Matrices,
    /// The rows of the result, in tiles.
    Rows,
    /// The columns of the result, in panels.
    Panels,
}

/// Makes the kernel; untuned if the mapping says nothing of products.
///
/// # Errors
/// [`KernelError::Unsupported`] if the mapping does not fit the extents, [`KernelError::Render`] if
/// the template fails.
pub fn matmul(
    ctx: KernelCtx<'_>,
    matmul: &MatMul,
    mapping: &Mapping,
) -> Result<Kernel, KernelError> {
    let tiling = Tiling::new(ctx, matmul, mapping)?;
    let (table, tile) = (tiling.table, tiling.tile);
    let [m, k, n] = matmul.extents;
    let width = tile.vectors * table.lanes;
    let mut operands = matmul.operands.clone();
    let known = packed_before(matmul).filter(|_| !tiling.reads_rows);
    if let Some(data) = known {
        let packed = pack(data, &matmul.rhs, [k, n], width);
        operands[1] = Source::Constant(Tensor::from_f32(packed).into());
    }
    let packed = !tiling.reads_rows;
    // Of nothing there are no panels.
    let packs = packed && known.is_none() && k * n > 0;
    let room = if packs {
        n.div_ceil(width) * width * k * size_of::<f32>()
    } else {
        0
    };
    let depth = matmul.rhs.batch.iter().rposition(|&stride| stride > 0);
    let has_residual = operands.len() > 2 + usize::from(matmul.addend.is_some());
    let addend = matmul.addend.as_ref();
    let panels = n / width;
    let rest = n % width;
    let last = (rest > 0)
        .then(|| json!({ "vectors": rest.div_ceil(table.lanes), "part": rest % table.lanes }));
    let whole = (panels > 0).then(|| json!({ "vectors": tile.vectors, "part": 0 }));
    let kinds: Vec<_> = whole.iter().chain(&last).cloned().collect();
    let n_panels = panels + usize::from(last.is_some());
    let divided = Divided::new(ctx.share, matmul, tile.rows, n_panels, packs);
    let bounds = |what, n| {
        let is_divided = divided.is_some_and(|(divided, _)| divided == what);
        let share = if is_divided {
            Share::Rows
        } else {
            Share::Whole
        };
        share.bounds(Share::Rows, n)
    };
    let facts = context! {
        rows => bounds(Divided::Rows, m), shared_panels => bounds(Divided::Panels, n_panels),
        matrices => matmul.batch.first().map(|&n| bounds(Divided::Matrices, n)),
        M => m, K => k, N => n, ROWS => tile.rows, R => tile.vectors,
        REST => m % tile.rows, BLOCK => tiling.pass, U => tiling.unroll,
        DEPTH => (tiling.depth < k).then_some(tiling.depth), by_rows => tiling.is_by_rows,
        XR => matmul.lhs.row, XK => matmul.lhs.column, YR => matmul.result.row,
        BK => if packed { width } else { matmul.rhs.row },
        BP => if packed { width * k } else { width },
        row_tiles => tiling.heights(m), panels,
        panel_kinds => Value::from(Serde(&kinds)), last => Value::from(Serde(&last)),
    };
    let places = context! {
        packs => packs.then(|| context! {
            row => matmul.rhs.row, column => matmul.rhs.column,
            depth => depth.map_or(0, |depth| depth + 1),
        }),
        batch => &matmul.batch,
        x_at => place(&matmul.lhs), b_at => place(&matmul.rhs), y_at => place(&matmul.result),
        a_at => addend.map(|(matrix, _)| place(matrix)),
        AR => addend.map_or(0, |(matrix, _)| matrix.row),
        AN => addend.map_or(0, |(matrix, _)| matrix.column),
        addend => addend.is_some(),
        alpha => factor(matmul.alpha), beta => addend.and_then(|(_, beta)| factor(*beta)),
        epilogue => Value::from(Serde(&matmul.epilogue)),
        residual => has_residual.then(|| format!("x{}", operands.len() - 1)),
        parameters => signature(operands.len(), 1, room, divided.is_some()),
    };
    let (mut slots, weights) = bind_sources(&operands);
    slots.push(Slot::Result(0));
    if room > 0 {
        slots.push(Slot::Room(room));
    }
    let values = context! { ..facts, ..places };
    let mut kernel = Kernel::render(ctx, "matmul.rs.j2", table, values, slots, &[])?;
    kernel.weights = weights;
    Ok(kernel.shared(divided.map(|(_, shares)| shares)))
}

impl Divided {
    /// Chooses what is divided, and how far; `None` if nothing is.
    fn new(
        share: Share,
        matmul: &MatMul,
        tile_rows: usize,
        panels: usize,
        packs: bool,
    ) -> Option<(Self, Shares)> {
        let rows = matmul.extents[0];
        let matrices = matmul.batch.first().copied().unwrap_or(1);
        // Whoever packs a right operand uses all of its panels.
        if share == Share::Channels && !packs {
            return Some((Self::Panels, share.of(0, 1, panels)?));
        }
        let is_packed_each = packs && matmul.rhs.batch.first().is_some_and(|&stride| stride > 0);
        if matrices > 1 && (is_packed_each || matrices >= rows.div_ceil(tile_rows)) {
            return Some((Self::Matrices, share.along(Share::Rows).of(matrices, 1, 0)?));
        }
        Some((Self::Rows, share.of_rows(rows, tile_rows)?))
    }
}

/// Packs a constant as the template does at run time: panels of `width` columns.
fn pack(data: &[f32], matrix: &Matrix, [k, n]: [usize; 2], width: usize) -> Vec<f32> {
    let mut packed = vec![0.0; n.div_ceil(width) * width * k];
    for row in 0..k {
        for column in 0..n {
            packed[(column / width * k + row) * width + column % width] =
                data[row * matrix.row + column * matrix.column];
        }
    }
    packed
}

fn factor(value: f32) -> Option<String> {
    (value.to_bits() != 1f32.to_bits()).then(|| literal(value))
}

/// Returns the index expression of a matrix in loops over `i0`, `i1`, ….
fn place(matrix: &Matrix) -> String {
    let terms: Vec<String> = matrix
        .batch
        .iter()
        .enumerate()
        .filter(|(_, stride)| **stride > 0)
        .map(|(idx, stride)| format!("i{idx} * {stride}"))
        .collect();
    if terms.is_empty() {
        "0".to_owned()
    } else {
        terms.join(" + ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_packed_into_panels_with_zeros_beyond_the_last_column() {
        let matrix = Matrix {
            row: 1,
            column: 2,
            batch: Vec::new(),
        };
        // Stored `[n, k]`, as `transB` means.
        let data = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(
            pack(&data, &matrix, [2, 3], 2),
            [1.0, 3.0, 2.0, 4.0, 5.0, 0.0, 6.0, 0.0]
        );
    }
}
