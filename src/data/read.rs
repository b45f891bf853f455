//! From arrays to inputs.

use std::collections::BTreeMap;
use std::path::Path;

use super::arrays::{Array, Elements, read_arrays};
use super::convert::tensors;
use super::labels::classes;
use super::pictures::read_pictures;
use super::{DataError, DataErrorKind, Samples};
use crate::config::Preprocess;
use crate::graph::{DType, Shape, Tensor};

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
/// become floats by `preprocess`; others stay what they are. An array that is neither an input nor
/// the labels is a mistake, and so are more than 2²⁹ elements in all, which take 2 GiB as f32.
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
        let (array, labels) = read_pictures(path, input, preprocess)?;
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
    if let Some(array) = arrays.into_keys().next() {
        return Err(failed(DataErrorKind::Unknown {
            array,
            inputs: listed(inputs.iter().map(|input| input.name)),
            labels: labels.to_owned(),
        }));
    }
    if samples.is_empty() {
        return Err(failed(DataErrorKind::TooFew {
            found: 0,
            needed: 1,
        }));
    }
    let labels = match label_array {
        Some(array) => {
            let batch = inputs.first().and_then(|input| input.shape.dims().first());
            let batch = batch.copied().unwrap_or(1);
            Some(classes(&array, labels, samples.len(), batch).map_err(failed)?)
        }
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
        _ => listed(arrays.keys()),
    };
    let only = (arrays.len() == 1 && n_inputs == 1).then(|| arrays.pop_first());
    only.flatten().ok_or_else(|| DataErrorKind::NoArray {
        input: input.name.to_owned(),
        found,
    })
}

/// Returns names as messages have them.
fn listed(names: impl Iterator<Item = impl std::fmt::Display>) -> String {
    let quoted: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
