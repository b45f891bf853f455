//! Static memory plan: which buffers share memory.
//!
//! Buffers with borders share only with buffers of the same geometry and the same byte in them, so
//! that borders are written once, at start, and stay. All others are placed greedily, largest first, at the lowest
//! offset that is free while they live.

use std::collections::BTreeMap;

use super::layout::Geometry;

/// A buffer and the steps during which it is in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    /// Bytes.
    pub len: usize,
    /// The geometry and the size of an element that must not be shared with another, if it has
    /// borders.
    pub bordered: Option<(Geometry, usize)>,
    /// First step that writes it.
    pub first: usize,
    /// Last step that reads it.
    pub last: usize,
}

/// Where each buffer lies, in bytes, and how many bytes there are in all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Offset by buffer.
    pub offsets: Vec<usize>,
    /// Size of the arena.
    pub len: usize,
}

/// Bytes that buffers and the weights of each kernel are aligned to: a cache line.
pub const ALIGN: usize = 64;

impl Buffer {
    /// Describes the buffer of a value whose elements have that many bytes.
    pub fn of(geometry: &Geometry, element: usize, first: usize, last: usize) -> Self {
        let bordered = (!geometry.border.is_empty()).then_some((*geometry, element));
        Self {
            len: geometry.len * element,
            bordered,
            first,
            last,
        }
    }

    fn lives_with(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Places buffers. O(n²) for n buffers.
pub fn plan(buffers: &[Buffer]) -> Plan {
    let mut offsets = vec![0; buffers.len()];
    let mut end = place_bordered(buffers, &mut offsets);
    let base = end;
    let mut order: Vec<usize> = (0..buffers.len())
        .filter(|&idx| buffers[idx].bordered.is_none())
        .collect();
    order.sort_by_key(|&idx| (std::cmp::Reverse(buffers[idx].len), idx));
    let mut placed: Vec<usize> = Vec::new();
    for idx in order {
        let mut busy: Vec<(usize, usize)> = placed
            .iter()
            .filter(|&&other| buffers[other].lives_with(&buffers[idx]))
            .map(|&other| (offsets[other], offsets[other] + buffers[other].len))
            .collect();
        busy.sort_unstable();
        let mut at = base;
        for (from, to) in busy {
            if at + buffers[idx].len <= from {
                break;
            }
            at = at.max(to.next_multiple_of(ALIGN));
        }
        offsets[idx] = at;
        end = end.max((at + buffers[idx].len).next_multiple_of(ALIGN));
        placed.push(idx);
    }
    Plan { offsets, len: end }
}

/// Places bordered buffers one geometry at a time and returns where they end.
fn place_bordered(buffers: &[Buffer], offsets: &mut [usize]) -> usize {
    // For each geometry its slots: offset and the last step that uses it.
    let mut slots: BTreeMap<(Geometry, usize), Vec<(usize, usize)>> = BTreeMap::new();
    let mut end = 0;
    let mut order: Vec<usize> = (0..buffers.len()).collect();
    order.sort_by_key(|&idx| (buffers[idx].first, idx));
    for idx in order {
        let Some(geometry) = buffers[idx].bordered else {
            continue;
        };
        let slots = slots.entry(geometry).or_default();
        if let Some(slot) = slots
            .iter_mut()
            .find(|(_, last)| *last < buffers[idx].first)
        {
            offsets[idx] = slot.0;
            slot.1 = buffers[idx].last;
        } else {
            offsets[idx] = end;
            slots.push((end, buffers[idx].last));
            end += buffers[idx].len.next_multiple_of(ALIGN);
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::backend::native::layout::{Border, Layout};

    fn geometry(channels: usize, border: usize) -> Geometry {
        let fill = (channels % 2) as u8;
        let border = Border {
            top: border,
            left: border,
            bottom: border,
            right: border,
            fill,
        };
        Geometry::new([1, channels, 5, 5], Layout::Blocked(8), border)
    }

    #[test]
    fn a_chain_needs_two_buffers() {
        let buffers: Vec<Buffer> = (0..10)
            .map(|step| Buffer::of(&geometry(8, 0), 4, step, step + 1))
            .collect();
        assert_eq!(
            plan(&buffers).len,
            2 * (geometry(8, 0).len * 4).next_multiple_of(ALIGN)
        );
    }

    proptest! {
        #[test]
        fn buffers_that_live_together_are_apart_and_borders_stay_zero(
            spans in prop::collection::vec((1usize..40, 0usize..2, 0usize..12, 0usize..6), 1..30),
        ) {
            let buffers: Vec<Buffer> = spans
                .iter()
                .map(|&(c, border, first, span)| Buffer::of(&geometry(c, border), 4, first, first + span))
                .collect();
            let plan = plan(&buffers);
            for (i, a) in buffers.iter().enumerate() {
                prop_assert!(plan.offsets[i] + a.len <= plan.len);
                for (j, b) in buffers.iter().enumerate().skip(i + 1) {
                    let overlap = plan.offsets[i] < plan.offsets[j] + b.len
                        && plan.offsets[j] < plan.offsets[i] + a.len;
                    let same_home = a.bordered.is_some() && a.bordered == b.bordered
                        && plan.offsets[i] == plan.offsets[j];
                    prop_assert!(!(overlap && a.lives_with(b)));
                    let shares_border = overlap && (a.bordered.is_some() || b.bordered.is_some());
                    prop_assert!(!shares_border || same_home);
                }
            }
        }
    }
}
