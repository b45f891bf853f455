//! Files of the crate, out of templates.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value};
use serde::Serialize;

use super::names::crate_name;
use super::tensor::{Tensor, comment, literal, tensors};
use super::{DeployError, Program};
use crate::backend::{Fill, HUGE_PAGES_FROM, IoSpec};
use crate::device::Isa;

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

/// Files of programs of several threads only.
const BARRIER: &str = "src/barrier.rs";
const POOL: &str = "src/pool.rs";
pub(super) const SHARED: [&str; 2] = [BARRIER, POOL];

/// Templates by the path of the file that they become; `NAME` stands for the library's name.
const TEMPLATES: [(&str, &str); 8] = [
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
    (BARRIER, include_str!("../../templates/threads/barrier.rs")),
    (POOL, include_str!("../../templates/threads/pool.rs")),
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
    threads: usize,
    arena_bytes: usize,
    /// Whether the arena asks for huge pages.
    huge_pages: bool,
    fills: &'a [Fill],
    weights_len: usize,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    description: String,
    source: &'a str,
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
    let file = |path: &str, bytes: &[u8]| File {
        path: path.to_owned(),
        bytes: bytes.to_vec(),
    };
    let mut files = vec![
        file(".gitignore", b"/target\n/Cargo.lock\n"),
        // The crate may be in a workspace whose formatting is checked.
        file("rustfmt.toml", b"disable_all_formatting = true\n"),
        file("weights.bin", &program.weights),
    ];
    let is_shared = program.threads > 1;
    let templates = TEMPLATES.into_iter();
    for (path, template) in templates.filter(|(path, _)| is_shared || !SHARED.contains(path)) {
        let text = environment.render_str(template, context.clone())?;
        files.push(file(&path.replace("NAME", &library), text.as_bytes()));
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
            threads: program.threads,
            arena_bytes: program.arena_bytes.max(1),
            huge_pages: program.arena_bytes >= HUGE_PAGES_FROM,
            fills: &program.fills,
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
        Isa::X86V2 | Isa::X86V3 | Isa::X86V4 | Isa::X86V4Vnni => Some("x86_64"),
        Isa::Neon => Some("aarch64"),
    }
}

/// Returns the macro that detects a feature of an instruction set.
fn detect(isa: Isa) -> &'static str {
    match isa {
        Isa::Neon => "is_aarch64_feature_detected",
        Isa::Portable | Isa::X86V2 | Isa::X86V3 | Isa::X86V4 | Isa::X86V4Vnni => {
            "is_x86_feature_detected"
        }
    }
}
