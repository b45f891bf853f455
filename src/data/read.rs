//! From arrays to inputs.

use std::collections::BTreeMap;
use std::path::Path;

use super::arrays::{Array, Elements, read_arrays};
use super::pictures::read_pictures;
use super::{DataError, DataErrorKind, Samples};
use crate::config::{Channels, Preprocess};
use crate::graph::{DType, Shape, Tensor, TensorData};

/// What an input of a model takes.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// Its name.
    pub name: &'a str,
    /// Type of its elements.
    pub dtype: DType,
    /// Its shape.
    pub shape: &'a Shape,
}

/// Reads the samples of a model from a `.npz` or `.npy` file or a directory of pictures.
///
/// Arrays are named as inputs are; a model with one input takes the only array that is not the
/// labels. The first axis counts samples, and each has the shape of the input, of which axes of 1 may
/// be left out; an input with a batch of several takes as many entries a sample. Elements of type u8
/// become floats by `preprocess`; others stay what they are.
///
/// # Errors
/// [`DataError`] names the file, the place and what is wrong.
pub fn read(
    path: &Path,
    preprocess: &Preprocess,
    labels: &str,
    inputs: &[Input<'_>],
) -> Result<Samples, DataError> {
    let failed = |kind| DataError {
        path: path.to_owned(),
        kind: Box::new(kind),
    };
    let (mut arrays, label_array) = if path.is_dir() {
        let [input] = inputs else {
            let found = format!("{} inputs", inputs.len());
            return Err(failed(DataErrorKind::NoPictureInput {
                input: inputs
                    .first()
                    .map_or_else(String::new, |i| i.name.to_owned()),
                shape: found,
            }));
        };
        let (array, labels) = read_pictures(path, input, preprocess.resize)?;
        let labels = labels.map(|labels| Array {
            shape: vec![labels.len()],
            data: Elements::Integers(labels),
        });
        (BTreeMap::from([(input.name.to_owned(), array)]), labels)
    } else {
        let ending = path.extension().and_then(|ending| ending.to_str());
        if path.exists() && !matches!(ending, Some("npz" | "npy")) {
            return Err(failed(DataErrorKind::Format));
        }
        let mut arrays = read_arrays(path).map_err(failed)?;
        let is_input = inputs.iter().any(|input| input.name == labels);
        let labels = if is_input {
            None
        } else {
            arrays.remove(labels)
        };
        (arrays, labels)
    };
    let mut n_samples: Option<usize> = None;
    let mut samples: Vec<BTreeMap<String, Tensor>> = Vec::new();
    for input in inputs {
        let (name, array) = take(&mut arrays, input, inputs.len()).map_err(failed)?;
        let tensors = tensors(&name, &array, input, preprocess).map_err(failed)?;
        let expected = *n_samples.get_or_insert(tensors.len());
        if tensors.len() != expected {
            return Err(failed(DataErrorKind::Length {
                array: name,
                found: tensors.len(),
                expected,
            }));
        }
        samples.resize_with(expected, BTreeMap::new);
        for (sample, tensor) in samples.iter_mut().zip(tensors) {
            sample.insert(input.name.to_owned(), tensor);
        }
    }
    if samples.is_empty() {
        return Err(failed(DataErrorKind::TooFew {
            found: 0,
            needed: 1,
        }));
    }
    let labels = match label_array {
        Some(array) => Some(classes(&array, labels, samples.len()).map_err(failed)?),
        None => None,
    };
    Ok(Samples::new(path, samples, labels))
}

/// Takes the array of an input out of those that there are.
fn take(
    arrays: &mut BTreeMap<String, Array>,
    input: &Input<'_>,
    n_inputs: usize,
) -> Result<(String, Array), DataErrorKind> {
    if let Some(array) = arrays.remove(input.name) {
        return Ok((input.name.to_owned(), array));
    }
    let found = match arrays.len() {
        0 => "none".to_owned(),
        _ => arrays
            .keys()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let only = (arrays.len() == 1 && n_inputs == 1).then(|| arrays.pop_first());
    only.flatten().ok_or_else(|| DataErrorKind::NoArray {
        input: input.name.to_owned(),
        found,
    })
}

/// Cuts an array into tensors for an input.
fn tensors(
    name: &str,
    array: &Array,
    input: &Input<'_>,
    preprocess: &Preprocess,
) -> Result<Vec<Tensor>, DataErrorKind> {
    let dims = input.shape.dims();
    let wrong = || DataErrorKind::Shape {
        array: name.to_owned(),
        found: format!("{:?}", array.shape),
        input: input.name.to_owned(),
        expected: input.shape.to_string(),
    };
    let (Some((&n, each)), Some((&batch, rest))) = (array.shape.split_first(), dims.split_first())
    else {
        return Err(wrong());
    };
    let plain =
        |dims: &[usize]| -> Vec<usize> { dims.iter().copied().filter(|&d| d != 1).collect() };
    // A sample is a whole input, or one of the entries of its batch.
    let n_rows = if plain(each) == plain(dims) {
        1
    } else if plain(each) == plain(rest) {
        batch.max(1)
    } else {
        return Err(wrong());
    };
    if n % n_rows != 0 {
        return Err(wrong());
    }
    let len = input.shape.len();
    let channels = if dims.len() >= 3 { dims[1] } else { 1 };
    let plane: usize = dims.iter().skip(2).product::<usize>().max(1);
    let element = |sample: usize, found: String, expected| DataErrorKind::Element {
        array: name.to_owned(),
        sample,
        found,
        expected,
    };
    let wrong_type = || DataErrorKind::Type {
        array: name.to_owned(),
        found: array.data.name().to_owned(),
        input: input.name.to_owned(),
        expected: input.dtype.to_string(),
    };
    let norms = match (&array.data, input.dtype) {
        (Elements::Bytes(_), DType::F32) => Some(Norms::of(preprocess, channels)?),
        _ => None,
    };
    let mut tensors = Vec::with_capacity(n / n_rows);
    for sample in 0..n / n_rows {
        let range = sample * len..(sample + 1) * len;
        let data = match (&array.data, input.dtype) {
            (Elements::Bytes(data), DType::F32) => {
                let norms = norms.as_ref().ok_or_else(wrong_type)?;
                TensorData::F32(norms.apply(&data[range], channels, plane))
            }
            (Elements::Reals(data), DType::F32) => {
                let reals = data[range].iter().map(|&value| {
                    let real = value as f32;
                    let is_real = real.is_finite();
                    is_real
                        .then_some(real)
                        .ok_or_else(|| element(sample, value.to_string(), "a finite number of f32"))
                });
                TensorData::F32(reals.collect::<Result<_, _>>()?)
            }
            (Elements::Integers(data), DType::F32) => {
                TensorData::F32(data[range].iter().map(|&value| value as f32).collect())
            }
            (Elements::Reals(_), _) => return Err(wrong_type()),
            (data, dtype) => {
                let ints: Vec<i64> = match data {
                    Elements::Bytes(data) => data[range].iter().map(|&v| v.into()).collect(),
                    Elements::Integers(data) => data[range].to_vec(),
                    Elements::Reals(_) => return Err(wrong_type()),
                };
                let misfit =
                    |value: i64| element(sample, value.to_string(), "in the input's range");
                integers(&ints, dtype, &misfit)?.ok_or_else(wrong_type)?
            }
        };
        let tensor = Tensor::new(input.shape.clone(), data).map_err(|_| wrong())?;
        tensors.push(tensor);
    }
    Ok(tensors)
}

/// Converts integers to those of an input; `None` if its elements are none.
fn integers(
    values: &[i64],
    dtype: DType,
    misfit: &dyn Fn(i64) -> DataErrorKind,
) -> Result<Option<TensorData>, DataErrorKind> {
    macro_rules! fit {
        ($variant:ident, $type:ty) => {{
            let fit = |&value: &i64| <$type>::try_from(value).map_err(|_| misfit(value));
            TensorData::$variant(values.iter().map(fit).collect::<Result<_, _>>()?)
        }};
    }
    Ok(Some(match dtype {
        DType::I64 => TensorData::I64(values.to_vec()),
        DType::I32 => fit!(I32, i32),
        DType::U8 => fit!(U8, u8),
        DType::I8 => fit!(I8, i8),
        DType::I16 => fit!(I16, i16),
        DType::U16 => fit!(U16, u16),
        DType::U32 => fit!(U32, u32),
        DType::U64 => fit!(U64, u64),
        DType::Bool => {
            let fit = |&value: &i64| match value {
                0 => Ok(false),
                1 => Ok(true),
                _ => Err(misfit(value)),
            };
            TensorData::Bool(values.iter().map(fit).collect::<Result<_, _>>()?)
        }
        _ => return Ok(None),
    }))
}

/// What pixels become, by channel of the input.
struct Norms {
    scale: f32,
    mean: Vec<f32>,
    std: Vec<f32>,
    is_reversed: bool,
}

impl Norms {
    fn of(preprocess: &Preprocess, channels: usize) -> Result<Self, DataErrorKind> {
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

    fn apply(&self, pixels: &[u8], channels: usize, plane: usize) -> Vec<f32> {
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

/// Reads an array of classes.
fn classes(array: &Array, name: &str, n_samples: usize) -> Result<Vec<u32>, DataErrorKind> {
    let label = |sample: usize, found: String| DataErrorKind::Label {
        sample,
        found,
        classes: u32::MAX.into(),
    };
    let labels = match &array.data {
        Elements::Bytes(data) => data.iter().map(|&class| u32::from(class)).collect(),
        Elements::Integers(data) => {
            let class = |(sample, &class): (usize, &i64)| {
                u32::try_from(class).map_err(|_| label(sample, class.to_string()))
            };
            data.iter()
                .enumerate()
                .map(class)
                .collect::<Result<Vec<u32>, _>>()?
        }
        Elements::Reals(data) => {
            return Err(label(
                0,
                data.first().map_or_else(String::new, f64::to_string),
            ));
        }
    };
    if labels.len() == n_samples {
        return Ok(labels);
    }
    Err(DataErrorKind::Length {
        array: name.to_owned(),
        found: labels.len(),
        expected: n_samples,
    })
}
