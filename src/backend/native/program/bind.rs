//! From slots of kernels to places in memory.

use std::collections::BTreeMap;

use super::buffers::{BufferId, Buffers, Holder};
use super::memory::{Memory, Scratch};
use super::planned::{Bound, Planned};
use super::threads::{Access, Region};
use super::types::{Arg, Step};
use crate::backend::native::kernels::{Kernel, Slot};
use crate::backend::native::spec::Operation;
use crate::backend::{Place, TraceSpec};
use crate::graph::Graph;

/// Resolves the arguments of one step.
pub(super) struct Binder<'a> {
    pub(super) graph: &'a Graph,
    pub(super) buffers: &'a Buffers,
    pub(super) memory: &'a Memory,
    pub(super) constants: &'a [usize],
    pub(super) step: usize,
    pub(super) weights: usize,
    /// The row of the value that lies first in the buffer, for those that hold some rows.
    pub(super) bases: &'a BTreeMap<BufferId, isize>,
}

impl Binder<'_> {
    /// Returns what a step reads and writes of the memory that steps write.
    pub(super) fn access(&self, planned: &Planned, kernel: &Kernel) -> Access {
        let mut access = Access {
            is_divided: kernel.shares.is_some(),
            ..Access::default()
        };
        let (reads, writes) = (&mut access.reads, &mut access.writes);
        match planned {
            Planned::Convert { from, to } => {
                reads.extend(self.region(Some(*from)));
                writes.extend(self.region(Some(*to)));
            }
            Planned::Operation { bound, .. } => {
                let inputs = [bound.x, bound.residual, bound.scale];
                let inputs = inputs.into_iter().chain(bound.operands.iter().copied());
                reads.extend(inputs.filter_map(|id| self.region(id)));
                let made = bound.results.iter().copied().map(Some);
                let made = [bound.y, bound.pooled].into_iter().chain(made);
                writes.extend(made.filter_map(|id| self.region(id)));
                // A factor of the input may be multiplied into it in place.
                writes.extend(bound.scale.and_then(|_| self.region(bound.x)));
            }
        }
        if let Some(&Scratch { first, each, n }) = self.memory.scratch.get(&self.step) {
            writes.push(Region::Arena(first..first + each * n));
        }
        access
    }

    /// Returns the memory of a buffer, if steps may write it.
    fn region(&self, id: Option<BufferId>) -> Option<Region> {
        let id = id?;
        match self.buffers.all[id.0].holder {
            Holder::Input(_) | Holder::Constant(_) => None,
            Holder::Output(idx) => Some(Region::Output(idx)),
            Holder::Arena | Holder::Same(_) => {
                let bytes = self.buffers.geometry(id).len * self.buffers.all[id.0].dtype.bytes();
                let first = self.memory.values[id.0];
                Some(Region::Arena(first..first + bytes))
            }
        }
    }

    fn pointer(&self, id: Option<BufferId>) -> Arg {
        let Some(id) = id else { return Arg::Arena(0) };
        match self.buffers.all[id.0].holder {
            Holder::Input(idx) => Arg::Input(idx),
            Holder::Output(idx) => Arg::Output(idx),
            Holder::Constant(idx) => Arg::Weights(self.constants[idx]),
            Holder::Arena | Holder::Same(_) => {
                let geometry = self.buffers.geometry(id);
                let element = self.buffers.all[id.0].dtype.bytes();
                let start = self.memory.values[id.0];
                // The first row lies where the buffer would have it, if it went that far.
                let top = geometry.border.top as isize;
                let base = self.bases.get(&id).copied().unwrap_or(-top);
                let left = (geometry.border.left * geometry.block * element) as isize;
                let above = base * (geometry.row * element) as isize;
                Arg::Arena(start as isize - above + left)
            }
        }
    }

    pub(super) fn operation(&self, operation: &Operation, bound: &Bound, kernel: &Kernel) -> Step {
        let mut args = Vec::new();
        for slot in &kernel.slots {
            args.push(match *slot {
                Slot::Input => self.pointer(bound.x),
                Slot::Output => self.pointer(bound.y),
                Slot::Weights => Arg::Weights(self.weights),
                Slot::Residual => self.pointer(bound.residual),
                Slot::Scale => self.pointer(bound.scale),
                Slot::Pooled => self.pointer(bound.pooled),
                Slot::Scratch(_) | Slot::Room(_) => match self.memory.scratch[&self.step] {
                    Scratch { first, n: 1, .. } => Arg::Arena(first as isize),
                    Scratch { first, each, .. } => Arg::Room { first, each },
                },
                Slot::Zeros(_) => Arg::Arena(self.memory.zeros as isize),
                Slot::Operand(idx) | Slot::Source(idx) => {
                    self.pointer(bound.operands.get(idx).copied().flatten())
                }
                Slot::Result(idx) => self.pointer(bound.results.get(idx).copied()),
                Slot::Constant(at) | Slot::Bytes(at) => Arg::Weights(self.weights + at),
                Slot::First => Arg::First,
                Slot::End => Arg::End,
            });
        }
        let made = bound.results.iter().copied();
        let made = [bound.y, bound.pooled].into_iter().flatten().chain(made);
        // What holds some rows at a time is never there as a whole.
        let made = made.filter(|id| self.buffers.all[id.0].window.is_none());
        let traces = made.map(|id| self.trace(id));
        Step {
            name: operation.name.clone(),
            symbol: kernel.symbol(),
            args,
            subgraph: Some(operation.subgraph),
            conversion: None,
            shares: kernel.shares,
            has_barrier: false,
            traces: traces.collect(),
        }
    }

    pub(super) fn conversion(&self, from: BufferId, to: BufferId, kernel: &Kernel) -> Step {
        let (source, target) = (&self.buffers.all[from.0], &self.buffers.all[to.0]);
        let [n, c, h, w] = source.dims;
        let mut args = vec![self.pointer(Some(from)), self.pointer(Some(to))];
        if kernel.shares.is_some() {
            args.extend([Arg::First, Arg::End]);
        }
        let what = format!("{}→{} {n}x{c}x{h}x{w}", source.layout, target.layout);
        Step {
            name: what.clone(),
            symbol: kernel.symbol(),
            args,
            subgraph: None,
            conversion: Some(what),
            shares: kernel.shares,
            has_barrier: false,
            traces: target
                .window
                .is_none()
                .then(|| self.trace(to))
                .into_iter()
                .collect(),
        }
    }

    fn trace(&self, id: BufferId) -> TraceSpec {
        let buffer = &self.buffers.all[id.0];
        let (place, offset) = match buffer.holder {
            Holder::Output(idx) => (Place::Output(idx), 0),
            _ => (
                Place::Arena,
                self.memory.values[id.0] / buffer.dtype.bytes(),
            ),
        };
        TraceSpec {
            value: self.graph.value(buffer.value).name.clone(),
            place,
            dtype: buffer.dtype,
            view: self.buffers.geometry(id).view(offset),
        }
    }
}
