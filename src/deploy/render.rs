//! Files of the crate, out of templates.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value};
use serde::Serialize;

use super::names::{crate_name, field_names};
use super::{DeployError, Program};
use crate::backend::IoSpec;
use crate::device::Isa;
use crate::graph::DType;

/// Where the crate will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// On its own: its manifest carries the build profile.
    Standalone,
    /// Inside a workspace, where cargo reads profiles in the root manifest only.
    Member,
}

/// A file of the crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Path below the crate's directory, with `/`.
    pub path: String,
    /// Content.
    pub bytes: Vec<u8>,
}

/// Templates by the path of the file that they become; `NAME` stands for the library's name.
const TEMPLATES: [(&str, &str); 6] = [
    (
        "Cargo.toml",
        include_str!("../../templates/deploy/Cargo.toml.j2"),
    ),
    (
        "README.md",
        include_str!("../../templates/deploy/README.md.j2"),
    ),
    (
        "src/lib.rs",
        include_str!("../../templates/deploy/lib.rs.j2"),
    ),
    (
        "src/c_abi.rs",
        include_str!("../../templates/deploy/c_abi.rs.j2"),
    ),
    (
        "src/program.rs",
        include_str!("../../templates/deploy/program.rs.j2"),
    ),
    (
        "include/NAME.h",
        include_str!("../../templates/deploy/header.h.j2"),
    ),
];

/// What the templates see.
#[derive(Serialize)]
struct Context<'a> {
    package: String,
    library: String,
    /// First part of the header's macros.
    prefix: String,
    /// Name of the model, safe inside comments.
    model: String,
    model_literal: String,
    target: String,
    isa: &'static str,
    arch: Option<&'static str>,
    /// Macro that detects a feature.
    detect: &'static str,
    features: &'a [String],
    opt_level: String,
    standalone: bool,
    arena_bytes: usize,
    weights_len: usize,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    description: String,
    source: &'a str,
}

/// An input or output as the templates see it.
#[derive(Serialize)]
struct Tensor {
    /// Name in the model, safe inside comments.
    label: String,
    /// Name in the model as a Rust string literal.
    literal: String,
    field: String,
    dtype: &'static str,
    rust_type: &'static str,
    c_type: &'static str,
    zero: &'static str,
    shape: Vec<usize>,
    len: usize,
}

/// Returns all files of the crate. Equal programs give equal files.
///
/// # Errors
/// [`DeployError::TooLarge`] if an input or output cannot be held in memory.
pub fn render(program: &Program, placement: Placement) -> Result<Vec<File>, DeployError> {
    let environment = environment()?;
    let context = Context::new(program, placement)?;
    let library = context.library.clone();
    let context = Value::from(Serde(context));
    let mut files = vec![
        File {
            path: ".gitignore".to_owned(),
            bytes: b"/target\n/Cargo.lock\n".to_vec(),
        },
        File {
            path: "weights.bin".to_owned(),
            bytes: program.weights.clone(),
        },
    ];
    for (path, template) in TEMPLATES {
        files.push(File {
            path: path.replace("NAME", &library),
            bytes: environment
                .render_str(template, context.clone())?
                .into_bytes(),
        });
    }
    Ok(files)
}

/// Returns an environment in which tags leave no trace in the text around them.
fn environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(
        SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .keep_trailing_newline(true)
            .build()?,
    );
    Ok(environment)
}

impl<'a> Context<'a> {
    fn new(program: &'a Program, placement: Placement) -> Result<Self, DeployError> {
        let package = crate_name(&program.model);
        let library = package.replace('-', "_");
        Ok(Self {
            prefix: library.to_ascii_uppercase(),
            package,
            library,
            model: comment(&program.model),
            model_literal: literal(&program.model),
            target: comment(&program.target),
            isa: program.isa.name(),
            arch: arch(program.isa),
            detect: detect(program.isa),
            features: &program.features,
            opt_level: opt_level(&program.opt_level),
            standalone: placement == Placement::Standalone,
            arena_bytes: program.arena_bytes.max(1),
            weights_len: program.weights.len(),
            inputs: tensors(&program.inputs)?,
            outputs: tensors(&program.outputs)?,
            description: literal(&describe(program)),
            source: &program.source,
        })
    }
}

