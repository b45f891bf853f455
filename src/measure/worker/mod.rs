//! The worker's side: loads artifacts, checks their numbers, takes samples.
//!
//! This is the one place that runs compiled candidates. Their code is trusted no further than
//! that it may ruin this process: sizes are checked before a step runs, everything else is left to
//! the tool, which sees the process end or be silent.

#[path = "../../../templates/threads/barrier.rs"]
mod barrier;
mod buffer;
mod check;
mod clock;
mod crew;
mod host;
mod library;
#[path = "../../../templates/threads/pool.rs"]
#[expect(unsafe_code, reason = "threads take a job that they do not own")]
mod pool;
mod process;
mod reference;
mod refusal;
mod run;
mod serve;
mod slot;
#[cfg(test)]
mod tests;
mod timing;

pub use library::load_math_library;
pub use process::{main, requested};
pub use serve::serve;
