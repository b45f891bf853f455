//! Segments worth a try.

use std::ops::Range;

use super::resolve::{inner, is_row_by_row};
use super::stage::{Stage, stage};
use super::text::{Segment, Segments};
use super::windows::windows;
use crate::backend::native::program::assemble::{AssembleError, Choice};
use crate::backend::native::program::buffers::{BufferId, Buffers};
use crate::backend::native::program::schedule::schedule;
use crate::backend::native::spec::Operation;
use crate::device::Isa;
use crate::graph::Graph;

/// Cuts a model into segments: each is as long as what it keeps at hand, windows and weights,
/// takes at most `bytes`; those remain whose values would take more than that if they were whole.
/// The last step of each gives `rows` rows at a time.
///
/// # Errors
/// [`AssembleError`], as for assembling.
pub fn propose(
    graph: &Graph,
    isa: Isa,
    operations: &[Operation],
    choice: &Choice<'_>,
    bytes: usize,
    rows: usize,
) -> Result<Segments, AssembleError> {
    let schedule = schedule(graph, isa, operations, choice)?;
    let steps = &schedule.steps;
    let subgraphs: Vec<Option<usize>> =
        steps.iter().map(|step| step.subgraph(operations)).collect();
    let stages: Vec<Option<Stage>> = steps
        .iter()
        .map(|step| stage(step, operations, choice, &schedule.buffers))
        .collect();
    let mut segments = Vec::new();
    let mut start = 0;
    while start < steps.len() {
        // A segment begins with the first step of a subgraph.
        let begins = subgraphs[start].filter(|subgraph| {
            let mut earlier = subgraphs[..start].iter();
            !earlier.any(|other| *other == Some(*subgraph))
        });
        let Some(first) = begins else {
            start += 1;
            continue;
        };
        let mut best: Option<(Range<usize>, usize)> = None;
        for end in start + 1..=steps.len() {
            let Some(of_segment) = stages[start..end]
                .iter()
                .cloned()
                .collect::<Option<Vec<_>>>()
            else {
                break;
            };
            // It ends with the last step of a subgraph.
            let last = subgraphs[end - 1].filter(|subgraph| {
                let mut later = subgraphs[end..].iter();
                !later.any(|other| *other == Some(*subgraph))
            });
            let Some(last) = last else { continue };
            let Some(saved) = gain(&of_segment, start..end, &schedule.buffers, bytes, rows) else {
                break;
            };
            if saved > bytes {
                best = Some((start..end, last));
            }
        }
        if let Some((range, last)) = best {
            segments.push(Segment { first, last, rows });
            start = range.end;
        } else {
            start += 1;
        }
    }
    Ok(Segments(segments))
}

/// Returns the bytes that the values within a segment would take as wholes; `None` if it keeps
/// more than `bytes` at hand or cannot run row by row.
fn gain(
    stages: &[Stage],
    steps: Range<usize>,
    buffers: &Buffers,
    bytes: usize,
    rows: usize,
) -> Option<usize> {
    if !is_row_by_row(stages) {
        return None;
    }
    let inner = inner(stages, &steps, buffers);
    let (windows, _) = windows(stages, &inner, rows);
    let row_bytes = |id: BufferId| {
        let geometry = buffers.geometry(id);
        geometry.len / geometry.plane * geometry.row * buffers.all[id.0].dtype.bytes()
    };
    let kept: usize = windows
        .iter()
        .map(|window| window.height * row_bytes(window.buffer))
        .sum();
    let weights: usize = stages.iter().map(|stage| stage.weight_bytes).sum();
    let whole = windows.iter().map(|window| {
        buffers.geometry(window.buffer).len * buffers.all[window.buffer.0].dtype.bytes()
    });
    (kept + weights <= bytes).then(|| whole.sum())
}