/// Returns what `metainfer_describe` says.
fn describe(program: &Program) -> String {
    let specs = |specs: &[IoSpec]| {
        let spec = |spec: &IoSpec| {
            serde_json::json!({
                "name": spec.name,
                "dtype": spec.dtype.name(),
                "shape": spec.shape,
            })
        };
        specs.iter().map(spec).collect::<Vec<_>>()
    };
    serde_json::json!({
        "model": program.model,
        "target": program.target,
        "isa": program.isa.name(),
        "features": program.features,
        "inputs": specs(&program.inputs),
        "outputs": specs(&program.outputs),
    })
    .to_string()
}

fn tensors(specs: &[IoSpec]) -> Result<Vec<Tensor>, DeployError> {
    let fields = field_names(specs.iter().map(|spec| spec.name.as_str()));
    let tensor = |(spec, field): (&IoSpec, String)| {
        let len = spec.shape.checked_len();
        let fits = |len: &usize| {
            let bytes = len.checked_mul(spec.dtype.bytes());
            bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok())
        };
        Ok(Tensor {
            label: comment(&spec.name),
            literal: literal(&spec.name),
            field,
            dtype: spec.dtype.name(),
            rust_type: rust_type(spec.dtype),
            c_type: c_type(spec.dtype),
            zero: zero(spec.dtype),
            shape: spec.shape.dims().to_vec(),
            len: len
                .filter(fits)
                .ok_or_else(|| DeployError::TooLarge(spec.name.clone()))?,
        })
    };
    specs.iter().zip(fields).map(tensor).collect()
}

/// Returns text that ends no comment and no line, in Rust, C, TOML or Markdown.
fn comment(text: &str) -> String {
    let line = text.escape_debug().to_string();
    line.replace("*/", "* /").replace("/*", "/ *")
}

/// Returns a Rust string literal; a NUL, which C strings cannot hold, becomes U+FFFD.
fn literal(text: &str) -> String {
    format!("{:?}", text.replace('\0', "\u{fffd}"))
}

/// Returns the optimisation level as TOML has it.
fn opt_level(level: &str) -> String {
    match level {
        "0" | "1" | "2" | "3" => level.to_owned(),
        "z" => "\"z\"".to_owned(),
        _ => "\"s\"".to_owned(),
    }
}

/// Returns the architecture that code for an instruction set needs, if any.
fn arch(isa: Isa) -> Option<&'static str> {
    match isa {
        Isa::Portable => None,
        Isa::X86V2 | Isa::X86V3 | Isa::X86V4 => Some("x86_64"),
        Isa::Neon => Some("aarch64"),
    }
}

/// Returns the macro that detects a feature of an instruction set.
fn detect(isa: Isa) -> &'static str {
    match isa {
        Isa::Neon => "is_aarch64_feature_detected",
        Isa::Portable | Isa::X86V2 | Isa::X86V3 | Isa::X86V4 => "is_x86_feature_detected",
    }
}

fn rust_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "u16",
        other => other.name(),
    }
}

fn zero(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 | DType::F64 => "0.0",
        DType::Bool => "false",
        _ => "0",
    }
}

fn c_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "float",
        DType::F64 => "double",
        DType::I8 => "int8_t",
        DType::U8 => "uint8_t",
        DType::I16 => "int16_t",
        DType::U16 | DType::F16 => "uint16_t",
        DType::I32 => "int32_t",
        DType::U32 => "uint32_t",
        DType::I64 => "int64_t",
        DType::U64 => "uint64_t",
        DType::Bool => "bool",
    }
}
