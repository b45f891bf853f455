//! Segments: consecutive steps that run together, some rows at a time, so that what one step
//! writes is still in the cache when the next one reads it.
//!
//! A value that only the segment reads lives in a window: a buffer of some of its rows, which
//! slides down as the segment proceeds. [`stage`] says which rows a step reads, [`bands`] orders
//! the calls, [`windows`] finds where windows slide, [`cuts`] says where segments may begin and
//! end, [`propose`] finds segments worth a try, [`neighbours`] those that differ by one cut.

mod bands;
mod cuts;
mod neighbours;
mod propose;
mod resolve;
mod stage;
mod text;
mod windows;

pub use neighbours::neighbours;
pub use propose::propose;
pub(super) use resolve::{Banded, resolve};
pub use text::{ParseSegmentsError, Segment, Segments};
pub(super) use windows::Action;
