//! Writing a configuration for a person to go on with, comments included.

use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, Value, value};

/// Models to add to a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Addition {
    /// Directory all of whose ONNX files are models.
    pub model_dir: Option<String>,
    /// Other models: name and path.
    pub models: Vec<(String, String)>,
}

/// A configuration that cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text is not TOML.
    #[error("not valid TOML: {0}")]
    Syntax(String),
    /// `model` is there and is not an array of tables.
    #[error("`model` is not a list of `[[model]]` tables")]
    Model,
}

/// Returns a new `metainfer.toml` that explains itself.
pub fn new_file(addition: &Addition) -> String {
    let mut text = String::from(
        "# Models of this project and the hardware that they are adapted to.\n\
         # `cargo metainfer adapt` searches, measures and locks; commit `metainfer.lock`.\n\n",
    );
    if let Some(dir) = &addition.model_dir {
        let dir = Value::from(dir.as_str());
        text += "# Every ONNX file in this directory is a model, named by its stem.\n";
        text.extend(["model-dir = ", &dir.to_string(), "\n\n"]);
    }
    if addition.models.is_empty() {
        text += "# A `[[model]]` adds a model or refines one; `inputs` fixes dynamic shapes:\n\
                 #\n\
                 # [[model]]\n\
                 # name = \"example\"\n\
                 # path = \"models/example.onnx\"\n\
                 # inputs = { x = [1, 3, 224, 224] }\n\n";
    } else {
        text += "# A `[[model]]` adds a model or refines one; a dynamic input shape is fixed by\n\
                 # `inputs = { x = [1, 3, 224, 224] }`.\n";
        for (name, path) in &addition.models {
            let name = Value::from(name.as_str()).to_string();
            let path = Value::from(path.as_str()).to_string();
            text.extend(["[[model]]\nname = ", &name, "\npath = ", &path, "\n\n"]);
        }
    }
    text += "[[target]]\n\
             name = \"cpu\"\n\
             backend = \"native\"\n\
             profile = \"host\" # or one that `cargo metainfer targets` lists, or a file\n\n\
             [search]\n\
             max-evaluations = 300 # real compile-and-measure runs for each model and target\n\
             min-gain = 0.03 # what a new choice must gain over the locked one\n";
    text
}

/// Adds models to a configuration and leaves everything else of it as it is.
///
/// # Errors
/// [`EditError`] if the text is not TOML or uses `model` for something else.
pub fn add_to(text: &str, addition: &Addition) -> Result<String, EditError> {
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| EditError::Syntax(error.message().to_owned()))?;
    if let Some(dir) = &addition.model_dir
        && !document.contains_key("model-dir")
    {
        document.insert("model-dir", value(dir.as_str()));
    }
    if addition.models.is_empty() {
        return Ok(document.to_string());
    }
    let entry = document
        .entry("model")
        .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    let entries = entry.as_array_of_tables_mut().ok_or(EditError::Model)?;
    for (name, path) in &addition.models {
        let mut table = Table::new();
        table.insert("name", value(name.as_str()));
        table.insert("path", value(path.as_str()));
        entries.push(table);
    }
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::parse;

    fn addition() -> Addition {
        Addition {
            model_dir: Some("models".to_owned()),
            models: vec![("net".to_owned(), "other/net \"2\".onnx".to_owned())],
        }
    }

    fn model_names(text: &str) -> Vec<String> {
        let parsed = parse(Path::new("metainfer.toml"), text, &[]);
        assert_eq!(parsed.diagnostics, []);
        let config = parsed.config.unwrap();
        config.models.into_iter().map(|m| m.value.name).collect()
    }

    #[test]
    fn new_file_is_a_configuration_without_findings() {
        assert_eq!(model_names(&new_file(&addition())), ["net"]);
        assert_eq!(model_names(&new_file(&Addition::default())), [""; 0]);
    }

    #[test]
    fn add_to_keeps_comments_and_order() {
        let text = "# mine\n[search] # small\nmax-evaluations = 5\n\n[[model]]\nname = \"a\"\n";
        let edited = add_to(text, &addition()).unwrap();
        assert!(edited.contains("# mine\n"), "{edited}");
        assert!(edited.contains("[search] # small\nmax-evaluations = 5\n"));
        assert_eq!(model_names(&edited), ["a", "net"]);
    }

    #[test]
    fn add_to_changes_no_model_dir_that_is_set() {
        let text = "model-dir = \"mine\" # keep\n";
        let addition = Addition {
            models: Vec::new(),
            ..addition()
        };
        assert_eq!(add_to(text, &addition).unwrap(), text);
    }

    #[test]
    fn add_to_refuses_what_it_cannot_edit() {
        assert!(matches!(
            add_to("x =", &addition()),
            Err(EditError::Syntax(_))
        ));
        assert_eq!(add_to("model = 1\n", &addition()), Err(EditError::Model));
    }
}
