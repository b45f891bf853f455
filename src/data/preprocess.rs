//! What pixels become.

use super::DataErrorKind;
use crate::config::{Channels, Preprocess};

/// What pixels become, by channel of the input.
pub(super) struct Norms {
    scale: f32,
    mean: Vec<f32>,
    std: Vec<f32>,
    is_reversed: bool,
}

impl Norms {
    /// Spreads `mean` and `std` over the channels.
    pub(super) fn of(preprocess: &Preprocess, channels: usize) -> Result<Self, DataErrorKind> {
        let each = |key: &'static str, values: &[f32]| match values {
            [one] => Ok(vec![*one; channels]),
            many if many.len() == channels => Ok(many.to_vec()),
            many => Err(DataErrorKind::Preprocess {
                key,
                found: many.len(),
                channels,
            }),
        };
        Ok(Self {
            scale: preprocess.scale,
            mean: each("preprocess.mean", &preprocess.mean)?,
            std: each("preprocess.std", &preprocess.std)?,
            is_reversed: preprocess.channels == Channels::Bgr && channels == 3,
        })
    }

    /// Returns what the pixels of shape `[entries, channels, plane]` become.
    pub(super) fn apply(&self, pixels: &[u8], plane: usize) -> Vec<f32> {
        let channels = self.mean.len();
        let value = |idx: usize| {
            let (entry, within) = (idx / (channels * plane), idx % (channels * plane));
            let channel = within / plane;
            let from = if self.is_reversed {
                channels - 1 - channel
            } else {
                channel
            };
            let pixel = pixels[entry * channels * plane + from * plane + within % plane];
            (f32::from(pixel) * self.scale - self.mean[channel]) / self.std[channel]
        };
        (0..pixels.len()).map(value).collect()
    }
}
