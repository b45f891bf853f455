//! How values lie in memory: layouts, and the strides that follow from them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::backend::View;
use crate::graph::Shape;

/// An order of the elements of a value `[n, c, h, w]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Layout {
    /// Row-major `[n, c, h, w]`.
    Nchw,
    /// Channels innermost.
    Nhwc,
    /// Blocks of that many channels innermost: `[n, c / b, h, w, b]`.
    Blocked(usize),
    /// One number a channel, one after the other: what all layouts become at `h = w = 1`.
    Flat,
}

/// Elements around the rows and columns of a value: zeros, or the byte that stands for zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Border {
    /// Rows above.
    pub top: usize,
    /// Columns to the left.
    pub left: usize,
    /// Rows below.
    pub bottom: usize,
    /// Columns to the right.
    pub right: usize,
    /// What each byte of it holds.
    pub fill: u8,
}

/// A value's place within its buffer: extents and strides, in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Geometry {
    /// Order of the elements.
    pub layout: Layout,
    /// Extents `[n, c, h, w]`.
    pub dims: [usize; 4],
    /// What is around it.
    pub border: Border,
    /// Channels that lie next to each other.
    pub block: usize,
    /// Elements between columns.
    pub pixel: usize,
    /// Elements between rows.
    pub row: usize,
    /// Elements between channel blocks.
    pub plane: usize,
    /// Elements between batches.
    pub batch: usize,
    /// Elements in all.
    pub len: usize,
}

/// A word that names no layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a layout: expected nchw, nhwc, nchw8c, nchw16c, nchw32c or flat")]
pub struct ParseLayoutError(String);

impl Border {
    /// Returns the smallest border that contains both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self {
            top: self.top.max(other.top),
            left: self.left.max(other.left),
            bottom: self.bottom.max(other.bottom),
            right: self.right.max(other.right),
            fill: if self.is_empty() {
                other.fill
            } else {
                self.fill
            },
        }
    }

    /// Returns whether there is no row and no column of it.
    pub fn is_empty(self) -> bool {
        [self.top, self.left, self.bottom, self.right] == [0; 4]
    }

    /// Returns the border with other bytes.
    #[must_use]
    pub fn filled(self, fill: u8) -> Self {
        Self { fill, ..self }
    }
}

/// Channels of NHWC and flat values are padded to a multiple of these, so that vectors fit.
const NHWC_ALIGN: usize = 8;
const FLAT_ALIGN: usize = 32;

impl Geometry {
    /// Lays out a value of extents `[n, c, h, w]` with a border.
    pub fn new(dims: [usize; 4], layout: Layout, border: Border) -> Self {
        let [n, c, h, w] = dims;
        let (block, padded) = match layout {
            Layout::Nchw => (1, c),
            Layout::Nhwc => {
                let padded = c.next_multiple_of(NHWC_ALIGN);
                (padded, padded)
            }
            Layout::Blocked(block) => (block, c.next_multiple_of(block)),
            Layout::Flat => {
                let padded = c.next_multiple_of(FLAT_ALIGN);
                (padded, padded)
            }
        };
        let row = (w + border.left + border.right) * block;
        let plane = row * (h + border.top + border.bottom);
        let batch = plane * (padded / block);
        Self {
            layout,
            dims,
            border,
            block,
            pixel: block,
            row,
            plane,
            batch,
            len: batch * n,
        }
    }

    /// Returns the geometry of a buffer that the caller of the model owns: dense, row-major.
    pub fn external(dims: [usize; 4]) -> Self {
        Self::new(dims, Layout::Nchw, Border::default())
    }

    /// Returns the distance from the start of the buffer to element `(0, 0, 0, 0)`.
    pub fn origin(&self) -> usize {
        self.border.top * self.row + self.border.left * self.block
    }

    /// Returns every `stride[0]`th row and `stride[1]`th column, as a value of its own.
    #[must_use]
    pub fn strided(self, stride: [usize; 2]) -> Self {
        Self {
            pixel: self.pixel * stride[1],
            row: self.row * stride[0],
            ..self
        }
    }

