//! How far a variant is from the model that it is a variant of, and whether that is near enough.
//!
//! Pure arithmetic: outputs come in sample by sample ([`Meter`]), a [`Divergence`] and [`Paired`]
//! counts come out, and [`judge`] holds them against [`Limits`]. What is fitted and what is checked
//! is kept apart by [`split`].

mod limits;
mod meter;
mod paired;
mod split;

pub use limits::{Limits, Missed, judge, score};
pub use meter::{Divergence, Meter};
pub use paired::Paired;
pub use split::split;
