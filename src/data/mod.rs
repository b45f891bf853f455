//! Calibration and validation samples: arrays in the format of `NumPy`, or directories of pictures.
//!
//! What comes out are inputs of a model, ready to be fed, one [`Samples::inputs`] entry a run. Every
//! mistake in the data is a sentence that names the file, the place in it and the remedy.

mod arrays;
mod convert;
mod error;
mod header;
mod labels;
mod pictures;
mod preprocess;
mod read;
mod samples;

pub use error::{DataError, DataErrorKind};
pub use read::{Input, read};
pub use samples::{MIN_CALIBRATION, Samples};

#[cfg(test)]
mod tests;
