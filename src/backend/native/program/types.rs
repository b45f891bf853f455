//! What assembling gives.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::ops::Range;

use super::threads;
use crate::backend::native::kernels::Shares;
use crate::backend::{Fill, IoSpec, TraceSpec};
use crate::device::Isa;
use crate::digest::{Digest, Encoder};

/// A whole model, ready to be compiled.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// Instruction set that it needs.
    pub isa: Isa,
    /// CPU features that it needs, as `is_x86_feature_detected!` spells them.
    pub features: BTreeSet<String>,
    /// Kernels by name of their function.
    pub kernels: BTreeMap<String, KernelSource>,
    /// Calls, in order.
    pub steps: Vec<Step>,
    /// Threads that run it together; 1 if no step is divided.
    pub threads: usize,
    /// Size of the arena, bytes.
    pub arena_bytes: usize,
    /// What the arena holds before the first run, where it is not zero.
    pub fills: Vec<Fill>,
    /// Packed weights and constants of all kernels, little-endian.
    pub weights: Vec<u8>,
    /// Inputs of the model.
    pub inputs: Vec<IoSpec>,
    /// Outputs of the model.
    pub outputs: Vec<IoSpec>,
    /// The step that the numbers of each output are rounded to; 0 where they are not.
    pub resolutions: Vec<f32>,
}

/// The source of one kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelSource {
    /// Digest of the source.
    pub digest: Digest,
    /// A module body that defines the function.
    pub source: String,
    /// Types of the function's parameters.
    pub parameters: Vec<&'static str>,
    /// Subgraph whose mapping it comes from; `None` for conversions.
    pub subgraph: Option<usize>,
}

/// One kernel call.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What it is, for people.
    pub name: String,
    /// Name of the kernel's function.
    pub symbol: String,
    /// Arguments, in order.
    pub args: Vec<Arg>,
    /// The subgraph it belongs to; `None` for conversions.
    pub subgraph: Option<usize>,
    /// For a conversion, what it converts.
    pub conversion: Option<String>,
    /// How its work is divided, if the kernel takes a range of it.
    pub shares: Option<Shares>,
    /// Whether all threads wait for each other behind it.
    pub has_barrier: bool,
    /// Values that it completes.
    pub traces: Vec<TraceSpec>,
}

/// What a pointer argument points to, offsets in bytes; or a bound of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arg {
    /// The arena; before its start, if only rows that lie within it are touched.
    Arena(isize),
    /// Memory in the arena that each thread has its own of, `each` bytes apart.
    Room {
        /// That of the first thread.
        first: usize,
        /// How many bytes each has.
        each: usize,
    },
    /// The packed weights.
    Weights(usize),
    /// An input of the model.
    Input(usize),
    /// An output of the model.
    Output(usize),
    /// The first unit of the step's work that a call does.
    First,
    /// The unit after the last.
    End,
    /// A unit of the step's work.
    Unit(usize),
}

impl fmt::Display for Arg {
    /// Formats as the expression of the pointer where `a` is the arena, `w` the weights, both of
    /// bytes, and `inputs` and `outputs` point to pointers; each is cast to what the kernel takes.
    /// The bounds are the variables `first` and `end`, and the thread is the first one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arena(offset) if *offset < 0 => {
                write!(f, "a.wrapping_sub({}) as _", offset.unsigned_abs())
            }
            Self::Arena(offset) => write!(f, "a.add({offset}) as _"),
            Self::Room { first, .. } => write!(f, "a.add({first}) as _"),
            Self::Weights(offset) => write!(f, "w.add({offset}) as _"),
            Self::Input(idx) => write!(f, "*inputs.add({idx}) as _"),
            Self::Output(idx) => write!(f, "*outputs.add({idx}) as _"),
            Self::First => f.write_str("first"),
            Self::End => f.write_str("end"),
            Self::Unit(unit) => write!(f, "{unit}"),
        }
    }
}

impl Step {
    /// Returns the expression that does all of its work, by the function of that path.
    pub fn call(&self, function: &str) -> String {
        let args: Vec<String> = self.args.iter().map(ToString::to_string).collect();
        let call = format!("{function}({})", args.join(", "));
        match self.shares {
            Some(shares) => format!("{{ let (first, end) = (0, {}); {call} }}", shares.units),
            None => call,
        }
    }

    /// Returns the statements that one of several threads does of it, by the function of that path:
    /// where `thread` is its number, `barrier` the barrier of all of them, and `let_others_go` a
    /// function for those who wait.
    pub fn turn(&self, function: &str, threads: usize) -> String {
        let mut turn = match self.shares {
            Some(shares) => {
                let parts = threads::parts(shares, threads).into_iter().enumerate();
                let parts = parts.filter(|(_, units)| !units.is_empty());
                let arms = parts.map(|(thread, units)| {
                    let call = self.part(units).on(thread).call(function);
                    format!("{thread} => {call}, ")
                });
                format!("match thread {{ {}_ => {{}} }}", arms.collect::<String>())
            }
            None => format!("if thread == 0 {{ {}; }}", self.call(function)),
        };
        if self.has_barrier {
            let _ = write!(turn, " barrier.wait({threads}, let_others_go);");
        }
        turn
    }

    /// Returns the part of the step that does a range of its units.
    #[must_use]
    pub fn part(&self, units: Range<usize>) -> Self {
        let mut part = self.clone();
        part.shares = None;
        for arg in &mut part.args {
            match arg {
                Arg::First => *arg = Arg::Unit(units.start),
                Arg::End => *arg = Arg::Unit(units.end),
                _ => {}
            }
        }
        part
    }

    /// Returns the step as a thread does it, with memory of its own.
    #[must_use]
    pub fn on(mut self, thread: usize) -> Self {
        for arg in &mut self.args {
            if let Arg::Room { first, each } = *arg {
                *arg = Arg::Arena((first + thread * each) as isize);
            }
        }
        self
    }
}

impl Program {
    /// Returns the digest of the code and its arguments; weights do not enter.
    pub fn code_digest(&self) -> Digest {
        let mut encoder = Encoder::new("metainfer program v1");
        encoder.str(self.isa.name());
        encoder.u64(self.arena_bytes as u64);
        for fill in &self.fills {
            for number in [fill.offset, fill.len, fill.byte.into()] {
                encoder.u64(number as u64);
            }
        }
        encoder.u64(self.steps.len() as u64);
        if self.threads > 1 {
            encoder.u64(self.threads as u64);
        }
        for step in &self.steps {
            encoder.str(&step.symbol);
            if self.threads > 1 {
                encoder.u64(step.shares.map_or(0, |shares| shares.units as u64));
                encoder.u64(step.has_barrier.into());
            }
            for arg in &step.args {
                let (kind, offset) = match *arg {
                    Arg::Arena(offset) => (0, offset.cast_unsigned()),
                    Arg::Weights(offset) => (1, offset),
                    Arg::Input(idx) => (2, idx),
                    Arg::Output(idx) => (3, idx),
                    Arg::First => (4, 0),
                    Arg::End => (5, 0),
                    Arg::Unit(unit) => (6, unit),
                    Arg::Room { first, each } => {
                        encoder.u64(each as u64);
                        (7, first)
                    }
                };
                encoder.u64(kind);
                encoder.u64(offset as u64);
            }
        }
        encoder.finish()
    }

    /// Returns the digest of code and weights.
    pub fn digest(&self) -> Digest {
        let mut encoder = Encoder::new("metainfer program and weights v1");
        encoder.digest(&self.code_digest());
        encoder.bytes(&self.weights);
        encoder.finish()
    }
}
