//! Where the windows of a segment slide.

use std::ops::Range;

use super::bands::{Bands, bands};
use super::stage::Stage;
use crate::backend::native::layout::Border;
use crate::backend::native::program::buffers::BufferId;

/// A window is that many times as high as the most rows that are added to it at a time, beyond
/// what it must hold: it slides once in so many bands.
const BANDS_BETWEEN_SLIDES: usize = 2;

/// What is done, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::backend::native::program) enum Action {
    /// A stage makes some of its rows.
    Run {
        stage: usize,
        rows: Range<usize>,
        /// Whether these are its last ones.
        completes: bool,
    },
    /// Rows of the buffer that a stage writes get the value of its border.
    Clear {
        stage: usize,
        buffer: BufferId,
        rows: Range<usize>,
    },
    /// Rows of the buffer move to its start, which is row `base` of the value from then on.
    Slide {
        stage: usize,
        buffer: BufferId,
        rows: Range<usize>,
        base: isize,
    },
}

/// A value of which some rows are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::backend::native::program) struct Window {
    pub(in crate::backend::native::program) buffer: BufferId,
    /// Rows that are kept, of its border as well.
    pub(in crate::backend::native::program) height: usize,
    /// Row of the value that lies first at the start: above it by the border.
    pub(in crate::backend::native::program) base: isize,
}

/// What a stage writes, if only the segment reads it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inner {
    pub(super) buffer: BufferId,
    pub(super) border: Border,
}

/// Orders the work and slides windows; `inner` by stage.
pub(super) fn windows(
    stages: &[Stage],
    inner: &[Option<Inner>],
    rows: usize,
) -> (Vec<Window>, Vec<Action>) {
    let bands = bands(stages, rows);
    let kept: Vec<Option<Window>> = (0..stages.len())
        .map(|idx| window(&bands, idx, stages, inner[idx]?))
        .collect();
    let mut actions = Vec::new();
    for (stage, (window, inner)) in kept.iter().zip(inner).enumerate() {
        if let (Some(window), Some(inner)) = (window, inner)
            && inner.border.top > 0
        {
            actions.push(Action::Clear {
                stage,
                buffer: window.buffer,
                rows: 0..inner.border.top,
            });
        }
    }
    let mut bases: Vec<isize> = kept.iter().map(|w| w.map_or(0, |w| w.base)).collect();
    for band in 0..bands.done.len() {
        for (idx, stage) in stages.iter().enumerate() {
            let (before, after) = (bands.before(band, idx), bands.done[band][idx]);
            if before == after {
                continue;
            }
            let completes = after == stage.rows;
            let window = kept[idx].zip(inner[idx]);
            if let Some((window, inner)) = window {
                let end = filled(&inner, after, stage.rows);
                if end - bases[idx] > window.height as isize {
                    let base = lowest(&bands, band, idx, stages, &inner).min(before as isize);
                    let place = |row: isize| (row - bases[idx]) as usize;
                    actions.push(Action::Slide {
                        stage: idx,
                        buffer: window.buffer,
                        rows: place(base)..place(before as isize),
                        base,
                    });
                    bases[idx] = base;
                }
            }
            actions.push(Action::Run {
                stage: idx,
                rows: before..after,
                completes,
            });
            if let Some((window, inner)) = window
                && completes
                && inner.border.bottom > 0
            {
                let first = (after as isize - bases[idx]) as usize;
                actions.push(Action::Clear {
                    stage: idx,
                    buffer: window.buffer,
                    rows: first..first + inner.border.bottom,
                });
            }
        }
    }
    (kept.into_iter().flatten().collect(), actions)
}

/// Returns the window of what a stage writes; `None` if it would be as high as the value.
fn window(bands: &Bands, idx: usize, stages: &[Stage], inner: Inner) -> Option<Window> {
    let height = stages[idx].rows;
    let (mut held, mut added) = (0, 0);
    for band in 0..bands.done.len() {
        let (before, after) = (bands.before(band, idx), bands.done[band][idx]);
        let low = lowest(bands, band, idx, stages, &inner).min(before as isize);
        held = held.max((filled(&inner, after, height) - low) as usize);
        added = added.max(after - before);
    }
    let rows = held + BANDS_BETWEEN_SLIDES * added;
    let whole = height + inner.border.top + inner.border.bottom;
    (rows < whole).then_some(Window {
        buffer: inner.buffer,
        height: rows,
        base: -(inner.border.top as isize),
    })
}

/// Returns the row after the last one that a window holds once so many rows are made.
fn filled(inner: &Inner, rows: usize, height: usize) -> isize {
    let below = if rows == height {
        inner.border.bottom
    } else {
        0
    };
    (rows + below) as isize
}

/// Returns the first row that somebody still reads when a band begins.
fn lowest(bands: &Bands, band: usize, idx: usize, stages: &[Stage], inner: &Inner) -> isize {
    let readers = bands.readers[idx].iter();
    let rows = readers.map(|(reader, reach)| {
        let done = bands.before(band, *reader);
        if done == stages[*reader].rows {
            isize::MAX
        } else {
            reach.first(done)
        }
    });
    let lowest = rows.min().unwrap_or(isize::MAX);
    lowest.max(-(inner.border.top as isize))
}