    /// Returns the buffer of as many rows as given, borders included, of the value.
    #[must_use]
    pub fn windowed(self, rows: usize) -> Self {
        let planes = self.len / self.plane.max(1);
        let plane = self.row * rows;
        let len = plane * planes;
        let batch = len / self.dims[0].max(1);
        Self {
            plane,
            batch,
            len,
            ..self
        }
    }

    /// Returns the view of a value whose buffer starts at `offset`.
    pub fn view(&self, offset: usize) -> View {
        View {
            offset: offset + self.origin(),
            dims: self.dims,
            block: self.block,
            n_stride: self.batch,
            block_stride: self.plane,
            row_stride: self.row,
        }
    }

    /// Returns whether vectors of `lanes` channels can be loaded and stored.
    pub fn holds_vectors(&self, lanes: usize) -> bool {
        self.block.is_multiple_of(lanes)
    }

    /// Returns whether the elements are dense and row-major.
    pub fn is_dense(&self) -> bool {
        let [n, c, h, w] = self.dims;
        let plain = self.layout == Layout::Nchw && self.border.is_empty();
        plain || (self.layout == Layout::Flat && n == 1 && h * w == 1 && c > 0)
    }
}

/// Returns the extents `[n, c, h, w]` that a shape is seen as: `[n, c, w]` and `[n, c]` get ones,
/// other ranks are one row.
pub fn dims4(shape: &Shape) -> [usize; 4] {
    match *shape.dims() {
        [n, c, h, w] => [n, c, h, w],
        [n, c, w] => [n, c, 1, w],
        [n, c] => [n, c, 1, 1],
        [c] => [1, c, 1, 1],
        _ => [1, 1, 1, shape.len()],
    }
}

/// Returns whether a value of these extents has one layout only.
pub fn is_flat(dims: [usize; 4]) -> bool {
    dims[2] * dims[3] == 1
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nchw => f.write_str("nchw"),
            Self::Nhwc => f.write_str("nhwc"),
            Self::Blocked(block) => write!(f, "nchw{block}c"),
            Self::Flat => f.write_str("flat"),
        }
    }
}

impl FromStr for Layout {
    type Err = ParseLayoutError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "nchw" => Ok(Self::Nchw),
            "nhwc" => Ok(Self::Nhwc),
            "nchw8c" => Ok(Self::Blocked(8)),
            "nchw16c" => Ok(Self::Blocked(16)),
            "nchw32c" => Ok(Self::Blocked(32)),
            "flat" => Ok(Self::Flat),
            _ => Err(ParseLayoutError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(dims: [usize; 4], layout: Layout, border: Border) {
        let geometry = Geometry::new(dims, layout, border);
        let view = geometry.view(0);
        let [n, c, h, w] = dims;
        let mut seen = std::collections::BTreeSet::new();
        for (n, c, h, w) in (0..n).flat_map(|n| {
            (0..c).flat_map(move |c| (0..h).flat_map(move |h| (0..w).map(move |w| (n, c, h, w))))
        }) {
            let index = view.index(n, c, h, w);
            assert!(index < geometry.len, "{layout} {border:?}");
            assert!(seen.insert(index), "two elements share a place in {layout}");
        }
    }

    #[test]
    fn every_element_has_a_place_of_its_own_in_every_layout() {
        let border = Border {
            top: 1,
            left: 2,
            bottom: 3,
            right: 1,
            fill: 0,
        };
        for layout in [
            Layout::Nchw,
            Layout::Nhwc,
            Layout::Blocked(8),
            Layout::Blocked(16),
            Layout::Blocked(32),
        ] {
            check([2, 19, 3, 5], layout, Border::default());
            check([2, 19, 3, 5], layout, border);
        }
        check([3, 19, 1, 1], Layout::Flat, Border::default());
    }

    #[test]
    fn names_round_trip() {
        for name in ["nchw", "nhwc", "nchw8c", "nchw16c", "nchw32c", "flat"] {
            assert_eq!(name.parse::<Layout>().unwrap().to_string(), name);
        }
        assert!("nchw4c".parse::<Layout>().is_err());
    }
}
