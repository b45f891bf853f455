//! Directories of pictures.

use std::path::{Path, PathBuf};

use image::imageops::FilterType;
use image::{DynamicImage, ImageReader};

use super::arrays::{Array, Elements, MAX_ELEMENTS};
use super::labels::{LABELS, read_labels};
use super::read::Input;
use super::{DataError, DataErrorKind};
use crate::config::{Channels, Preprocess, Resize};
use crate::graph::DType;

/// Endings of files that are pictures.
const ENDINGS: [&str; 4] = ["png", "jpg", "jpeg", "bmp"];

/// Reads the pictures of a directory, sorted by name, as 8-bit values in the layout of an input, red,
/// green, blue or luma; with the labels of `labels.csv` if there is one.
pub(super) fn read_pictures(
    dir: &Path,
    input: &Input<'_>,
    preprocess: &Preprocess,
) -> Result<(Array, Option<Vec<i64>>), DataError> {
    let failed = |kind| DataError {
        path: dir.to_owned(),
        kind: Box::new(kind),
    };
    let (DType::F32, &[1, channels @ (1 | 3), height, width]) = (input.dtype, input.shape.dims())
    else {
        return Err(failed(DataErrorKind::NoPictureInput {
            input: input.name.to_owned(),
            shape: input.shape.to_string(),
        }));
    };
    let unreadable = |error: std::io::Error| failed(DataErrorKind::Read(error.to_string()));
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in dir.read_dir().map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        if ending.is_some_and(|ending| ENDINGS.contains(&ending.to_ascii_lowercase().as_str())) {
            files.push(path);
        }
    }
    files.sort();
    let names: Vec<String> = files.iter().map(|path| file_name(path)).collect();
    let sizes = [files.len(), channels, height, width].map(|size| size as u64);
    let elements = sizes.into_iter().fold(1, u64::saturating_mul);
    if elements > MAX_ELEMENTS {
        return Err(failed(DataErrorKind::TooLarge {
            elements,
            limit: MAX_ELEMENTS,
        }));
    }
    let mut data = Vec::new();
    for (path, name) in files.iter().zip(&names) {
        let picture = |reason: String| {
            failed(DataErrorKind::Picture {
                name: name.clone(),
                reason,
            })
        };
        let opened = ImageReader::open(path).and_then(ImageReader::with_guessed_format);
        let opened = opened.map_err(|error| picture(error.to_string()))?;
        let decoded = opened
            .decode()
            .map_err(|error| picture(error.to_string()))?;
        let fitted = fit(decoded, width, height, preprocess.resize);
        append(&mut data, &fitted, channels, preprocess.channels);
    }
    let array = Array {
        shape: vec![files.len(), channels, height, width],
        data: Elements::Bytes(data),
    };
    let labels = dir.join(LABELS);
    let labels = if labels.exists() {
        Some(read_labels(&labels, &names).map_err(failed)?)
    } else {
        None
    };
    Ok((array, labels))
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn fit(picture: DynamicImage, width: usize, height: usize, resize: Resize) -> DynamicImage {
    let (width, height) = (width as u32, height as u32);
    if (picture.width(), picture.height()) == (width, height) {
        return picture;
    }
    match resize {
        Resize::Stretch => picture.resize_exact(width, height, FilterType::Triangle),
        Resize::Crop => picture.resize_to_fill(width, height, FilterType::Triangle),
    }
}

/// Appends a picture channel by channel.
fn append(data: &mut Vec<u8>, picture: &DynamicImage, channels: usize, what: Channels) {
    if channels == 1 || what == Channels::Gray {
        let luma = picture.to_luma8();
        for _ in 0..channels {
            data.extend_from_slice(luma.as_raw());
        }
        return;
    }
    let rgb = picture.to_rgb8();
    for channel in 0..channels {
        data.extend(rgb.as_raw().iter().skip(channel).step_by(channels));
    }
}
