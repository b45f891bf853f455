//! Arrays in the format of `NumPy`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use npyz::{DType, NpyFile, Order};
use zip::ZipArchive;
use zip::result::ZipError;

use super::DataErrorKind;
use super::header::checked;

/// Elements that the arrays of a file or the pictures of a directory may have together: as f32 they
/// take 2 GiB of memory.
pub(super) const MAX_ELEMENTS: u64 = 1 << 29;

/// An array: 8-bit pictures, whole numbers or reals.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Array {
    pub(super) shape: Vec<usize>,
    pub(super) data: Elements,
}

/// Elements in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Elements {
    /// u8.
    Bytes(Vec<u8>),
    /// Other integers, and booleans.
    Integers(Vec<i64>),
    /// f32 and f64.
    Reals(Vec<f64>),
}

impl Elements {
    /// Returns how many there are.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Bytes(data) => data.len(),
            Self::Integers(data) => data.len(),
            Self::Reals(data) => data.len(),
        }
    }

    /// Returns the word for the type.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Bytes(_) => "u8",
            Self::Integers(_) => "integer",
            Self::Reals(_) => "float",
        }
    }
}

/// Reads all arrays of a `.npz` file by name, or the one of a `.npy` file under no name.
pub(super) fn read_arrays(path: &Path) -> Result<BTreeMap<String, Array>, DataErrorKind> {
    let failed = |error: std::io::Error| DataErrorKind::Read(error.to_string());
    let file = BufReader::new(File::open(path).map_err(failed)?);
    if path.extension().is_some_and(|extension| extension == "npy") {
        let array = read_array("", file, MAX_ELEMENTS)?;
        return Ok([(String::new(), array)].into());
    }
    let damaged = |error: ZipError| DataErrorKind::Read(error.to_string());
    let mut archive = ZipArchive::new(file).map_err(damaged)?;
    let mut arrays = BTreeMap::new();
    let mut n_left = MAX_ELEMENTS;
    for idx in 0..archive.len() {
        let entry = archive.by_index(idx).map_err(damaged)?;
        let name = entry.name().map_err(damaged)?.into_owned();
        if let Some(name) = name.strip_suffix(".npy") {
            let array = read_array(name, entry, n_left)?;
            n_left -= array.data.len() as u64;
            arrays.insert(name.to_owned(), array);
        }
    }
    Ok(arrays)
}

/// Reads an array of up to `n_left` elements.
fn read_array<R: Read>(name: &str, file: R, n_left: u64) -> Result<Array, DataErrorKind> {
    let failed = |error: std::io::Error| {
        DataErrorKind::Read(match name {
            "" => error.to_string(),
            name => format!("array `{name}`: {error}"),
        })
    };
    let file = checked(file).and_then(NpyFile::new).map_err(failed)?;
    let dtype = file.dtype();
    let text = match &dtype {
        DType::Plain(plain) => plain.to_string(),
        other => other.descr(),
    };
    let shape = file.shape().to_vec();
    let count = shape
        .iter()
        .try_fold(1u64, |count, &size| count.checked_mul(size));
    let elements = count.unwrap_or(u64::MAX);
    if elements > n_left {
        return Err(DataErrorKind::TooLarge {
            elements: elements.saturating_add(MAX_ELEMENTS - n_left),
            limit: MAX_ELEMENTS,
        });
    }
    let order = file.order();
    macro_rules! integers {
        ($type:ty) => {
            Elements::Integers(
                file.into_vec::<$type>()
                    .map_err(failed)?
                    .into_iter()
                    .map(i64::from)
                    .collect(),
            )
        };
    }
    let data = match text.trim_start_matches(['<', '|', '=', '>']) {
        "u1" => Elements::Bytes(file.into_vec().map_err(failed)?),
        "b1" => integers!(bool),
        "i1" => integers!(i8),
        "i2" => integers!(i16),
        "u2" => integers!(u16),
        "i4" => integers!(i32),
        "u4" => integers!(u32),
        "i8" => integers!(i64),
        "f4" => {
            let reals: Vec<f32> = file.into_vec().map_err(failed)?;
            Elements::Reals(reals.into_iter().map(f64::from).collect())
        }
        "f8" => Elements::Reals(file.into_vec().map_err(failed)?),
        _ => {
            return Err(DataErrorKind::ArrayType {
                array: name.to_owned(),
                found: text,
            });
        }
    };
    let shape: Vec<usize> = shape.iter().map(|&size| size as usize).collect();
    let data = match order {
        Order::C => data,
        Order::Fortran => match data {
            Elements::Bytes(data) => Elements::Bytes(row_major(&shape, &data)),
            Elements::Integers(data) => Elements::Integers(row_major(&shape, &data)),
            Elements::Reals(data) => Elements::Reals(row_major(&shape, &data)),
        },
    };
    Ok(Array { shape, data })
}

/// Brings elements from the order in which the first index runs fastest into that in which the last
/// one does.
fn row_major<T: Copy>(shape: &[usize], data: &[T]) -> Vec<T> {
    let mut index = vec![0; shape.len()];
    let strides: Vec<usize> = shape
        .iter()
        .scan(1, |stride, &size| {
            let own = *stride;
            *stride *= size;
            Some(own)
        })
        .collect();
    let mut ordered = Vec::with_capacity(data.len());
    for _ in 0..data.len() {
        let at: usize = index
            .iter()
            .zip(&strides)
            .map(|(i, stride)| i * stride)
            .sum();
        ordered.push(data[at]);
        for (digit, &size) in index.iter_mut().zip(shape).rev() {
            *digit += 1;
            if *digit < size {
                break;
            }
            *digit = 0;
        }
    }
    ordered
}
