//! Segments worth a try.

use super::cuts::{Cuts, Run};
use super::text::Segments;
use crate::backend::native::program::assemble::{AssembleError, Choice};
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
    let cuts = Cuts::new(graph, isa, operations, choice)?;
    let mut runs: Vec<Run> = Vec::new();
    for &start in cuts.starts.keys() {
        if runs.last().is_some_and(|run| start < run.steps.end) {
            continue;
        }
        let mut best = None;
        for (&end, _) in cuts.ends.range(start + 1..) {
            let steps = start..end;
            let run = Run { steps, rows };
            match cuts.bytes(&run) {
                Some(of_run) if of_run.kept <= bytes => {
                    if of_run.saved > bytes {
                        best = Some(run);
                    }
                }
                _ => break,
            }
        }
        runs.extend(best);
    }
    Ok(cuts.segments(&runs).unwrap_or_default())
}
