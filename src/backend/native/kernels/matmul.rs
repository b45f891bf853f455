//! Products of matrices.

use minijinja::value::Serde;
use minijinja::{Value, context};
use serde_json::json;

use super::loops::{bind_sources, signature};
use super::share::{Share, Shares};
use super::source::{Kernel, KernelCtx, KernelError, Slot};
use crate::backend::native::isa::{self, VectorTable};
use crate::backend::native::spec::{MatMul, Matrix, Source, literal};
use crate::graph::Tensor;

/// Bytes of the left operand that one pass over the panels reads: half of a small L2 cache.
const LEFT_BYTES: usize = 256 << 10;
/// Largest number of vectors in a panel.
const MOST_VECTORS: usize = 4;
/// Bytes of a right operand that is read as it lies, so that it stays in L1.
const UNPACKED_BYTES: usize = 24 << 10;

/// How the work is cut: the numbers that a mapping may choose one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tiling {
    /// Rows of a tile.
    rows: usize,
    /// Vectors of a tile.
    vectors: usize,
}

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

/// Makes the kernel.
///
/// # Errors
/// [`KernelError::Render`] if the template fails.
pub fn matmul(ctx: KernelCtx<'_>, matmul: &MatMul) -> Result<Kernel, KernelError> {
    let table = isa::widest(ctx.isa);
    let [m, k, n] = matmul.extents;
    let tiling = Tiling::new(m, n, table);
    let width = tiling.vectors * table.lanes;
    let mut operands = matmul.operands.clone();
    let shared = matmul.rhs.batch.iter().all(|&stride| stride == 0);
    let constant = match &operands[1] {
        Source::Constant(tensor) if shared => tensor.as_f32(),
        _ => None,
    };
    let constant = constant.map(|data| pack(data, &matmul.rhs, [k, n], width));
    let is_constant = constant.is_some();
    if let Some(packed) = constant {
        operands[1] = Source::Constant(Tensor::from_f32(packed).into());
    }
    let reads_rows = matmul.rhs.column == 1 && n.is_multiple_of(table.lanes);
    let is_small = k * n * size_of::<f32>() <= UNPACKED_BYTES || m <= 2 * tiling.rows;
    let packs = !(is_constant || reads_rows && is_small);
    let room = if packs {
        n.div_ceil(width) * width * k * size_of::<f32>()
    } else {
        0
    };
    let depth = matmul.rhs.batch.iter().rposition(|&stride| stride > 0);
    let packed = packs || is_constant;
    let has_residual = operands.len() > 2 + usize::from(matmul.addend.is_some());
    let addend = matmul.addend.as_ref();
    let (row_tiles, block) = tiling.rows_of(m, k);
    let panels = n / width;
    let rest = n % width;
    let last = (rest > 0)
        .then(|| json!({ "vectors": rest.div_ceil(table.lanes), "part": rest % table.lanes }));
    let whole = (panels > 0).then(|| json!({ "vectors": tiling.vectors, "part": 0 }));
    let kinds: Vec<_> = whole.iter().chain(&last).cloned().collect();
    let n_panels = panels + usize::from(last.is_some());
    let divided = Divided::new(ctx.share, matmul, tiling.rows, n_panels, packs);
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
        M => m, K => k, N => n, ROWS => tiling.rows, R => tiling.vectors,
        REST => m % tiling.rows, BLOCK => block,
        XR => matmul.lhs.row, XK => matmul.lhs.column, YR => matmul.result.row,
        BK => if packed { width } else { matmul.rhs.row },
        BP => if packed { width * k } else { width },
        row_tiles, panels,
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

impl Tiling {
    /// Returns the tiling that should take the fewest cycles for a result of that size.
    fn new(m: usize, n: usize, table: VectorTable) -> Self {
        // A broadcast and, without fused multiply-add, a product need registers of their own.
        let free = table.registers - 2;
        let tilings = (1..=MOST_VECTORS).flat_map(|vectors| {
            let most = (free.saturating_sub(vectors) / vectors).max(1);
            (1..=most.min(m.max(1))).map(move |rows| Self { rows, vectors })
        });
        tilings
            .min_by_key(|tiling| tiling.cost(m, n, table.lanes))
            .unwrap_or(Self {
                rows: 1,
                vectors: 1,
            })
    }

    /// Returns the estimated half-cycles for each step along the inner extent.
    fn cost(self, m: usize, n: usize, lanes: usize) -> usize {
        let of_panel = |vectors: usize| {
            let of_rows = |rows: usize| {
                // Two multiply-adds and two loads a cycle; a short chain waits for its results.
                (rows * vectors).max(rows + vectors).max(8) + 1
            };
            let rest = m % self.rows;
            m / self.rows * of_rows(self.rows) + if rest > 0 { of_rows(rest) } else { 0 }
        };
        let vectors = n.div_ceil(lanes);
        let rest = vectors % self.vectors;
        vectors / self.vectors * of_panel(self.vectors) + if rest > 0 { of_panel(rest) } else { 0 }
    }

    /// Returns the heights of the tiles of `m` rows, and how many rows one pass takes.
    fn rows_of(self, m: usize, k: usize) -> (Vec<usize>, usize) {
        let mut heights = Vec::new();
        if m >= self.rows {
            heights.push(self.rows);
        }
        if !m.is_multiple_of(self.rows) {
            heights.push(m % self.rows);
        }
        let tiles = LEFT_BYTES / (self.rows * k.max(1) * size_of::<f32>());
        (heights, tiles.max(1) * self.rows)
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
    use crate::device::Isa;

    #[test]
    fn tiles_fill_the_registers_and_waste_no_columns() {
        let wide = isa::widest(Isa::X86V4);
        let tiling = Tiling::new(128, 1536, wide);
        assert!(tiling.rows * tiling.vectors >= 20, "{tiling:?}");
        assert!(tiling.rows * tiling.vectors + tiling.vectors < wide.registers);
        assert_eq!(Tiling::new(128, 32, wide).vectors, 2);
        assert_eq!(
            Tiling::new(1, 5, wide),
            Tiling {
                rows: 1,
                vectors: 1
            }
        );
        let narrow = isa::widest(Isa::X86V2);
        let tiling = Tiling::new(100, 100, narrow);
        assert!(tiling.rows * tiling.vectors + tiling.vectors + 2 <= narrow.registers);
    }

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
