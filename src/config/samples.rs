//! Where the samples of a model are, how they become its inputs, and what they must show.

use std::fmt;
use std::path::PathBuf;

use crate::accuracy::Limits;

/// Name of the array of labels if none is given.
const LABELS: &str = "labels";

/// Where samples are, and how pictures become inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleSettings {
    /// Samples that variants are fitted to and compared on: a `.npz` or `.npy` file, or a directory of
    /// pictures.
    pub calibration: Option<PathBuf>,
    /// Samples for the last check.
    pub validation: Option<PathBuf>,
    /// Name of the array of labels.
    pub labels: String,
    /// How 8-bit pictures become inputs.
    pub preprocess: Preprocess,
}

/// How 8-bit pictures become inputs: `(pixel · scale − mean) / std`, by channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Preprocess {
    /// What one step of a pixel is worth.
    pub scale: f32,
    /// By channel, or one for all.
    pub mean: Vec<f32>,
    /// By channel, or one for all; not zero.
    pub std: Vec<f32>,
    /// What the channels of the input are.
    pub channels: Channels,
    /// How a picture of another size is fitted.
    pub resize: Resize,
}

/// What the channels of an input are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Channels {
    /// Red, green, blue; or luma, if the input has one channel.
    #[default]
    Rgb,
    /// Blue, green, red: pixels of red, green and blue change places.
    Bgr,
    /// Luma in every channel, of pictures only.
    Gray,
}

/// How a picture of another size is fitted to an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resize {
    /// To the size, whatever that does to proportions.
    #[default]
    Stretch,
    /// So that it covers the input; what stands out is cut off at both sides.
    Crop,
}

/// What a deployment must keep to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Accept {
    /// Limits on accuracy.
    pub limits: Limits,
    /// Longest latency, milliseconds.
    pub max_latency_ms: Option<f64>,
    /// Highest energy of one run, millijoules.
    pub max_energy_mj: Option<f64>,
}

impl Default for SampleSettings {
    fn default() -> Self {
        Self {
            calibration: None,
            validation: None,
            labels: LABELS.to_owned(),
            preprocess: Preprocess::default(),
        }
    }
}

impl Default for Preprocess {
    /// Returns what takes pixels to 0 to 1.
    fn default() -> Self {
        Self {
            scale: 1.0 / 255.0,
            mean: vec![0.0],
            std: vec![1.0],
            channels: Channels::default(),
            resize: Resize::default(),
        }
    }
}

impl fmt::Display for Accept {
    /// Formats as in the configuration: `max-kl 0.01, max-latency-ms 5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.limits.fmt(f)?;
        let others = [
            ("max-latency-ms", self.max_latency_ms),
            ("max-energy-mj", self.max_energy_mj),
        ];
        for (key, limit) in others {
            if let Some(limit) = limit {
                write!(f, ", {key} {limit}")?;
            }
        }
        Ok(())
    }
}
