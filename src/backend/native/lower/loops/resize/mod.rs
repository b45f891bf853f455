//! `Resize` and its forerunner `Upsample`: each axis is resampled on its own.
//!
//! What the outputs along an axis are made of (`taps`) is computed here, once; the kernels read it
//! from tables.

mod axis;
mod coordinate;
mod lower;
mod separable;
mod taps;

pub(super) use lower::lower;
pub(in crate::backend::native::lower) use lower::nearest_pixels;
