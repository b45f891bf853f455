//! What is wrong with samples.

use std::path::PathBuf;

/// A mistake in the samples of a model.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the samples in `{}`", path.display())]
pub struct DataError {
    /// The file or directory.
    pub path: PathBuf,
    /// The mistake.
    #[source]
    pub kind: Box<DataErrorKind>,
}

/// Kinds of mistakes.
#[derive(Debug, thiserror::Error)]
pub enum DataErrorKind {
    /// It is not there or cannot be read.
    #[error("it cannot be read: {0}")]
    Read(String),
    /// It is of another kind.
    #[error("it is neither a `.npz` nor a `.npy` file nor a directory of pictures")]
    Format,
    /// It is too large to be kept in memory.
    #[error("array `{array}` has {bytes} bytes, and {limit} are allowed: take fewer samples")]
    TooLarge {
        /// The array.
        array: String,
        /// Its size.
        bytes: u64,
        /// The bound.
        limit: u64,
    },
    /// An input has no array.
    #[error(
        "there is no array for input `{input}`: arrays are named as inputs are, and there are {found}"
    )]
    NoArray {
        /// The input.
        input: String,
        /// Names that there are.
        found: String,
    },
    /// An array of another shape.
    #[error("array `{array}` is {found}; input `{input}` needs samples of shape {expected}")]
    Shape {
        /// The array.
        array: String,
        /// Its shape.
        found: String,
        /// The input.
        input: String,
        /// The shape of one sample.
        expected: String,
    },
    /// An array whose elements do not become the input's.
    #[error(
        "array `{array}` is of type {found}, which does not become the {expected} of input `{input}`"
    )]
    Type {
        /// The array.
        array: String,
        /// Its type.
        found: String,
        /// The input.
        input: String,
        /// The type of the input.
        expected: String,
    },
    /// An element that is no finite number or does not fit.
    #[error("sample {sample} of array `{array}` has the element {found}, which is not {expected}")]
    Element {
        /// The array.
        array: String,
        /// The sample.
        sample: usize,
        /// The element.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
    /// Arrays of different length.
    #[error("array `{array}` has {found} samples, another one {expected}")]
    Length {
        /// The array.
        array: String,
        /// Its length.
        found: usize,
        /// The length of the others.
        expected: usize,
    },
    /// There are not enough.
    #[error("there are {found} samples, and at least {needed} are needed")]
    TooFew {
        /// How many there are.
        found: usize,
        /// How many there should be.
        needed: usize,
    },
    /// Labels that name no class.
    #[error(
        "label {found} of sample {sample} is no class: they are whole numbers from 0 to below {classes}"
    )]
    Label {
        /// The sample.
        sample: usize,
        /// The label.
        found: String,
        /// How many classes there are.
        classes: u64,
    },
    /// A picture that cannot be read.
    #[error("picture `{name}` cannot be read: {reason}")]
    Picture {
        /// Its file name.
        name: String,
        /// Why.
        reason: String,
    },
    /// A line of `labels.csv` that does not name a picture and a class.
    #[error(
        "line {line} of `labels.csv` is not `FILE,CLASS` with a file of this directory: `{text}`"
    )]
    LabelLine {
        /// Its number, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// An input that pictures do not become.
    #[error(
        "pictures do not become input `{input}` of shape {shape}: it must be f32 of [1, 1 or 3, height, width]"
    )]
    NoPictureInput {
        /// The input.
        input: String,
        /// Its shape.
        shape: String,
    },
    /// `mean` or `std` do not fit.
    #[error(
        "`{key}` has {found} numbers, and pictures have {channels} channels: give one, or one for each"
    )]
    Preprocess {
        /// `preprocess.mean` or `preprocess.std`.
        key: &'static str,
        /// How many there are.
        found: usize,
        /// How many channels there are.
        channels: usize,
    },
    /// The same sample is used for fitting and for the last check.
    #[error("sample {own} is sample {other} of `{}`: what is fitted to and what is checked on must differ", with.display())]
    Overlap {
        /// The sample.
        own: usize,
        /// The same one elsewhere.
        other: usize,
        /// Where.
        with: PathBuf,
    },
}
