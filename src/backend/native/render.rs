//! Kernel templates: the embedded ones, or a directory of the user's that overrides them.

use std::collections::BTreeMap;
use std::path::Path;

use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};

use crate::digest::{Digest, Encoder};

/// The shipped templates by name.
pub const TEMPLATES: [(&str, &str); 15] = [
    (
        "conv.rs.j2",
        include_str!("../../../templates/kernels/conv.rs.j2"),
    ),
    (
        "depthwise.rs.j2",
        include_str!("../../../templates/kernels/depthwise.rs.j2"),
    ),
    (
        "dense.rs.j2",
        include_str!("../../../templates/kernels/dense.rs.j2"),
    ),
    (
        "epilogue.j2",
        include_str!("../../../templates/kernels/epilogue.j2"),
    ),
    (
        "map.rs.j2",
        include_str!("../../../templates/kernels/map.rs.j2"),
    ),
    (
        "pool.rs.j2",
        include_str!("../../../templates/kernels/pool.rs.j2"),
    ),
    (
        "reorder.rs.j2",
        include_str!("../../../templates/kernels/reorder.rs.j2"),
    ),
    (
        "softmax.rs.j2",
        include_str!("../../../templates/kernels/softmax.rs.j2"),
    ),
    (
        "vector_math.rs",
        include_str!("../../../templates/kernels/vector_math.rs"),
    ),
    (
        "isa/avx512.rs",
        include_str!("../../../templates/kernels/isa/avx512.rs"),
    ),
    (
        "isa/avx2.rs",
        include_str!("../../../templates/kernels/isa/avx2.rs"),
    ),
    (
        "isa/fma128.rs",
        include_str!("../../../templates/kernels/isa/fma128.rs"),
    ),
    (
        "isa/sse4.rs",
        include_str!("../../../templates/kernels/isa/sse4.rs"),
    ),
    (
        "isa/neon.rs",
        include_str!("../../../templates/kernels/isa/neon.rs"),
    ),
    (
        "isa/portable.rs",
        include_str!("../../../templates/kernels/isa/portable.rs"),
    ),
];

/// Renders kernel sources.
#[derive(Debug)]
pub struct Renderer {
    environment: Environment<'static>,
    /// Rust text that is pasted as it is.
    texts: BTreeMap<String, String>,
    digest: Digest,
}

/// A template that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot render kernel template `{name}`")]
pub struct RenderError {
    /// Name of the template.
    pub name: String,
    /// Why.
    #[source]
    pub source: minijinja::Error,
}

impl Renderer {
    /// Loads the shipped templates, each replaced by the one of the same name in `overrides`.
    ///
    /// # Errors
    /// [`RenderError`] if a template does not parse.
    pub fn new(overrides: &BTreeMap<String, String>) -> Result<Self, RenderError> {
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let mut texts = BTreeMap::new();
        let mut encoder = Encoder::new("metainfer kernel templates v1");
        for (name, shipped) in TEMPLATES {
            let text = overrides.get(name).map_or(shipped, String::as_str);
            encoder.str(name);
            encoder.str(text);
            if Path::new(name)
                .extension()
                .is_some_and(|extension| extension == "j2")
            {
                environment
                    .add_template_owned(name, text.to_owned())
                    .map_err(|source| RenderError {
                        name: name.to_owned(),
                        source,
                    })?;
            } else {
                texts.insert(name.to_owned(), text.to_owned());
            }
        }
        Ok(Self {
            environment,
            texts,
            digest: encoder.finish(),
        })
    }

    /// Returns the digest of all templates: labels made with others are not comparable.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns a text that is pasted as it is, such as the primitives of an instruction set.
    pub fn text(&self, name: &str) -> &str {
        self.texts.get(name).map_or("", String::as_str)
    }

    /// Renders a template.
    ///
    /// # Errors
    /// [`RenderError`] if the template refuses the context.
    pub fn render(&self, name: &str, context: Value) -> Result<String, RenderError> {
        self.environment
            .get_template(name)
            .and_then(|template| template.render(context))
            .map_err(|source| RenderError {
                name: name.to_owned(),
                source,
            })
    }
}
