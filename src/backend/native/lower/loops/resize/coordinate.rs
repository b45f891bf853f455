//! Where an element of the output lies in the input: the coordinate transformation modes.

use super::axis::Axis;

/// A coordinate transformation mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transformation {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    TfHalfPixelForNn,
    TfCropAndResize,
}

impl Transformation {
    pub(super) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "half_pixel" => Self::HalfPixel,
            "half_pixel_symmetric" => Self::HalfPixelSymmetric,
            "pytorch_half_pixel" => Self::PytorchHalfPixel,
            "align_corners" => Self::AlignCorners,
            "asymmetric" => Self::Asymmetric,
            "tf_half_pixel_for_nn" => Self::TfHalfPixelForNn,
            "tf_crop_and_resize" => Self::TfCropAndResize,
            _ => return None,
        })
    }

    /// Returns the place in the input of element `at` of the output, in f32 as other engines
    /// compute it: what is nearest depends on how it is rounded.
    pub(super) fn place(self, axis: &Axis, at: usize) -> f32 {
        let (at, scale) = (at as f32, axis.scale);
        let old = axis.old as f32;
        // What the scale asks for, of which the extent is the whole part.
        let new = scale * old;
        match self {
            Self::HalfPixel => (at + 0.5) / scale - 0.5,
            Self::HalfPixelSymmetric => {
                let adjustment = axis.new as f32 / new;
                old / 2.0 * (1.0 - adjustment) + (at + 0.5) / scale - 0.5
            }
            Self::PytorchHalfPixel if axis.new > 1 => (at + 0.5) / scale - 0.5,
            Self::AlignCorners if axis.new > 1 => at * (old - 1.0) / (new - 1.0),
            Self::PytorchHalfPixel | Self::AlignCorners => 0.0,
            Self::Asymmetric => at / scale,
            Self::TfHalfPixelForNn => (at + 0.5) / scale,
            Self::TfCropAndResize => {
                let [start, end] = axis.region;
                if axis.new > 1 {
                    start * (old - 1.0) + at * (end - start) * (old - 1.0) / (axis.new as f32 - 1.0)
                } else {
                    0.5 * (start + end) * (old - 1.0)
                }
            }
        }
    }
}
