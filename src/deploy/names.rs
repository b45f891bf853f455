//! Names: of models and values as ONNX has them, made into names of crates and fields.

use std::collections::BTreeSet;

/// Words that cannot be field or crate names.
const RESERVED: &str = "\
    abstract alloc as async await become box break build const continue core crate deps do dyn \
    else enum examples extern false final fn for gen if impl in incremental let loop macro \
    match mod move mut override priv pub ref return self static std struct super test trait \
    true try type typeof unsafe unsized use virtual where while yield metainfer union";

/// Returns the name of the crate that a model becomes: lower case, words joined by `-`.
pub(super) fn crate_name(model: &str) -> String {
    match snake_case(model).replace('_', "-") {
        name if name.is_empty() => "model".to_owned(),
        name if name.starts_with(|c: char| c.is_ascii_digit()) => format!("model-{name}"),
        name if is_reserved(&name) => format!("{name}-model"),
        name => name,
    }
}

/// Returns a field name for each value: lower case, unique, in the same order.
pub(super) fn field_names<'a>(values: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let field = |value: &str| {
        let name = match snake_case(value) {
            name if name.is_empty() => "value".to_owned(),
            name if name.starts_with(|c: char| c.is_ascii_digit()) => format!("value_{name}"),
            name if is_reserved(&name) => format!("{name}_"),
            name => name,
        };
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let unique = std::iter::once(name.clone())
            .chain(numbered)
            .find(|name| taken.insert(name.clone()));
        unique.unwrap_or(name)
    };
    values.map(field).collect()
}

fn is_reserved(name: &str) -> bool {
    RESERVED.split_whitespace().any(|word| word == name)
}

/// Returns ASCII letters and digits in lower case, everything else as single underscores between
/// them.
fn snake_case(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric();
    let words: Vec<_> = text
        .split(|c| !is_word(c))
        .filter(|w| !w.is_empty())
        .collect();
    words.join("_").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crate_name_is_a_valid_package_name() {
        let check = |model: &str, expected: &str| assert_eq!(crate_name(model), expected);
        check("ocr-cls", "ocr-cls");
        check("PP_OCRv4.det", "pp-ocrv4-det");
        check("2d conv", "model-2d-conv");
        check("test", "test-model");
        check("モデル", "model");
        check("", "model");
    }

    #[test]
    fn field_names_are_unique_identifiers() {
        let check = |values: &[&str], expected: &[&str]| {
            assert_eq!(field_names(values.iter().copied()), expected);
        };
        check(
            &["save_infer_model/scale_0.tmp_1"],
            &["save_infer_model_scale_0_tmp_1"],
        );
        check(&["x", "X", "x_2", "x:0"], &["x", "x_2", "x_2_2", "x_0"]);
        check(
            &["463", "", "type", "onnx::Shape_4"],
            &["value_463", "value", "type_", "onnx_shape_4"],
        );
    }

    #[test]
    fn field_names_cannot_run_out() {
        let values = ["a"; 40];
        let names: BTreeSet<_> = field_names(values.into_iter()).into_iter().collect();
        assert_eq!(names.len(), 40);
    }
}
