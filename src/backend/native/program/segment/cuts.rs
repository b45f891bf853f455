//! Where a model may be cut into segments.

use std::collections::BTreeMap;
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

/// The steps of a model as far as segments are concerned.
#[derive(Debug)]
pub(super) struct Cuts {
    stages: Vec<Option<Stage>>,
    buffers: Buffers,
    /// Steps before which a segment may begin, and the subgraphs that begin there.
    pub(super) starts: BTreeMap<usize, usize>,
    /// Steps before which a segment may end, and the subgraphs that end there.
    pub(super) ends: BTreeMap<usize, usize>,
}

/// Steps that run together, and the rows that the last of them gives at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    /// The steps.
    pub(super) steps: Range<usize>,
    /// The rows.
    pub(super) rows: usize,
}

/// Bytes of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bytes {
    /// What it keeps at hand: windows and weights.
    pub(super) kept: usize,
    /// What the values within it would take as wholes.
    pub(super) saved: usize,
}

impl Cuts {
    /// Finds the cuts of a model.
    ///
    /// # Errors
    /// [`AssembleError`], as for assembling.
    pub(super) fn new(
        graph: &Graph,
        isa: Isa,
        operations: &[Operation],
        choice: &Choice<'_>,
    ) -> Result<Self, AssembleError> {
        let schedule = schedule(graph, isa, operations, choice)?;
        let steps = &schedule.steps;
        let stages = steps
            .iter()
            .map(|step| stage(step, operations, choice, &schedule.buffers))
            .collect();
        let (mut first, mut last) = (BTreeMap::new(), BTreeMap::new());
        for (idx, step) in steps.iter().enumerate() {
            if let Some(subgraph) = step.subgraph(operations) {
                first.entry(subgraph).or_insert(idx);
                last.insert(subgraph, idx + 1);
            }
        }
        let by_step = |of: BTreeMap<usize, usize>| of.into_iter().map(|(s, at)| (at, s)).collect();
        Ok(Self {
            stages,
            starts: by_step(first),
            ends: by_step(last),
            buffers: schedule.buffers,
        })
    }

    /// Returns what steps take as a segment; `None` if they cannot run row by row.
    pub(super) fn bytes(&self, run: &Run) -> Option<Bytes> {
        let stages = self.stages.get(run.steps.clone())?.iter().cloned();
        let stages = stages.collect::<Option<Vec<Stage>>>()?;
        if !is_row_by_row(&stages) {
            return None;
        }
        let inner = inner(&stages, &run.steps, &self.buffers);
        let (windows, _) = windows(&stages, &inner, run.rows);
        let bytes = |id: BufferId, n: usize| n * self.buffers.all[id.0].dtype.bytes();
        let row_bytes = |id: BufferId| {
            let geometry = self.buffers.geometry(id);
            bytes(id, geometry.len / geometry.plane * geometry.row)
        };
        let kept = windows
            .iter()
            .map(|window| window.height * row_bytes(window.buffer));
        let weights = stages.iter().map(|stage| stage.weight_bytes);
        let whole = windows
            .iter()
            .map(|window| bytes(window.buffer, self.buffers.geometry(window.buffer).len));
        Some(Bytes {
            kept: kept.chain(weights).sum(),
            saved: whole.sum(),
        })
    }

    /// Returns the segments that consist of these steps; `None` if they begin or end elsewhere.
    pub(super) fn segments(&self, runs: &[Run]) -> Option<Segments> {
        let segment = |run: &Run| {
            Some(Segment {
                first: *self.starts.get(&run.steps.start)?,
                last: *self.ends.get(&run.steps.end)?,
                rows: run.rows,
            })
        };
        runs.iter()
            .map(segment)
            .collect::<Option<_>>()
            .map(Segments)
    }

    /// Returns the steps of segments; `None` if they are of another model.
    pub(super) fn runs(&self, segments: &Segments) -> Option<Vec<Run>> {
        let at = |cuts: &BTreeMap<usize, usize>, wanted: usize| {
            let found = cuts.iter().find(|(_, subgraph)| **subgraph == wanted);
            found.map(|(step, _)| *step)
        };
        let run = |segment: &Segment| {
            let steps = at(&self.starts, segment.first)?..at(&self.ends, segment.last)?;
            let rows = segment.rows;
            (!steps.is_empty()).then_some(Run { steps, rows })
        };
        segments.0.iter().map(run).collect()
    }
}
