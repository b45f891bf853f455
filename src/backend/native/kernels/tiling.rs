//! How a row of outputs is cut into register tiles, and which taps fall outside the input.

use serde::Serialize;

/// One pixel of a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Pixel {
    /// Running number in the tile.
    pub i: usize,
    /// Row in the tile.
    pub y: usize,
    /// Column in the tile.
    pub xx: usize,
}

/// A tile whose code is its own: by size and by the taps it leaves out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Variant {
    /// Name of its function.
    pub name: String,
    /// Columns.
    pub tw: usize,
    /// `mask[kw][column]`: whether the tap falls outside; empty if none does.
    pub mask: Vec<Vec<bool>>,
    /// Its pixels.
    pub pixels: Vec<Pixel>,
}

/// A run of equal tiles along a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Column {
    /// Name of the variant.
    pub variant: String,
    /// First output column.
    pub first: usize,
    /// How many tiles.
    pub count: usize,
    /// Columns of each.
    pub tw: usize,
}

/// A width of a row and the taps that matter at its ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// Output columns.
    pub ow: usize,
    /// Input columns.
    pub iw: usize,
    /// Kernel columns.
    pub kw: usize,
    /// Stride.
    pub stride: usize,
    /// Dilation.
    pub dilation: usize,
    /// Zero columns to the left.
    pub pad: usize,
    /// Whether taps outside the input are left out; else they read zeros.
    pub skip: bool,
}

/// Cuts a row into tiles of `tw` columns and `th` rows; the last may be narrower. Returns the
/// variants and where each runs.
pub(super) fn cut(row: Row, th: usize, tw: usize) -> (Vec<Variant>, Vec<Column>) {
    let mut variants: Vec<Variant> = Vec::new();
    let mut columns: Vec<Column> = Vec::new();
    let mut first = 0;
    while first < row.ow {
        let tw = tw.min(row.ow - first);
        let mask = row.mask(first, tw);
        let name = if let Some(variant) = variants.iter().find(|v| v.tw == tw && v.mask == mask) {
            variant.name.clone()
        } else {
            let name = format!("tile{th}x{tw}_{}", variants.len());
            let pixels = (0..th * tw)
                .map(|i| Pixel {
                    i,
                    y: i / tw,
                    xx: i % tw,
                })
                .collect();
            variants.push(Variant {
                name: name.clone(),
                tw,
                mask,
                pixels,
            });
            name
        };
        match columns.last_mut() {
            Some(last) if last.variant == name => last.count += 1,
            _ => columns.push(Column {
                variant: name,
                first,
                count: 1,
                tw,
            }),
        }
        first += tw;
    }
    (variants, columns)
}

impl Row {
    fn mask(&self, first: usize, tw: usize) -> Vec<Vec<bool>> {
        let outside = |kw: usize, column: usize| {
            let at = (first + column) * self.stride + kw * self.dilation;
            at < self.pad || at >= self.pad + self.iw
        };
        let mask: Vec<Vec<bool>> = (0..self.kw)
            .map(|kw| {
                (0..tw)
                    .map(|column| self.skip && outside(kw, column))
                    .collect()
            })
            .collect();
        if mask.iter().flatten().any(|&outside| outside) {
            mask
        } else {
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Row = Row {
        ow: 10,
        iw: 10,
        kw: 3,
        stride: 1,
        dilation: 1,
        pad: 1,
        skip: true,
    };

    #[test]
    fn tiles_cover_the_row_once() {
        for tw in 1..=12 {
            let (variants, columns) = cut(ROW, 1, tw);
            let mut at = 0;
            for column in &columns {
                assert_eq!(column.first, at);
                at += column.count * column.tw;
                assert!(variants.iter().any(|v| v.name == column.variant));
            }
            assert_eq!(at, ROW.ow);
        }
    }

    #[test]
    fn only_tiles_at_the_ends_leave_taps_out() {
        let (variants, columns) = cut(ROW, 1, 2);
        let masked: Vec<_> = columns
            .iter()
            .filter(|c| {
                variants
                    .iter()
                    .any(|v| v.name == c.variant && !v.mask.is_empty())
            })
            .map(|c| c.first)
            .collect();
        assert_eq!(masked, [0, 8]);
        let (variants, _) = cut(Row { skip: false, ..ROW }, 1, 2);
        assert_eq!(variants.len(), 1);
    }
}
