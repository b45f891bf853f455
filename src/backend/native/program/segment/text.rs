//! Segments as text, e.g. `0-7@4 8-11@2`.

use std::fmt;
use std::str::FromStr;

/// Consecutive subgraphs that run together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Index of the first subgraph.
    pub first: usize,
    /// Index of the last subgraph.
    pub last: usize,
    /// Rows that the last step gives at a time.
    pub rows: usize,
}

/// Segments of a model, in order, apart from each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Segments(pub Vec<Segment>);

/// Text that names no segments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` are not segments: expected ranges of subgraphs and their rows in order, such as \
     `0-7@4 8-11@2`"
)]
pub struct ParseSegmentsError(String);

impl Segments {
    /// Returns the same segments with other numbers of rows.
    #[must_use]
    pub fn with_rows(&self, rows: impl Fn(usize) -> usize) -> Self {
        let segments = self.0.iter().map(|segment| Segment {
            rows: rows(segment.rows).max(1),
            ..*segment
        });
        Self(segments.collect())
    }
}

impl fmt::Display for Segments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (idx, segment) in self.0.iter().enumerate() {
            let space = if idx == 0 { "" } else { " " };
            let Segment { first, last, rows } = segment;
            write!(f, "{space}{first}-{last}@{rows}")?;
        }
        Ok(())
    }
}

impl FromStr for Segments {
    type Err = ParseSegmentsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseSegmentsError(text.to_owned());
        let mut segments: Vec<Segment> = Vec::new();
        for part in text.split_whitespace() {
            let (range, rows) = part.split_once('@').ok_or_else(wrong)?;
            let (first, last) = range.split_once('-').ok_or_else(wrong)?;
            let number = |text: &str| text.parse::<usize>().map_err(|_| wrong());
            let segment = Segment {
                first: number(first)?,
                last: number(last)?,
                rows: number(rows)?,
            };
            let begins_later = segments.last().is_none_or(|s| s.last < segment.first);
            if !begins_later || segment.last < segment.first || segment.rows == 0 {
                return Err(wrong());
            }
            segments.push(segment);
        }
        Ok(Self(segments))
    }
}
