//! Where everything lies in the arena.

use std::collections::{BTreeMap, BTreeSet};

use super::buffers::{BufferId, Buffers, Holder};
use crate::backend::Fill;
use crate::backend::native::kernels::{Kernel, Slot};
use crate::backend::native::plan::{ALIGN, Buffer, plan};

/// Offsets of buffers and of the memory that kernels use, in bytes.
pub(super) struct Memory {
    /// Offset by value buffer.
    pub(super) values: Vec<usize>,
    /// Offset of the scratch memory by step.
    pub(super) scratch: BTreeMap<usize, usize>,
    pub(super) zeros: usize,
    pub(super) len: usize,
    /// Buffers whose borders are not zero: their memory is theirs alone.
    pub(super) fills: BTreeSet<Fill>,
}

impl Memory {
    pub(super) fn plan(buffers: &Buffers, kernels: &[Kernel]) -> Self {
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
        for (step, kernel) in kernels.iter().enumerate() {
            for slot in &kernel.slots {
                if let Slot::Zeros(len) = *slot {
                    zeros_len = zeros_len.max(len * size_of::<f32>());
                }
                let Some(bytes) = slot.scratch_bytes() else {
                    continue;
                };
                scratch_of.insert(step, wanted.len());
                wanted.push(Buffer {
                    len: bytes,
                    bordered: None,
                    first: step,
                    last: step,
                });
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
                .map(|(&step, &idx)| (step, plan.offsets[idx]))
                .collect(),
            zeros: plan.len,
            // Memory of no bytes cannot be allocated.
            len: (plan.len + zeros_len.next_multiple_of(ALIGN)).max(ALIGN),
        }
    }
}
