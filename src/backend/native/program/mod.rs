//! A whole model as a sequence of kernel calls over one arena.
//!
//! [`assemble`] decides in which layouts each value exists, inserts the conversions between them,
//! gives borders to the buffers that need them, renders the kernels, plans the memory and resolves
//! every argument. For several threads, it divides steps among them. It compiles nothing.

mod assemble;
mod bind;
mod buffers;
mod emit;
mod memory;
mod planned;
mod readers;
mod schedule;
mod segment;
mod threads;
mod types;

pub use assemble::{AssembleError, Choice, assemble, assemble_for};
pub use segment::{ParseSegmentsError, Segment, Segments, neighbours, propose};
pub use types::{Arg, KernelSource, Program, Step};
