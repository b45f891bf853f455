//! Why a model cannot be loaded, run or written.

use std::path::{Path, PathBuf};

use crate::graph::{DType, InferError, Shape};

/// A failure, with the file it is about.
#[derive(Debug, thiserror::Error)]
#[error("cannot use model `{}`", path.display())]
pub struct Error {
    /// The model.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub problem: Box<Problem>,
}

/// What is wrong with a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file, or a file it refers to, cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// It is a directory or a device.
    #[error("`{}` is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// Bigger than protobuf allows.
    #[error("the file has {bytes} bytes, ONNX files end at 2 GiB")]
    FileTooLarge {
        /// Size of the file.
        bytes: u64,
    },
    /// Some other kind of file.
    #[error("this is not an ONNX file: {detail}")]
    NotOnnx {
        /// What gives it away.
        detail: String,
    },
    /// The end is missing.
    #[error("the file is truncated: {detail}")]
    Truncated {
        /// How much is missing where.
        detail: String,
    },
    /// An ONNX file that breaks the rules of the format.
    #[error("the file is damaged: {detail}")]
    Malformed {
        /// What is broken.
        detail: String,
    },
    /// Operator set outside what is understood.
    #[error("operator set {version} is not supported: {} to {} are", super::OPSETS.start(), super::OPSETS.end())]
    Opset {
        /// Version in the file.
        version: i64,
    },
    /// A file with weights is not there.
    #[error("tensor `{tensor}` is kept in `{}`, which does not exist", path.display())]
    ExternalMissing {
        /// Name of the tensor.
        tensor: String,
        /// Where it should be.
        path: PathBuf,
    },
    /// A file with weights is no use.
    #[error("tensor `{tensor}` is kept in `{location}`: {detail}")]
    External {
        /// Name of the tensor.
        tensor: String,
        /// Its location as written in the model.
        location: String,
        /// What is wrong.
        detail: String,
    },
    /// A constant that does not fit its own description.
    #[error("tensor `{tensor}` is unusable: {detail}")]
    Tensor {
        /// Name of the tensor.
        tensor: String,
        /// What is wrong.
        detail: String,
    },
    /// Weights that are not numbers.
    #[error("tensor `{tensor}` holds {n_bad} values that are NaN or infinite")]
    NotFinite {
        /// Name of the tensor.
        tensor: String,
        /// How many.
        n_bad: usize,
    },
    /// An input whose shape is open.
    #[error("input `{input}` has the dynamic shape [{dims}]")]
    DynamicInput {
        /// Name of the input.
        input: String,
        /// Its dimensions, as written.
        dims: String,
        /// A shape to start from, as TOML.
        example: String,
    },
    /// A configured shape contradicts the model.
    #[error("input `{input}` is configured as {configured}, the model says [{declared}]")]
    InputShape {
        /// Name of the input.
        input: String,
        /// Configured shape.
        configured: Shape,
        /// Dimensions, as written in the model.
        declared: String,
    },
    /// A configured input is not there.
    #[error("there is no input `{input}`")]
    UnknownInput {
        /// The configured name.
        input: String,
        /// The closest name that exists.
        nearest: Option<String>,
        /// All inputs.
        inputs: Vec<String>,
    },
    /// A dimension of an input is zero.
    #[error("value `{value}` has the empty shape {shape}")]
    ZeroSized {
        /// Name of the value.
        value: String,
        /// Its shape.
        shape: Shape,
    },
    /// A value too large to index.
    #[error("value `{value}` has the shape {shape}: more than 2^31 elements")]
    TooLarge {
        /// Name of the value.
        value: String,
        /// Its shape.
        shape: Shape,
    },
    /// An operator nobody here knows.
    #[error("operator `{op}` of node `{node}` is not supported: {detail}")]
    UnsupportedOperator {
        /// Operator type, with its domain if that is not the default one.
        op: String,
        /// Name of the node, or of its first output.
        node: String,
        /// Why.
        detail: String,
    },
    /// An element type nobody here knows.
    #[error("value `{value}` has the element type {dtype}, which is not supported")]
    UnsupportedType {
        /// Name of the value.
        value: String,
        /// Name or number of the type.
        dtype: String,
    },
    /// Shapes or types of a node's inputs do not go together.
    #[error("node `{node}` ({op}) does not fit its inputs")]
    Mismatch {
        /// Name of the node, or of its first output.
        node: String,
        /// Operator type.
        op: String,
        /// What does not fit.
        #[source]
        source: InferError,
    },
    /// A value has two producers.
    #[error("value `{0}` is defined twice")]
    Duplicate(String),
    /// A value has none.
    #[error("value `{value}`, read by `{reader}`, is never produced")]
    Undefined {
        /// Name of the value.
        value: String,
        /// Who reads it.
        reader: String,
    },
    /// Nodes that wait for each other.
    #[error("the graph has a cycle through `{0}`")]
    Cycle(String),
    /// The reference executor fails.
    #[error("the reference executor cannot {doing}")]
    Reference {
        /// What it was doing.
        doing: String,
        /// What it says.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An input for the reference executor is not as the model says.
    #[error("input `{input}` must be {dtype} {shape}")]
    InputValue {
        /// Name of the input.
        input: String,
        /// Expected type.
        dtype: DType,
        /// Expected shape.
        shape: Shape,
    },
    /// There is no such value.
    #[error("there is no value `{0}`")]
    UnknownValue(String),
    /// A file of tensors is no use.
    #[error("cannot read the tensors of `{}`: {detail}", path.display())]
    Stored {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// The result cannot be written.
    #[error("cannot write `{}`", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Problem {
    /// Attaches the file.
    pub fn at(self, path: &Path) -> Error {
        Error {
            path: path.to_owned(),
            problem: Box::new(self),
        }
    }
}

impl Error {
    /// Returns what to do about it, a sentence without a final period, if anything is known.
    pub fn help(&self) -> Option<String> {
        Some(match self.problem.as_ref() {
            Problem::DynamicInput { example, .. } => format!(
                "fix the shape with `inputs = {{ {example} }}` under `[[model]]` in metainfer.toml"
            ),
            Problem::InputShape { input, .. } => format!(
                "correct or remove the key `{input}` of `inputs` under `[[model]]` in metainfer.toml"
            ),
            Problem::UnknownInput {
                nearest: Some(nearest),
                ..
            } => format!("did you mean `{nearest}`?"),
            Problem::UnknownInput { inputs, .. } => {
                format!("the model's inputs are: {}", inputs.join(", "))
            }
            Problem::UnsupportedOperator { .. } => {
                "replace the operator before exporting the model, or export only the part of the \
                 model that does without it"
                    .to_owned()
            }
            Problem::UnsupportedType { .. } => {
                "convert the model to f32 before exporting it".to_owned()
            }
            Problem::ExternalMissing { path, .. } => format!(
                "put `{}` next to the model, or save the model as a single file",
                path.file_name().unwrap_or_default().to_string_lossy()
            ),
            Problem::FileTooLarge { .. } => {
                "save the weights as external data, in files next to the model".to_owned()
            }
            Problem::Truncated { .. } => "copy or download the file again".to_owned(),
            Problem::NotOnnx { .. } => {
                "check `path` of the model in metainfer.toml; a Git LFS pointer is fetched with \
                 `git lfs pull`"
                    .to_owned()
            }
            Problem::Opset { .. } => {
                "export the model again with a supported `opset_version`".to_owned()
            }
            Problem::NotFinite { .. } => {
                "the training diverged or the export is damaged: export the model again".to_owned()
            }
            Problem::ZeroSized { .. } => {
                "give every dimension of the inputs a size of 1 or more, with `inputs` under \
                 `[[model]]` in metainfer.toml or before exporting the model"
                    .to_owned()
            }
            Problem::Malformed { .. }
            | Problem::Tensor { .. }
            | Problem::External { .. }
            | Problem::Mismatch { .. }
            | Problem::Duplicate(_)
            | Problem::Undefined { .. }
            | Problem::Cycle(_) => {
                "export the model again; `onnx.checker.check_model(path, full_check=True)` in \
                 Python says whether the export is valid"
                    .to_owned()
            }
            Problem::Read { path, .. } => {
                format!(
                    "check that `{}` exists and that you may read it",
                    path.display()
                )
            }
            Problem::NotAFile(_) => {
                "name a file with `path` under `[[model]]` in metainfer.toml".to_owned()
            }
            Problem::TooLarge { .. }
            | Problem::Reference { .. }
            | Problem::InputValue { .. }
            | Problem::UnknownValue(_)
            | Problem::Stored { .. }
            | Problem::Write { .. } => return None,
        })
    }
}
