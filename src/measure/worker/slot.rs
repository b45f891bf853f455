//! A loaded artifact with the memory it works on.
#![expect(unsafe_code, reason = "compiled candidates are loaded and called here")]

use std::ffi::c_void;
use std::ptr;

use libloading::Library;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::barrier::Barrier;
use super::buffer::Buffer;
use super::clock::{thread_cpu_ns, wall_ns};
use super::crew::Crew;
use super::library::load_math_library;
use super::reference::{Reference, Tensors};
use super::refusal::Refusal;
use crate::backend::{Artifact, IoSpec, Place, TraceSpec, View};
use crate::fsx::{self, FsErrorKind};
use crate::graph::DType;

/// Signature of `metainfer_steps` for one thread, see [`crate::backend::Artifact`].
type Steps = unsafe extern "C" fn(
    inputs: *const *const c_void,
    outputs: *const *mut c_void,
    arena: *mut c_void,
    weights: *const c_void,
    first: usize,
    last: usize,
    ticks: *mut u64,
);

/// Signature of `metainfer_steps` for several threads.
type SharedSteps = unsafe extern "C" fn(
    inputs: *const *const c_void,
    outputs: *const *mut c_void,
    arena: *mut c_void,
    weights: *const c_void,
    first: usize,
    last: usize,
    ticks: *mut u64,
    thread: usize,
    barrier: *const Barrier,
);

/// Who runs the steps.
#[derive(Debug)]
enum Entry {
    Alone(Steps),
    Together(SharedSteps, Crew),
}

/// An artifact that can be run.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) artifact: Artifact,
    pub(super) inputs: Vec<Buffer>,
    pub(super) outputs: Vec<Buffer>,
    pub(super) arena: Buffer,
    weights: Buffer,
    entry: Entry,
    /// Keeps `entry` valid; dropped last.
    _library: Library,
}

impl Slot {
    /// Loads an artifact; one of several threads is run by a crew of as many. Its inputs are those
    /// of the reference, or random numbers without one.
    pub(super) fn load(
        artifact: Artifact,
        crew: Option<Crew>,
        reference: Option<&Reference>,
    ) -> Result<Self, Refusal> {
        check_traces(&artifact)?;
        let weights = fsx::read(&artifact.weights).map_err(|error| {
            let message = error.to_string();
            if error.kind == FsErrorKind::OutOfMemory {
                Refusal::out_of_memory(message)
            } else {
                Refusal::device_lost(message)
            }
        })?;
        let allocate = |io: &IoSpec| Buffer::zeroed(n_bytes(io)?);
        let (inputs, outputs) = (&artifact.inputs, &artifact.outputs);
        let inputs = inputs.iter().map(allocate).collect::<Result<_, _>>()?;
        let outputs = outputs.iter().map(allocate).collect::<Result<_, _>>()?;
        let mut arena = Buffer::arena(artifact.arena_bytes)?;
        for fill in &artifact.fills {
            let bytes = arena.bytes_mut().get_mut(fill.offset..);
            let bytes = bytes.and_then(|bytes| bytes.get_mut(..fill.len));
            let bytes =
                bytes.ok_or_else(|| Refusal::run_error(format!("{fill:?} is beyond the arena")))?;
            bytes.fill(fill.byte);
        }
        let weights = Buffer::copy_of(&weights)?;

        load_math_library();
        let path = artifact.library.display();
        // SAFETY: the library has no initialisers but those of the language runtime; whatever it
        // does, it does to this process alone, which exists to be lost.
        let library = unsafe { Library::new(&artifact.library) }
            .map_err(|error| unloadable(format!("cannot load `{path}`: {error}")))?;
        let unusable = |error| Refusal::run_error(format!("cannot use `{path}`: {error}"));
        let symbol = c"metainfer_steps";
        let entry = match crew {
            // SAFETY: the contract of an artifact gives the symbol this type.
            None => Entry::Alone(*unsafe { library.get(symbol) }.map_err(unusable)?),
            // SAFETY: as above; that there is a crew says that there are several threads.
            Some(crew) => Entry::Together(*unsafe { library.get(symbol) }.map_err(unusable)?, crew),
        };
        let mut slot = Self {
            artifact,
            inputs,
            outputs,
            arena,
            weights,
            entry,
            _library: library,
        };
        let tensors = reference.and_then(|reference| reference.tensors().ok());
        let is_filled = tensors.is_some_and(|tensors| slot.fill_inputs(&tensors).is_ok());
        if !is_filled {
            slot.fill_random();
        }
        Ok(slot)
    }

    /// Copies the inputs from the reference.
    pub(super) fn fill_inputs(&mut self, tensors: &Tensors<'_>) -> Result<(), Refusal> {
        for (io, buffer) in self.artifact.inputs.iter().zip(&mut self.inputs) {
            let values = tensors.get(&io.name, io.shape.len())?;
            if values.dtype != io.dtype {
                let IoSpec { name, dtype, .. } = io;
                let message = format!(
                    "input `{name}` is {dtype}, the reference has {}",
                    values.dtype
                );
                return Err(Refusal::device_lost(message));
            }
            buffer.bytes_mut().copy_from_slice(values.bytes);
        }
        Ok(())
    }

    /// Moves all memory to other pages, with what is in it.
    pub(super) fn relocate(&mut self) -> Result<(), Refusal> {
        let buffers = self.inputs.iter_mut().chain(&mut self.outputs);
        for buffer in buffers.chain([&mut self.arena, &mut self.weights]) {
            // The old pages are given up only when the new ones are taken.
            *buffer = buffer.moved()?;
        }
        Ok(())
    }

    /// Returns the number of steps.
    pub(super) fn n_steps(&self) -> usize {
        self.artifact.steps.len()
    }

