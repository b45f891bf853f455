//! How products of matrices of f32 are cut and read: what a mapping says, and what is untuned.

use std::borrow::Cow;

use super::source::{KernelCtx, KernelError, parameter, unsupported};
use crate::backend::native::isa::{self, VectorTable};
use crate::backend::native::spec::{MatMul, Source};
use crate::device::Isa;
use crate::space::Mapping;

/// KiB of the left operand that one pass over the panels reads: half of a small L2 cache.
const LEFT_KIB: usize = 256;
/// Largest number of vectors in a panel, untuned.
const MOST_VECTORS: usize = 4;
/// Bytes of a right operand that is read as it lies, so that it stays in L1.
const UNPACKED_BYTES: usize = 24 << 10;

/// How a product is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tiling {
    pub(super) table: VectorTable,
    /// Rows and vectors of a tile.
    pub(super) tile: Tile,
    /// Steps along the inner extent in one turn of the innermost loop.
    pub(super) unroll: usize,
    /// Steps along the inner extent that are summed before results go back to memory: all of them,
    /// or fewer.
    pub(super) depth: usize,
    /// Rows of the left operand that one pass over the panels reads.
    pub(super) pass: usize,
    /// Whether a tile of rows goes along all panels before the next one; else a panel along all rows.
    pub(super) is_by_rows: bool,
    /// Whether the right operand is read as it lies; else in panels, one after the other.
    pub(super) reads_rows: bool,
}

/// Rows by vectors of accumulators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tile {
    pub(super) rows: usize,
    pub(super) vectors: usize,
}

impl Tiling {
    /// Reads a mapping, or the untuned one where it says nothing of products.
    ///
    /// # Errors
    /// [`KernelError::Unsupported`] if it does not fit the extents or the registers.
    pub(super) fn new(
        ctx: KernelCtx<'_>,
        matmul: &MatMul,
        mapping: &Mapping,
    ) -> Result<Self, KernelError> {
        let mapping = or_untuned(mapping, || untuned_matmul(ctx.isa, matmul));
        let int = |name| parameter(&mapping, name, 1);
        let [m, k, n] = matmul.extents;
        let table = ctx.table(Some(int("lanes")? as i64))?;
        let tile = Tile {
            rows: int("rows")?.min(m.max(1)),
            vectors: int("vectors")?,
        };
        table.expect_room(tile.rows * tile.vectors + tile.vectors + 1)?;
        let depth = match parameter(&mapping, "depth", 0)? {
            0 => k,
            depth => depth.min(k),
        };
        let reads_rows = mapping.word("right") == Some("rows");
        if reads_rows && !rows_hold_vectors(matmul, table.lanes) {
            return Err(unsupported("rows of the right operand hold no vectors"));
        }
        let bytes_of_tile = tile.rows * depth.max(1) * size_of::<f32>();
        let tiles = (int("pass")? << 10) / bytes_of_tile;
        Ok(Self {
            table,
            tile,
            unroll: int("unroll")?.min(k.max(1)),
            depth,
            pass: (tiles.max(1) * tile.rows).min(n_rows(m, tile.rows)),
            is_by_rows: mapping.word("order") == Some("rows"),
            reads_rows: reads_rows && n > 0,
        })
    }

    /// Returns the heights of the tiles of `m` rows.
    pub(super) fn heights(&self, m: usize) -> Vec<usize> {
        let rows = self.tile.rows;
        let whole = (m >= rows).then_some(rows);
        let rest = Some(m % rows).filter(|rest| *rest > 0);
        whole.into_iter().chain(rest).collect()
    }
}

/// Returns how a product is computed untuned: what should take the fewest cycles.
pub fn untuned_matmul(isa: Isa, matmul: &MatMul) -> Mapping {
    let table = isa::widest(isa);
    let [m, k, n] = matmul.extents;
    let tile = Tile::new(m, n, table);
    let is_small = k * n * size_of::<f32>() <= UNPACKED_BYTES || m <= 2 * tile.rows;
    let is_known = packed_before(matmul).is_some();
    let reads_rows = !is_known && is_small && rows_hold_vectors(matmul, table.lanes);
    Mapping::default()
        .with("lanes", table.lanes as i64)
        .with("rows", tile.rows as i64)
        .with("vectors", tile.vectors as i64)
        .with("unroll", 1i64)
        .with("depth", 0i64)
        .with("pass", LEFT_KIB as i64)
        .with("order", "panels")
        .with("right", if reads_rows { "rows" } else { "panels" })
}

/// Returns a mapping, or the untuned one where it says nothing of products.
pub(super) fn or_untuned(mapping: &Mapping, untuned: impl FnOnce() -> Mapping) -> Cow<'_, Mapping> {
    if mapping.int("rows").is_some() {
        Cow::Borrowed(mapping)
    } else {
        Cow::Owned(untuned())
    }
}

/// Returns whether rows of the right operand can be read in vectors as they lie.
fn rows_hold_vectors(matmul: &MatMul, lanes: usize) -> bool {
    matmul.rhs.column == 1 && matmul.extents[2].is_multiple_of(lanes)
}

/// Returns the numbers of a right operand that is known and the same for all matrices.
pub(super) fn packed_before(matmul: &MatMul) -> Option<&[f32]> {
    match matmul.operands.get(1)? {
        Source::Constant(tensor) if matmul.rhs.batch.iter().all(|&stride| stride == 0) => {
            tensor.as_f32()
        }
        _ => None,
    }
}

fn n_rows(m: usize, tile: usize) -> usize {
    m.next_multiple_of(tile).max(tile)
}

impl Tile {
    /// Returns the tile that should take the fewest cycles for a result of that size.
    fn new(m: usize, n: usize, table: VectorTable) -> Self {
        // A broadcast and, without fused multiply-add, a product need registers of their own.
        let free = table.registers - 2;
        let tiles = (1..=MOST_VECTORS).flat_map(|vectors| {
            let most = (free.saturating_sub(vectors) / vectors).max(1);
            (1..=most.min(m.max(1))).map(move |rows| Self { rows, vectors })
        });
        tiles
            .min_by_key(|tile| tile.cost(m, n, table.lanes))
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fill_the_registers_and_waste_no_columns() {
        let wide = isa::widest(Isa::X86V4);
        let tile = Tile::new(128, 1536, wide);
        assert!(tile.rows * tile.vectors >= 20, "{tile:?}");
        assert!(tile.rows * tile.vectors + tile.vectors < wide.registers);
        assert_eq!(Tile::new(128, 32, wide).vectors, 2);
        assert_eq!(
            Tile::new(1, 5, wide),
            Tile {
                rows: 1,
                vectors: 1
            }
        );
        let narrow = isa::widest(Isa::X86V2);
        let tile = Tile::new(100, 100, narrow);
        assert!(tile.rows * tile.vectors + tile.vectors + 2 <= narrow.registers);
    }
}
