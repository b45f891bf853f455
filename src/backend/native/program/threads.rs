//! A program on several threads: which steps are divided among them, and where they wait for each
//! other.
//!
//! All threads go through the same steps. A step that is divided is done by all of them, each its
//! part; any other one by the first thread. Behind a step there is a barrier if one that follows
//! must not begin before others have ended.

use std::ops::Range;

use crate::backend::native::kernels::Shares;
use crate::backend::native::spec::{Kind, Operation};
use crate::graph::{Graph, ValueId};

/// Multiply-adds and bytes that a thread does in a nanosecond where it is at its best.
const MACS_PER_NS: u64 = 32;
const BYTES_PER_NS: u64 = 16;

/// Time on one thread below which a step is not divided, nanoseconds. There are two barriers for a
/// step that stands alone: each takes 60 ns between cores that are near each other, as measured, and
/// 300 to 500 ns between those that share no cache. Half or twice as much made 1 % of difference.
const MIN_NS: u64 = 1500;

/// How much longer the longest part may be, in sixteenths, for all parts to be of whole steps.
const MAX_UNEVEN: usize = 20;

/// Memory that a step reads or writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Region {
    /// Bytes of the arena.
    Arena(Range<usize>),
    /// An output of the model.
    Output(usize),
}

/// What a step does to memory that steps write.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Access {
    pub(super) is_divided: bool,
    pub(super) reads: Vec<Region>,
    pub(super) writes: Vec<Region>,
}

impl Region {
    fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Arena(lhs), Self::Arena(rhs)) => lhs.start < rhs.end && rhs.start < lhs.end,
            (Self::Output(lhs), Self::Output(rhs)) => lhs == rhs,
            _ => false,
        }
    }
}

impl Access {
    /// Returns what a step may do that nothing is known of.
    pub(super) fn of_everything() -> Self {
        let arena = Region::Arena(0..usize::MAX);
        Self {
            is_divided: false,
            reads: vec![arena.clone()],
            writes: vec![arena],
        }
    }

    /// Returns whether a step must not begin on any thread before this one has ended on all.
    fn holds_up(&self, later: &Self) -> bool {
        let touch = |lhs: &[Region], rhs: &[Region]| {
            let overlaps = |region: &Region| rhs.iter().any(|other| region.overlaps(other));
            lhs.iter().any(overlaps)
        };
        // What is not divided is done by one thread, in order.
        (self.is_divided || later.is_divided)
            && (touch(&self.writes, &later.reads)
                || touch(&self.writes, &later.writes)
                || touch(&self.reads, &later.writes))
    }
}

/// Returns whether a barrier follows each step. None follows the last: all have ended then anyway.
pub(super) fn barriers(steps: &[Access]) -> Vec<bool> {
    let mut barriers = vec![false; steps.len()];
    let mut first = 0;
    for (idx, step) in steps.iter().enumerate() {
        if steps[first..idx].iter().any(|before| before.holds_up(step)) {
            barriers[idx - 1] = true;
            first = idx;
        }
    }
    barriers
}

/// Returns the units of each thread, in order; there may be none for the last ones.
pub(super) fn parts(shares: Shares, threads: usize) -> Vec<Range<usize>> {
    let Shares {
        units, step, grain, ..
    } = shares;
    let cut = |step: usize| {
        let n_steps = units.div_ceil(step);
        let bound = move |thread: usize| (n_steps * thread / threads * step).min(units);
        (0..threads).map(move |thread| bound(thread)..bound(thread + 1))
    };
    let longest = |step| cut(step).map(|part| part.len()).max().unwrap_or(0);
    let grain = grain.max(1);
    let step = step.max(grain);
    let is_even = longest(step) * 16 <= longest(grain) * MAX_UNEVEN;
    cut(if is_even { step } else { grain }).collect()
}

/// Returns whether it pays to divide an operation among threads, if that is possible.
pub(super) fn is_worthwhile(graph: &Graph, operation: &Operation) -> bool {
    let macs = match &operation.kind {
        Kind::Conv(conv) | Kind::Depthwise(conv) => conv.macs(),
        Kind::Deconv(deconv) => deconv.phases.iter().map(|(_, conv)| conv.macs()).sum(),
        Kind::Dense(dense) => (dense.n * dense.k * dense.m) as u64,
        Kind::MatMul(matmul) => {
            let extents = matmul.extents.iter().chain(&matmul.batch);
            extents.product::<usize>() as u64
        }
        _ => 0,
    };
    takes_long(macs, bytes(graph, operation.x) + bytes(graph, operation.y))
}

/// Returns whether it pays to divide a conversion between layouts.
pub(super) fn is_conversion_worthwhile(graph: &Graph, value: ValueId) -> bool {
    takes_long(0, 2 * bytes(graph, value))
}

