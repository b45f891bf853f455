//! Segments: consecutive steps that run together, some rows at a time, so that what one step
//! writes is still in the cache when the next one reads it.
//!
//! A value that only the segment reads lives in a window: a buffer of some of its rows, which
//! slides down as the segment proceeds. [`stage`] says which rows a step reads, [`bands`] orders
//! the calls, [`windows`] finds where windows slide, [`propose`] finds segments worth a try.

mod bands;
mod propose;
mod resolve;
mod stage;
mod text;
mod windows;

pub use propose::propose;
pub(super) use resolve::{Banded, resolve};
pub use text::{ParseSegmentsError, Segment, Segments};
pub(super) use windows::Action;
