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
    #[error(
        "its arrays have {elements} elements or more, and {limit} are allowed: take fewer samples"
    )]
    TooLarge {
        /// How many elements there are, at least.
        elements: u64,
        /// The bound.
        limit: u64,
    },
    /// An array of a type that is none of numbers.
    #[error(
        "array `{array}` is of type {found}: store it as booleans, integers of up to 64 bits, f32 or f64"
    )]
    ArrayType {
        /// The array.
        array: String,
        /// Its type as `NumPy` writes it.
        found: String,
    },
    /// An array that nobody reads.
    #[error(
        "array `{array}` is neither an input of the model ({inputs}) nor its labels (`{labels}`): rename it, or leave it out"
    )]
    Unknown {
        /// The array.
        array: String,
        /// Names of the inputs.
        inputs: String,
        /// Name of the labels.
        labels: String,
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
    /// An array whose axes are in another order.
    #[error(
        "array `{array}` is {found}; input `{input}` needs samples of shape {expected}: its axes are in another order, transpose them"
    )]
    Order {
        /// The array.
        array: String,
        /// Its shape.
        found: String,
        /// The input.
        input: String,
        /// The shape of one sample.
        expected: String,
    },
    /// Entries that do not fill the last batch.
    #[error(
        "array `{array}` has {found} entries, no multiple of the batch of {batch} that input `{input}` takes"
    )]
    Batch {
        /// The array.
        array: String,
        /// Its length.
        found: usize,
        /// The input.
        input: String,
        /// Entries that a run takes.
        batch: usize,
    },
    /// An array whose elements do not become the input's.
    #[error(
        "array `{array}` is of type {found}, and input `{input}` takes {expected}: store it as that"
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
    #[error(
        "element {element} of sample {sample} of array `{array}` is {found}, not {expected}: correct it, or leave the sample out"
    )]
    Element {
        /// The array.
        array: String,
        /// The sample.
        sample: usize,
        /// Its place in the sample.
        element: usize,
        /// The element.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// Arrays of different length.
    #[error("array `{array}` has {found} samples, another one {expected}: give each the same")]
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
    /// Labels that are not one for each sample.
    #[error("array `{array}` is {found}; labels are one class for each of the {expected} entries")]
    Labels {
        /// The array.
        array: String,
        /// Its shape.
        found: String,
        /// How many entries the samples have.
        expected: usize,
    },
    /// Labels that are not as many as the rows of the output.
    #[error("each sample has {found} of the {rows} labels that the rows of the output need")]
    Rows {
        /// Labels of one sample.
        found: usize,
        /// Rows of the output.
        rows: usize,
    },
    /// A limit on top-1 that nothing can be held against.
    #[error("`accept.max-top1-drop` cannot be checked: {reason}")]
    NoTop1 {
        /// Why.
        reason: &'static str,
    },
    /// A label that is no whole number.
    #[error("label {found} of sample {sample} is no class: classes are whole numbers from 0 up")]
    NoClass {
        /// The sample.
        sample: usize,
        /// The label.
        found: String,
    },
    /// A label that is no class of the model.
    #[error(
        "label {found} of sample {sample} is no class: they are whole numbers from 0 to below {classes}"
    )]
    Label {
        /// The sample.
        sample: usize,
        /// The label.
        found: u32,
        /// How many classes there are.
        classes: usize,
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
        "line {line} of `labels.csv` is not `FILE,CLASS` with a file of this directory, each once: `{text}`"
    )]
    LabelLine {
        /// Its number, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// A picture without a line in `labels.csv`.
    #[error("`labels.csv` has no line for picture `{name}`: add one, or take the picture away")]
    NoLabel {
        /// Its file name.
        name: String,
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