    /// Runs steps `first..last`, and without ticks.
    pub(super) fn run(&mut self, first: usize, last: usize) {
        self.call(first, last, ptr::null_mut());
    }

    /// Runs all steps and writes the counter before each of them, and after the last.
    pub(super) fn run_with_ticks(&mut self, ticks: &mut Vec<u64>) {
        ticks.clear();
        ticks.resize(self.n_steps() + 1, 0);
        self.call(0, self.n_steps(), ticks.as_mut_ptr());
    }

    /// Returns the clock by which runs of the artifact are measured, of nanoseconds: that of the
    /// processor, as far as one thread has all of it.
    pub(super) fn clock(&self) -> fn() -> u64 {
        if self.is_shared() {
            wall_ns
        } else {
            thread_cpu_ns
        }
    }

    /// Returns whether several threads run it.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.entry, Entry::Together(..))
    }

    /// Wakes the threads that sleep, as another artifact ran without them.
    pub(super) fn rouse(&self) {
        if let Entry::Together(_, crew) = &self.entry {
            // SAFETY: the job does nothing.
            crew.with(|pool| unsafe { pool.run(&|_, _| {}) });
        }
    }

    fn call(&mut self, first: usize, last: usize, ticks: *mut u64) {
        let inputs: Vec<_> = self
            .inputs
            .iter()
            .map(|input| input.as_ptr().cast())
            .collect();
        let outputs: Vec<_> = self
            .outputs
            .iter_mut()
            .map(|output| output.as_mut_ptr().cast())
            .collect();
        let (inputs, outputs) = (inputs.as_ptr(), outputs.as_ptr());
        let (arena, weights) = (self.arena.as_mut_ptr().cast(), self.weights.as_ptr().cast());
        // SAFETY: buffers have the sizes and the alignment that the artifact asks for, `ticks` is
        // null or has room for one more than all steps, and the steps exist. The threads of an
        // artifact may call it at once, and nothing unwinds out of a C function. A library that
        // breaks its side of the contract ruins this process, which exists to be lost.
        unsafe {
            match &self.entry {
                Entry::Alone(steps) => steps(inputs, outputs, arena, weights, first, last, ticks),
                Entry::Together(steps, crew) => crew.with(|pool| {
                    pool.run(&|thread, barrier| {
                        let ticks = if thread == 0 { ticks } else { ptr::null_mut() };
                        steps(
                            inputs, outputs, arena, weights, first, last, ticks, thread, barrier,
                        );
                    });
                }),
            }
        }
    }

    /// Fills f32 inputs with normal random numbers, always the same; others stay zero.
    fn fill_random(&mut self) {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        for (io, buffer) in self.artifact.inputs.iter().zip(&mut self.inputs) {
            buffer.bytes_mut().fill(0);
            if io.dtype != DType::F32 {
                continue;
            }
            for value in buffer.f32s_mut() {
                // Box and Muller; the first number is never zero.
                let (u, v) = (1.0 - rng.random::<f64>(), rng.random::<f64>());
                *value = ((-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()) as f32;
            }
        }
    }
}

fn n_bytes(io: &IoSpec) -> Result<usize, Refusal> {
    let n = io.shape.checked_len();
    n.and_then(|n| n.checked_mul(io.dtype.bytes()))
        .ok_or_else(|| Refusal::run_error(format!("`{}` is too large", io.name)))
}

/// Refuses traces that lie outside of their buffers.
fn check_traces(artifact: &Artifact) -> Result<(), Refusal> {
    for trace in artifact.steps.iter().flat_map(|step| &step.traces) {
        let n_elements = match trace.place {
            Place::Arena => Some(artifact.arena_bytes / trace.dtype.bytes()),
            Place::Output(idx) => artifact
                .outputs
                .get(idx)
                .filter(|io| io.dtype == trace.dtype)
                .map(|io| io.shape.len()),
        };
        let is_inside = n_elements
            .zip(end(&trace.view))
            .is_some_and(|(n_elements, end)| end <= n_elements);
        if !is_inside {
            let TraceSpec { value, place, .. } = trace;
            let message = format!("the trace of `{value}` is not inside of {place:?}");
            return Err(Refusal::run_error(message));
        }
    }
    Ok(())
}

/// Returns the elements that a buffer needs for a view; `None` if there is no such buffer.
pub(super) fn end(view: &View) -> Option<usize> {
    let [n, c, h, w] = view.dims;
    if view.block == 0 {
        return None;
    }
    let n_elements = n.checked_mul(c)?.checked_mul(h)?.checked_mul(w)?;
    if n_elements == 0 {
        return Some(0);
    }
    // The last block may be partly filled, the one before it is full.
    let last_block = (c - 1) / view.block;
    let in_last = last_block
        .checked_mul(view.block_stride)?
        .checked_add((c - 1) % view.block)?;
    let in_full = match last_block {
        0 => 0,
        _ => (last_block - 1)
            .checked_mul(view.block_stride)?
            .checked_add(view.block - 1)?,
    };
    let terms = [
        (n - 1).checked_mul(view.n_stride)?,
        in_last.max(in_full),
        (h - 1).checked_mul(view.row_stride)?,
        (w - 1).checked_mul(view.block)?,
        1,
    ];
    terms
        .iter()
        .try_fold(view.offset, |end, &term| end.checked_add(term))
}

/// Refuses a library that the system's loader does not take.
fn unloadable(message: String) -> Refusal {
    let is_memory = ["cannot map", "failed to map", "annot allocate memory"];
    if is_memory.iter().any(|text| message.contains(text)) {
        Refusal::out_of_memory(message)
    } else {
        Refusal::run_error(message)
    }
}