fn takes_long(macs: u64, bytes: u64) -> bool {
    macs / MACS_PER_NS + bytes / BYTES_PER_NS >= MIN_NS
}

fn bytes(graph: &Graph, value: ValueId) -> u64 {
    let value = graph.value(value);
    (value.shape.len() * value.dtype.bytes()) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::backend::native::kernels::Share;

    fn step(is_divided: bool, reads: Range<usize>, writes: Range<usize>) -> Access {
        Access {
            is_divided,
            reads: vec![Region::Arena(reads)],
            writes: vec![Region::Arena(writes)],
        }
    }

    #[track_caller]
    fn check(steps: &[Access], expected: &[usize]) {
        let barriers = barriers(steps);
        let behind = (0..steps.len()).filter(|&idx| barriers[idx]);
        assert_eq!(behind.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_barrier_is_where_the_next_step_needs_what_others_do() {
        // A chain: each reads what the one before it wrote.
        check(&[step(true, 0..4, 4..8), step(true, 4..8, 8..12)], &[0]);
        check(&[step(false, 0..4, 4..8), step(true, 4..8, 8..12)], &[0]);
        check(&[step(true, 0..4, 4..8), step(false, 4..8, 8..12)], &[0]);
        // One thread needs no barrier with itself.
        check(&[step(false, 0..4, 4..8), step(false, 4..8, 8..12)], &[]);
        // Memory that is used again: read before it is written, or written twice.
        check(&[step(true, 0..4, 4..8), step(true, 8..9, 0..4)], &[0]);
        check(&[step(true, 0..4, 4..8), step(true, 9..10, 7..9)], &[0]);
        // Branches do not wait for each other, and what joins them does.
        let branches = [step(true, 0..4, 4..8), step(true, 0..4, 8..12)];
        check(&branches, &[]);
        let [left, right] = branches;
        check(&[left, right, step(true, 4..12, 12..16)], &[1]);
        // A barrier is for all that came before it.
        let late = step(true, 4..8, 20..24);
        let chain = [step(true, 0..4, 4..8), step(true, 4..8, 8..12)];
        check(&[chain[0].clone(), chain[1].clone(), late], &[0]);
        let output = Access {
            is_divided: true,
            reads: Vec::new(),
            writes: vec![Region::Output(0)],
        };
        check(&[output.clone(), output], &[0]);
    }

    proptest! {
        #[test]
        fn steps_that_hold_each_other_up_have_a_barrier_between_them(
            steps in prop::collection::vec((any::<bool>(), 0usize..20, 0usize..20), 1..30),
        ) {
            let access = |&(divided, reads, writes): &(bool, usize, usize)| {
                step(divided, reads..reads + 2, writes..writes + 2)
            };
            let steps: Vec<Access> = steps.iter().map(access).collect();
            let barriers = barriers(&steps);
            prop_assert_eq!(barriers.last(), Some(&false));
            for (late, later) in steps.iter().enumerate() {
                for early in 0..late {
                    let is_between = barriers[early..late].contains(&true);
                    prop_assert!(is_between || !steps[early].holds_up(later));
                }
            }
        }

        #[test]
        fn parts_cover_all_units_in_order_and_are_even(
            units in 0usize..200, step in 0usize..9, grain in 1usize..5, threads in 1usize..9,
        ) {
            let step = step * grain;
            let shares = Shares { axis: Share::Rows, units, step, grain, concurrent: true };
            let parts = parts(shares, threads);
            prop_assert_eq!(parts.len(), threads);
            let mut end = 0;
            for part in &parts {
                prop_assert!(part.start == end && part.end >= end);
                prop_assert!(part.start % grain == 0 || part.start == units);
                end = part.end;
            }
            prop_assert_eq!(end, units);
            let longest = parts.iter().map(Range::len).max().unwrap_or(0);
            let fewest = units.div_ceil(grain).div_ceil(threads) * grain;
            prop_assert!(longest * 16 <= fewest * MAX_UNEVEN);
        }
    }

    #[test]
    fn parts_are_of_whole_steps_where_that_is_even() {
        let cut = |units, step, threads| {
            let shares = Shares {
                axis: Share::Rows,
                units,
                step,
                grain: 1,
                concurrent: true,
            };
            parts(shares, threads)
        };
        assert_eq!(cut(56, 4, 2), [0..28, 28..56]);
        assert_eq!(cut(54, 4, 2), [0..28, 28..54]);
        assert_eq!(cut(7, 4, 2), [0..4, 4..7]);
        assert_eq!(cut(14, 7, 3), [0..4, 4..9, 9..14]);
        assert_eq!(cut(1, 1, 2), [0..0, 0..1]);
    }
}
