//! Kernel templates: the embedded ones, or a directory of the user's that overrides them.

use std::collections::BTreeMap;
use std::path::Path;

use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};

use super::templates::TEMPLATES;
use crate::digest::{Digest, Encoder};

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
        for &(name, shipped) in TEMPLATES {
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
