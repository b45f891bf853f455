//! Where everything lies in the arena.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::buffers::{BufferId, Buffers, Holder};
use crate::backend::Fill;
use crate::backend::native::kernels::{Kernel, Slot};
use crate::backend::native::plan::{ALIGN, Buffer, plan};

/// Offsets of buffers and of the memory that kernels use, in bytes.
pub(super) struct Memory {
    /// Offset by value buffer.
    pub(super) values: Vec<usize>,
    /// The scratch memory of kernels by step.
    pub(super) scratch: BTreeMap<usize, Scratch>,
    pub(super) zeros: usize,
    pub(super) len: usize,
    /// Buffers whose borders are not zero: their memory is theirs alone.
    pub(super) fills: BTreeSet<Fill>,
}

/// Memory that is free to use during a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scratch {
    /// Where it begins.
    pub(super) first: usize,
    /// Bytes of each thread that has its own.
    pub(super) each: usize,
    /// How many have.
    pub(super) n: usize,
}

impl Memory {
    /// Places everything for so many threads. Steps of one of the ranges take turns.
    pub(super) fn plan(
        buffers: &Buffers,
        kernels: &[Kernel],
        threads: usize,
        in_turns: &[Range<usize>],
    ) -> Self {
        let mut wanted = Vec::new();
        let mut index = vec![None; buffers.all.len()];
        for (idx, buffer) in buffers.all.iter().enumerate() {
            if buffer.holder == Holder::Arena {
                index[idx] = Some(wanted.len());
                wanted.push(Buffer::of(
                    &buffers.geometry(BufferId(idx)),
                    buffer.dtype.bytes(),
                    buffer.first,
                    buffer.last,
                ));
            }
        }
        // A buffer that shares memory may need more padding than the one it shares with.
        for (idx, buffer) in buffers.all.iter().enumerate() {
            if let Holder::Same(root) = buffer.holder
                && let Some(root) = index[root.0]
            {
                let len: &mut usize = &mut wanted[root].len;
                let bytes = buffers.geometry(BufferId(idx)).len * buffer.dtype.bytes();
                *len = (*len).max(bytes);
                index[idx] = Some(root);
            }
        }
        let mut zeros_len = 0;
        let mut scratch_of = BTreeMap::new();
        let mut shared: BTreeMap<usize, usize> = BTreeMap::new();
        for (step, kernel) in kernels.iter().enumerate() {
            for slot in &kernel.slots {
                if let Slot::Zeros(len) = *slot {
                    zeros_len = zeros_len.max(len * size_of::<f32>());
                }
                let Some(bytes) = slot.scratch_bytes() else {
                    continue;
                };
                let turns = in_turns.iter().find(|steps| steps.contains(&step));
                let is_own = matches!(slot, Slot::Room(_)) && kernel.shares.is_some();
                let (n, each) = match turns {
                    None if is_own && threads > 1 => (threads, bytes.next_multiple_of(ALIGN)),
                    _ => (1, bytes),
                };
                // What takes turns uses the same memory, which the cache then knows.
                let idx = turns.and_then(|steps| shared.get(&steps.start)).copied();
                let idx = idx.unwrap_or(wanted.len());
                if let Some(known) = wanted.get_mut(idx) {
                    known.len = known.len.max(bytes);
                } else {
                    wanted.push(Buffer {
                        len: each * n,
                        bordered: None,
                        first: turns.map_or(step, |steps| steps.start),
                        last: turns.map_or(step, |steps| steps.end - 1),
                    });
                }
                if let Some(steps) = turns {
                    shared.insert(steps.start, idx);
                }
                scratch_of.insert(step, (idx, each, n));
            }
        }
        let plan = plan(&wanted);
        let filled = wanted.iter().zip(&plan.offsets);
        let fills = filled.filter_map(|(buffer, &offset)| {
            let byte = buffer.bordered?.0.border.fill;
            let len = buffer.len;
            (byte != 0).then_some(Fill { offset, len, byte })
        });
        Self {
            fills: fills.collect(),
            values: index
                .iter()
                .map(|idx| idx.map_or(0, |idx| plan.offsets[idx]))
                .collect(),
            scratch: scratch_of
                .iter()
                .map(|(&step, &(idx, each, n))| {
                    let first = plan.offsets[idx];
                    (step, Scratch { first, each, n })
                })
                .collect(),
            zeros: plan.len,
            // Memory of no bytes cannot be allocated.
            len: (plan.len + zeros_len.next_multiple_of(ALIGN)).max(ALIGN),
        }
    }
}
