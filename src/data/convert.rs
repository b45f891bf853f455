//! From an array to the tensors of an input.

use super::DataErrorKind;
use super::arrays::{Array, Elements};
use super::preprocess::Norms;
use super::read::Input;
use crate::config::Preprocess;
use crate::graph::{DType, Tensor, TensorData, f16_to_f32, f64_to_f16};

/// Cuts an array into tensors for an input.
pub(super) fn tensors(
    name: &str,
    array: &Array,
    input: &Input<'_>,
    preprocess: &Preprocess,
) -> Result<Vec<Tensor>, DataErrorKind> {
    let n_samples = n_samples(name, array, input)?;
    let dims = input.shape.dims();
    let channels = if dims.len() >= 3 { dims[1] } else { 1 };
    let plane: usize = dims.iter().skip(2).product();
    let wrong_type = || DataErrorKind::Type {
        array: name.to_owned(),
        found: array.data.name().to_owned(),
        input: input.name.to_owned(),
        expected: input.dtype.to_string(),
    };
    let is_float = input.dtype.is_float();
    let norms = match &array.data {
        Elements::Bytes(_) if is_float => Some(Norms::of(preprocess, channels)?),
        _ => None,
    };
    let len = input.shape.len();
    let mut tensors = Vec::with_capacity(n_samples);
    for sample in 0..n_samples {
        let misfit = |misfit: Misfit| DataErrorKind::Element {
            array: name.to_owned(),
            sample,
            element: misfit.element,
            found: misfit.found,
            expected: if is_float {
                format!("a finite number of {}", input.dtype)
            } else {
                format!("of the range of {}", input.dtype)
            },
        };
        let range = sample * len..(sample + 1) * len;
        let data = match (&array.data, &norms) {
            (Elements::Bytes(data), Some(norms)) => {
                let values = norms.apply(&data[range], plane);
                reals(values.into_iter().map(f64::from), input.dtype)
            }
            (Elements::Bytes(data), None) => {
                integers(data[range].iter().map(|&value| value.into()), input.dtype)
            }
            (Elements::Integers(data), _) if is_float => {
                reals(data[range].iter().map(|&value| value as f64), input.dtype)
            }
            (Elements::Integers(data), _) => integers(data[range].iter().copied(), input.dtype),
            (Elements::Reals(data), _) if is_float => {
                reals(data[range].iter().copied(), input.dtype)
            }
            (Elements::Reals(_), _) => return Err(wrong_type()),
        };
        let tensor = Tensor::new(input.shape.clone(), data.map_err(misfit)?);
        tensors.push(tensor.map_err(|_| wrong_shape(name, array, input))?);
    }
    Ok(tensors)
}

/// Returns how many samples an array has for an input: each is a whole input, or takes as many
/// entries as the input has in its batch.
fn n_samples(name: &str, array: &Array, input: &Input<'_>) -> Result<usize, DataErrorKind> {
    let dims = input.shape.dims();
    let wrong = || wrong_shape(name, array, input);
    let (Some((&n, each)), Some((&batch, rest))) = (array.shape.split_first(), dims.split_first())
    else {
        return Err(wrong());
    };
    let plain =
        |dims: &[usize]| -> Vec<usize> { dims.iter().copied().filter(|&d| d != 1).collect() };
    if dims.contains(&0) {
        Err(wrong())
    } else if plain(each) == plain(dims) {
        Ok(n)
    } else if plain(each) != plain(rest) {
        Err(wrong())
    } else if n % batch == 0 {
        Ok(n / batch)
    } else {
        Err(DataErrorKind::Batch {
            array: name.to_owned(),
            found: n,
            input: input.name.to_owned(),
            batch,
        })
    }
}

/// Returns what is wrong with the shape of an array.
fn wrong_shape(name: &str, array: &Array, input: &Input<'_>) -> DataErrorKind {
    let sorted = |dims: &[usize]| {
        let mut dims: Vec<usize> = dims.iter().copied().filter(|&size| size != 1).collect();
        dims.sort_unstable();
        dims
    };
    let (array, found) = (name.to_owned(), &array.shape);
    let (expected, dims) = (input.shape.to_string(), input.shape.dims());
    let each = sorted(found.get(1..).unwrap_or_default());
    let is_permuted = !each.contains(&0)
        && (each == sorted(dims) || each == sorted(dims.get(1..).unwrap_or_default()));
    let (found, input) = (format!("{found:?}"), input.name.to_owned());
    if is_permuted {
        DataErrorKind::Order {
            array,
            found,
            input,
            expected,
        }
    } else {
        DataErrorKind::Shape {
            array,
            found,
            input,
            expected,
        }
    }
}

/// An element that does not become one of the input's.
struct Misfit {
    element: usize,
    found: String,
}

/// Converts numbers to those of a floating-point type.
fn reals(values: impl Iterator<Item = f64>, dtype: DType) -> Result<TensorData, Misfit> {
    fn each<T>(
        values: impl Iterator<Item = f64>,
        convert: impl Fn(f64) -> (T, bool),
    ) -> Result<Vec<T>, Misfit> {
        let convert = |(element, value): (usize, f64)| match convert(value) {
            (real, true) => Ok(real),
            (_, false) => Err(Misfit {
                element,
                found: value.to_string(),
            }),
        };
        values.enumerate().map(convert).collect()
    }
    Ok(match dtype {
        DType::F16 => TensorData::F16(each(values, |value| {
            let bits = f64_to_f16(value);
            (bits, f16_to_f32(bits).is_finite())
        })?),
        DType::F64 => TensorData::F64(each(values, |value| (value, value.is_finite()))?),
        _ => TensorData::F32(each(values, |value| {
            let real = value as f32;
            (real, real.is_finite())
        })?),
    })
}

/// Converts integers to those of a type.
fn integers(values: impl Iterator<Item = i64>, dtype: DType) -> Result<TensorData, Misfit> {
    fn each<T>(
        values: impl Iterator<Item = i64>,
        convert: impl Fn(i64) -> Option<T>,
    ) -> Result<Vec<T>, Misfit> {
        let convert = |(element, value): (usize, i64)| {
            convert(value).ok_or_else(|| Misfit {
                element,
                found: value.to_string(),
            })
        };
        values.enumerate().map(convert).collect()
    }
    Ok(match dtype {
        DType::I8 => TensorData::I8(each(values, |value| value.try_into().ok())?),
        DType::U8 => TensorData::U8(each(values, |value| value.try_into().ok())?),
        DType::I16 => TensorData::I16(each(values, |value| value.try_into().ok())?),
        DType::U16 => TensorData::U16(each(values, |value| value.try_into().ok())?),
        DType::I32 => TensorData::I32(each(values, |value| value.try_into().ok())?),
        DType::U32 => TensorData::U32(each(values, |value| value.try_into().ok())?),
        DType::U64 => TensorData::U64(each(values, |value| value.try_into().ok())?),
        DType::Bool => TensorData::Bool(each(values, |value| match value {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        })?),
        _ => TensorData::I64(values.collect()),
    })
}
