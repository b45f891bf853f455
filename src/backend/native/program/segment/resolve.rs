//! From segments of subgraphs to what is done step by step.

use std::ops::Range;

use super::stage::{Stage, stage};
use super::text::{Segment, Segments};
use super::windows::{Action, Inner, Window, windows};
use crate::backend::native::program::assemble::{AssembleError, Choice};
use crate::backend::native::program::buffers::{BufferId, Buffers, Holder};
use crate::backend::native::program::planned::Planned;
use crate::backend::native::program::schedule::Schedule;
use crate::backend::native::spec::Operation;

/// Steps that run together.
#[derive(Debug)]
pub(in crate::backend::native::program) struct Banded {
    /// The segment as text.
    pub(in crate::backend::native::program) text: String,
    /// The steps.
    pub(in crate::backend::native::program) steps: Range<usize>,
    /// Values of which some rows are kept.
    pub(in crate::backend::native::program) windows: Vec<Window>,
    /// What is done instead of the steps, one after the other.
    pub(in crate::backend::native::program) actions: Vec<Action>,
}

/// Finds the steps of segments, and gives the values within them windows that live as long.
///
/// # Errors
/// [`AssembleError::Segment`] if a segment cannot run some rows at a time.
pub(in crate::backend::native::program) fn resolve(
    segments: &Segments,
    schedule: &mut Schedule,
    operations: &[Operation],
    choice: &Choice<'_>,
) -> Result<Vec<Banded>, AssembleError> {
    let mut resolved = Vec::new();
    for &segment in &segments.0 {
        let text = Segments(vec![segment]).to_string();
        let wrong = |reason: &str| AssembleError::Segment {
            segment: text.clone(),
            reason: reason.to_owned(),
        };
        let steps = steps_of(segment, &schedule.steps, operations)
            .ok_or_else(|| wrong("there is no such run of subgraphs"))?;
        let stages = steps.clone().map(|step| {
            let planned = &schedule.steps[step];
            stage(planned, operations, choice, &schedule.buffers)
        });
        let stages: Option<Vec<Stage>> = stages.collect();
        let stages = stages.ok_or_else(|| wrong("one of its steps cannot run row by row"))?;
        if !is_row_by_row(&stages) {
            return Err(wrong("a step reads all of what another one writes"));
        }
        let inner = inner(&stages, &steps, &schedule.buffers);
        let (windows, actions) = windows(&stages, &inner, segment.rows);
        for window in &windows {
            schedule.buffers.all[window.buffer.0].window = Some(window.height);
        }
        for buffer in &mut schedule.buffers.all {
            if steps.contains(&buffer.first) {
                buffer.first = steps.start;
            }
            if steps.contains(&buffer.last) {
                buffer.last = steps.end - 1;
            }
        }
        resolved.push(Banded {
            text,
            steps,
            windows,
            actions,
        });
    }
    Ok(resolved)
}

/// Returns the steps from the first of a segment's first subgraph to the last of its last one.
fn steps_of(segment: Segment, steps: &[Planned], operations: &[Operation]) -> Option<Range<usize>> {
    let is_of = |step: &Planned, subgraph| step.subgraph(operations) == Some(subgraph);
    let first = steps.iter().position(|step| is_of(step, segment.first))?;
    let last = steps.iter().rposition(|step| is_of(step, segment.last))?;
    (first <= last).then_some(first..last + 1)
}

/// Returns whether no stage needs all of what another one writes.
pub(super) fn is_row_by_row(stages: &[Stage]) -> bool {
    let mut made = Vec::new();
    for stage in stages {
        if stage.whole.iter().any(|id| made.contains(id)) {
            return false;
        }
        made.extend(stage.writes);
        made.extend(stage.pooled);
    }
    true
}

/// Returns what the stages write for each other only.
pub(super) fn inner(
    stages: &[Stage],
    steps: &Range<usize>,
    buffers: &Buffers,
) -> Vec<Option<Inner>> {
    let is_shared = |id: BufferId| {
        let mut others = buffers.all.iter();
        others.any(|other| other.holder == Holder::Same(id))
    };
    let inner = stages.iter().map(|stage| {
        let id = stage.writes?;
        let buffer = &buffers.all[id.0];
        let lives_within = steps.contains(&buffer.first) && steps.contains(&buffer.last);
        let is_read = buffer.last > buffer.first;
        (buffer.holder == Holder::Arena && lives_within && is_read && !is_shared(id)).then_some(
            Inner {
                buffer: id,
                border: buffer.border,
            },
        )
    });
    inner.collect()
}
