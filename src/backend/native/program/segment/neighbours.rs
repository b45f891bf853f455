//! Segments that differ from others by one cut.

use std::collections::BTreeMap;
use std::ops::Range;

use super::cuts::{Cuts, Run};
use super::text::Segments;
use crate::backend::native::program::assemble::{AssembleError, Choice};
use crate::backend::native::spec::Operation;
use crate::device::Isa;
use crate::graph::Graph;

/// Returns the segments that differ from the given ones in where one of them begins or ends, in one
/// that is two, or in two that are one. Those come first that change the segments whose values
/// would take most as wholes. All of them can run row by row.
///
/// # Errors
/// [`AssembleError`], as for assembling.
pub fn neighbours(
    graph: &Graph,
    isa: Isa,
    operations: &[Operation],
    choice: &Choice<'_>,
    segments: &Segments,
) -> Result<Vec<Segments>, AssembleError> {
    let cuts = Cuts::new(graph, isa, operations, choice)?;
    let Some(runs) = cuts.runs(segments) else {
        return Ok(Vec::new());
    };
    let saved = |run: &Run| cuts.bytes(run).map_or(0, |bytes| bytes.saved);
    let mut by_size: Vec<usize> = (0..runs.len()).collect();
    by_size.sort_by_key(|&idx| std::cmp::Reverse(saved(&runs[idx])));
    let mut found: Vec<Segments> = Vec::new();
    for others in by_size.into_iter().flat_map(|idx| moves(&cuts, &runs, idx)) {
        let runs_apart = others.iter().all(|run| cuts.bytes(run).is_some());
        if runs_apart
            && let Some(others) = cuts.segments(&others)
            && !found.contains(&others)
        {
            found.push(others);
        }
    }
    Ok(found)
}

/// Returns what one segment may become, with all others.
fn moves(cuts: &Cuts, runs: &[Run], idx: usize) -> Vec<Vec<Run>> {
    let Range { start, end } = runs[idx].steps;
    let before = idx.checked_sub(1).map(|idx| &runs[idx]);
    let behind = runs.get(idx + 1);
    let mut found = Vec::new();
    // The end, and the start of the next one if that follows at once.
    for end in around(&cuts.ends, end) {
        let mut others = runs.to_vec();
        others[idx].steps.end = end;
        if behind.is_some_and(|next| next.steps.start == runs[idx].steps.end) {
            others[idx + 1].steps.start = end;
        }
        found.push(others);
    }
    // The start, unless it is the end of the one before: that one moves both.
    if before.is_none_or(|run| run.steps.end < start) {
        for start in around(&cuts.starts, start) {
            let mut others = runs.to_vec();
            others[idx].steps.start = start;
            found.push(others);
        }
    }
    // Two halves.
    let cut = cuts.starts.range(start + 1..end).map(|(cut, _)| *cut);
    let cut = cut.filter(|cut| cuts.ends.contains_key(cut));
    if let Some(cut) = cut.min_by_key(|cut| cut.abs_diff(start.midpoint(end))) {
        let mut others = runs.to_vec();
        others[idx].steps.end = cut;
        let steps = cut..end;
        let rows = runs[idx].rows;
        others.insert(idx + 1, Run { steps, rows });
        found.push(others);
    }
    // One with the next.
    if let Some(next) = behind {
        let mut others = runs.to_vec();
        let steps = start..next.steps.end;
        let rows = next.rows;
        others.splice(idx..idx + 2, [Run { steps, rows }]);
        found.push(others);
    }
    found.retain(|runs| are_apart(runs));
    found
}

/// Returns the cuts right before and right behind one.
fn around(cuts: &BTreeMap<usize, usize>, at: usize) -> impl Iterator<Item = usize> {
    let before = cuts.range(..at).next_back();
    let behind = cuts.range(at + 1..).next();
    [before, behind].into_iter().flatten().map(|(cut, _)| *cut)
}

/// Returns whether all have steps, and none that belongs to another one.
fn are_apart(runs: &[Run]) -> bool {
    let mut pairs = runs.windows(2);
    runs.iter().all(|run| !run.steps.is_empty())
        && pairs.all(|pair| pair[0].steps.end <= pair[1].steps.start)
}
