//! From rendered kernels to calls.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::assemble::AssembleError;
use super::bind::Binder;
use super::buffers::BufferId;
use super::memory::Memory;
use super::planned::Planned;
use super::schedule::Schedule;
use super::segment::{Action, Banded};
use super::threads::Access;
use super::types::{Arg, KernelSource, Program, Step};
use crate::backend::native::kernels::{self, Kernel, KernelCtx, Share, Slot};
use crate::backend::native::spec::Operation;
use crate::graph::Graph;

/// Everything that calls are made of; `rendered` and `weights` by step.
pub(super) struct Emitter<'a> {
    pub(super) ctx: KernelCtx<'a>,
    pub(super) graph: &'a Graph,
    pub(super) operations: &'a [Operation],
    pub(super) schedule: &'a Schedule,
    pub(super) rendered: &'a [Kernel],
    pub(super) memory: &'a Memory,
    pub(super) constants: &'a [usize],
    pub(super) weights: &'a [usize],
}

impl Emitter<'_> {
    /// Adds the call that does all of a step.
    pub(super) fn whole(&self, step: usize, program: &mut Program) {
        let call = self.bind(step, &BTreeMap::new());
        add(program, &self.rendered[step], call);
    }

    /// Adds the calls that do the steps of a segment together.
    pub(super) fn banded(
        &self,
        banded: &Banded,
        program: &mut Program,
    ) -> Result<(), AssembleError> {
        self.check(banded)?;
        let buffers = &self.schedule.buffers;
        let mut bases: BTreeMap<BufferId, isize> = banded
            .windows
            .iter()
            .map(|window| (window.buffer, window.base))
            .collect();
        // Windows move again and again, each by one kernel.
        let mut movers: BTreeMap<(BufferId, bool), Kernel> = BTreeMap::new();
        for action in &banded.actions {
            let (stage, buffer, rows, slides) = match action {
                Action::Run {
                    stage,
                    rows,
                    completes,
                } => {
                    let step = banded.steps.start + stage;
                    let mut call = self.bind(step, &bases).part(rows.clone());
                    if !completes {
                        call.traces.clear();
                    }
                    add(program, &self.rendered[step], call);
                    continue;
                }
                Action::Clear {
                    stage,
                    buffer,
                    rows,
                } => (stage, *buffer, rows, false),
                Action::Slide {
                    stage,
                    buffer,
                    rows,
                    base,
                } => {
                    bases.insert(*buffer, *base);
                    (stage, *buffer, rows, true)
                }
            };
            if rows.is_empty() {
                continue;
            }
            let held = &buffers.all[buffer.0];
            let kernel = match movers.entry((buffer, slides)) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => {
                    let make = if slides {
                        kernels::slide
                    } else {
                        kernels::clear
                    };
                    let kernel = make(self.ctx, &buffers.geometry(buffer), held.dtype.bytes());
                    place.insert(kernel.map_err(AssembleError::Convert)?)
                }
            };
            let name = if slides { "slide" } else { "clear" };
            let call = Step {
                name: format!("{name} rows of {}", self.graph.value(held.value).name),
                symbol: kernel.symbol(),
                args: vec![
                    Arg::Arena(self.memory.values[buffer.0] as isize),
                    Arg::Unit(rows.start),
                    Arg::Unit(rows.end),
                ],
                subgraph: self.subgraph(banded.steps.start + stage),
                conversion: None,
                shares: None,
                has_barrier: false,
                traces: Vec::new(),
            };
            add(program, kernel, call);
        }
        Ok(())
    }

    /// Refuses a segment with a kernel that does not run by rows, each call for itself.
    fn check(&self, banded: &Banded) -> Result<(), AssembleError> {
        for step in banded.steps.clone() {
            let kernel = &self.rendered[step];
            let by_rows = kernel
                .shares
                .is_some_and(|shares| shares.axis == Share::Rows);
            let mut slots = kernel.slots.iter();
            let keeps = slots.any(|slot| matches!(slot, Slot::Scratch(_)));
            if !by_rows || keeps {
                let subgraph = self.subgraph(step).unwrap_or_default();
                return Err(AssembleError::Segment {
                    segment: banded.text.clone(),
                    reason: format!("the kernel of subgraph {subgraph} does all rows at once"),
                });
            }
        }
        Ok(())
    }

    fn subgraph(&self, step: usize) -> Option<usize> {
        self.schedule.steps[step].subgraph(self.operations)
    }

    /// Returns what the call that does all of a step reads and writes.
    pub(super) fn access(&self, step: usize) -> Access {
        let bases = BTreeMap::new();
        let binder = self.binder(step, &bases);
        binder.access(&self.schedule.steps[step], &self.rendered[step])
    }

    fn bind(&self, step: usize, bases: &BTreeMap<BufferId, isize>) -> Step {
        let binder = self.binder(step, bases);
        let kernel = &self.rendered[step];
        match &self.schedule.steps[step] {
            Planned::Operation { idx, bound } => {
                binder.operation(&self.operations[*idx], bound, kernel)
            }
            Planned::Convert { from, to } => binder.conversion(*from, *to, kernel),
        }
    }

    fn binder<'b>(&'b self, step: usize, bases: &'b BTreeMap<BufferId, isize>) -> Binder<'b> {
        Binder {
            graph: self.graph,
            buffers: &self.schedule.buffers,
            memory: self.memory,
            constants: self.constants,
            step,
            weights: self.weights[step],
            bases,
        }
    }
}

/// Adds a call and, unless it is there, the kernel that it calls.
fn add(program: &mut Program, kernel: &Kernel, call: Step) {
    program
        .kernels
        .entry(kernel.symbol())
        .or_insert_with(|| KernelSource {
            digest: kernel.digest,
            parameters: kernel.parameter_types().collect(),
            subgraph: call.subgraph,
            source: kernel.source.clone(),
        });
    program.steps.push(call);
}
