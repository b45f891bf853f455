//! What a backend hands to the worker: a library, its weights, and what its steps do.
//!
//! The library exports one symbol, `metainfer_steps`, with C calling convention:
//!
//! ```c
//! // Runs steps first..last. With ticks, ticks[i] is the counter before step i and ticks[last]
//! // the counter after the last one.
//! void metainfer_steps(const void *const *inputs, void *const *outputs, void *arena,
//!                      const void *weights, size_t first, size_t last, uint64_t *ticks);
//! ```
//!
//! If [`Artifact::threads`] is more than 1, the function has two more parameters,
//! `size_t thread, const Barrier *barrier`: each of so many threads calls it at once with a number
//! of its own from 0, and with one barrier (`templates/threads/barrier.rs`); ticks are those of
//! thread 0, null for all others. When thread 0 returns, all have done their part.
//!
//! `arena` has [`Artifact::arena_bytes`] bytes, aligned to 64; it is zeroed and
//! [`Artifact::fills`] are written to it once before the first run. `weights` is the content of the
//! weights file, aligned to 64. Step 0 may follow the last step at any time: a run leaves the arena
//! ready for the next one. The counter is the processor's time-stamp counter; the worker converts
//! it to nanoseconds.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::graph::{DType, Shape};

/// Arenas of so many bytes or more ask the system for huge pages, in the worker as in a deployed
/// model: a first run on 4 KiB pages spends as much time on page faults as on the model (80 MB of
/// arena: 102 ms instead of 51), and later ones 2 to 10 % on addresses.
pub const HUGE_PAGES_FROM: usize = 4 << 20;

/// A compiled candidate for every subgraph of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Artifact {
    /// Digest of everything that was compiled.
    pub digest: Digest,
    /// Shared library; its path is unique, as a loader may return an old library for a known one.
    pub library: PathBuf,
    /// Packed weights and constants, little-endian.
    pub weights: PathBuf,
    /// Size of the arena, bytes.
    pub arena_bytes: usize,
    /// Threads that run it together.
    pub threads: usize,
    /// What the arena holds before the first run, where it is not zero.
    pub fills: Vec<Fill>,
    /// Inputs of the model, in order.
    pub inputs: Vec<IoSpec>,
    /// Outputs of the model, in order.
    pub outputs: Vec<IoSpec>,
    /// The step that the numbers of each output are rounded to; 0 where they are not.
    pub resolutions: Vec<f32>,
    /// What each step does, in order of execution.
    pub steps: Vec<StepSpec>,
    /// Wall time that compiling took, nanoseconds.
    pub compile_ns: u64,
}

/// Bytes of the arena that hold another value than zero before the first run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fill {
    /// Where they begin.
    pub offset: usize,
    /// How many there are.
    pub len: usize,
    /// What each of them is.
    pub byte: u8,
}

/// A model input or output: dense and row-major.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoSpec {
    /// Name in the model.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Shape.
    pub shape: Shape,
}

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepSpec {
    /// What it is, for people, e.g. `conv_1x1 64→128`.
    pub name: String,
    /// Which subgraph it belongs to (index into the partition); `None` for a layout conversion
    /// between two subgraphs.
    pub subgraph: Option<usize>,
    /// For a conversion, what it converts; it is tuned and priced like a task of its own.
    pub conversion: Option<String>,
    /// What can be compared with the reference right after the step.
    pub traces: Vec<TraceSpec>,
}

/// Where a value of the graph is after a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceSpec {
    /// Name of the value in the graph; the reference has it under this name, row-major.
    pub value: String,
    /// Which buffer holds it.
    pub place: Place,
    /// Element type.
    pub dtype: DType,
    /// How it lies there.
    pub view: View,
}

/// A buffer of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The arena.
    Arena,
    /// Output `n` of the model.
    Output(usize),
}

/// How a value lies in a buffer, in elements of its type.
///
/// The value is seen as `[n, c, h, w]`; element `(n, c, h, w)` is at
/// `offset + n·n_stride + (c / block)·block_stride + h·row_stride + w·block + c % block`.
/// Other ranks are seen as `[1, 1, 1, len]` with block 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Elements before the first one.
    pub offset: usize,
    /// Extents `[n, c, h, w]`.
    pub dims: [usize; 4],
    /// Channels that lie next to each other.
    pub block: usize,
    /// Elements between batches.
    pub n_stride: usize,
    /// Elements between channel blocks.
    pub block_stride: usize,
    /// Elements between rows.
    pub row_stride: usize,
}

impl View {
    /// Returns how dense elements lie, whatever their shape.
    pub const fn dense(len: usize) -> Self {
        Self {
            offset: 0,
            dims: [1, 1, 1, len],
            block: 1,
            n_stride: len,
            block_stride: len,
            row_stride: len,
        }
    }

    /// Returns the index of element `(n, c, h, w)`.
    pub fn index(&self, n: usize, c: usize, h: usize, w: usize) -> usize {
        self.offset
            + n * self.n_stride
            + (c / self.block) * self.block_stride
            + h * self.row_stride
            + w * self.block
            + c % self.block
    }
}
