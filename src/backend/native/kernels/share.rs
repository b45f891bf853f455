//! Dividing the work of a kernel among calls: among threads, or row by row through a segment.

use minijinja::Value;
use minijinja::value::Serde;
use serde::Serialize;

use crate::backend::native::spec::Conv;

/// What a call of a kernel does; a kernel that cannot be divided along the axis that is asked for
/// may take the other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Share {
    /// Everything.
    #[default]
    Whole,
    /// Some rows of the output.
    Rows,
    /// Some channels of the output.
    Channels,
}

/// The units that the work of a kernel is divided into. Calls for disjoint ranges that cover all
/// units do together what one call for all of them does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// What they are.
    pub axis: Share,
    /// How many there are.
    pub units: usize,
    /// Ranges of a multiple of these are fastest.
    pub step: usize,
    /// Ranges begin at a multiple of these, and end at one or with the last unit.
    pub grain: usize,
    /// Whether calls may run at the same time; else they run one after the other, in the order of
    /// their units.
    pub concurrent: bool,
}

impl Shares {
    /// Returns how many ranges there can be at most.
    pub(in crate::backend::native) fn n_ranges(self) -> usize {
        self.units.div_ceil(self.grain.max(1))
    }
}

/// The bounds of a loop over rows or channel tiles, as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Bounds {
    first: String,
    end: String,
}

impl Share {
    /// Returns the name that templates know it by, nothing for everything.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Whole => "",
            Self::Rows => "rows",
            Self::Channels => "channels",
        }
    }

    /// Returns how the work of a convolution is divided.
    pub(super) fn of_conv(self, conv: &Conv, step: usize, tiles: usize) -> Option<Shares> {
        let shares = self.of(conv.output[1], step, tiles)?;
        Some(Shares {
            // Means over rows are summed up call by call.
            concurrent: self == Self::Channels || conv.pooled.is_none(),
            ..shares
        })
    }

    /// Returns how a kernel is divided that makes `grain` rows at a time.
    pub(super) fn of_rows(self, rows: usize, grain: usize) -> Option<Shares> {
        let shares = self.along(Self::Rows).of(rows, grain, 0)?;
        Some(Shares { grain, ..shares })
    }

    /// Returns how a kernel is divided that can be divided along one axis only.
    pub(super) fn along(self, axis: Self) -> Self {
        match self {
            Self::Whole => Self::Whole,
            Self::Rows | Self::Channels => axis,
        }
    }

    /// Returns how the work of a kernel with rows and channel tiles is divided.
    pub(super) fn of(self, rows: usize, step: usize, tiles: usize) -> Option<Shares> {
        let (units, step) = match self {
            Self::Whole => return None,
            Self::Rows => (rows, step),
            Self::Channels => (tiles, 1),
        };
        Some(Shares {
            axis: self,
            units,
            step,
            grain: 1,
            concurrent: true,
        })
    }

    /// Returns the bounds of a loop over `n` of something that is divided if `axis` is.
    pub(super) fn bounds(self, axis: Self, n: usize) -> Value {
        let (first, end) = if self == axis {
            ("first".to_owned(), "end".to_owned())
        } else {
            ("0usize".to_owned(), n.to_string())
        };
        Value::from(Serde(Bounds { first, end }))
    }
}
