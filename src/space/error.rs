//! What can be wrong with a template or with what is asked of a space.

use super::ParamValue;

/// A template that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpaceError {
    /// It is not TOML, or a value has the wrong type.
    #[error("cannot read space `{space}`")]
    Toml {
        /// Name of the template.
        space: String,
        /// Where and why.
        #[source]
        source: Box<toml_edit::de::Error>,
    },
    /// A key that does not exist.
    #[error("unknown key `{key}` in {place} of space `{space}`")]
    UnknownKey {
        /// Name of the template.
        space: String,
        /// Where the key is, e.g. ``[[param]]``.
        place: String,
        /// The key.
        key: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// An expression that cannot be compiled or evaluated.
    #[error("cannot evaluate `{expr}` in {place} of space `{space}`")]
    Expression {
        /// Name of the template.
        space: String,
        /// Where it is, e.g. ``values of `tile_w` ``.
        place: String,
        /// The expression.
        expr: String,
        /// Why.
        #[source]
        source: Box<minijinja::Error>,
    },
    /// An expression uses a name that is neither a parameter nor a fact.
    #[error("`{name}` in {place} of space `{space}` is neither a parameter nor a known fact")]
    UnknownName {
        /// Name of the template.
        space: String,
        /// Where it is.
        place: String,
        /// The name.
        name: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// A parameter without values, or with more than can be handled.
    #[error("parameter `{param}` of space `{space}` has {n_values} values")]
    ValueCount {
        /// Name of the template.
        space: String,
        /// Name of the parameter.
        param: String,
        /// How many.
        n_values: usize,
    },
    /// Two parameters, or a parameter and a fact, of one name.
    #[error("`{name}` is defined twice in space `{space}`")]
    Duplicate {
        /// Name of the template.
        space: String,
        /// The name.
        name: String,
    },
    /// A parameter that the space does not have.
    #[error("space `{space}` has no parameter `{param}`")]
    UnknownParam {
        /// Name of the template.
        space: String,
        /// Name of the parameter.
        param: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// A value that a parameter does not offer.
    #[error("parameter `{param}` of space `{space}` does not offer `{value}`")]
    NotOffered {
        /// Name of the template.
        space: String,
        /// Name of the parameter.
        param: String,
        /// The value.
        value: ParamValue,
        /// What it offers.
        offered: Vec<ParamValue>,
    },
}

/// Why a mapping is not part of a space.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A parameter has no value.
    #[error("parameter `{0}` has no value")]
    Missing(String),
    /// A parameter is not one of the space's.
    #[error("there is no parameter `{0}`")]
    UnknownParam(String),
    /// A value is not one of the parameter's.
    #[error("parameter `{param}` does not offer `{value}`")]
    NotOffered {
        /// Name of the parameter.
        param: String,
        /// The value.
        value: ParamValue,
    },
    /// A constraint does not hold.
    #[error("`{expr}` does not hold: {reason}")]
    Constraint {
        /// The constraint.
        expr: String,
        /// Its reason, as the template states it.
        reason: String,
    },
    /// It was excluded when the space was restricted.
    #[error("it is outside of the restricted space")]
    Restricted,
}

impl SpaceError {
    /// Returns what to try, if anything is known.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::UnknownKey { nearest, .. }
            | Self::UnknownName { nearest, .. }
            | Self::UnknownParam { nearest, .. } => nearest
                .as_ref()
                .map(|name| format!("did you mean `{name}`?")),
            Self::NotOffered { offered, .. } => {
                let words: Vec<String> = offered.iter().map(|v| format!("`{v}`")).collect();
                Some(format!("it offers {}", words.join(", ")))
            }
            Self::ValueCount { .. } => Some(
                "give it between 1 and 65535 values; a fact may make a generated list empty"
                    .to_owned(),
            ),
            Self::Toml { .. } | Self::Expression { .. } | Self::Duplicate { .. } => None,
        }
    }
}

/// Returns the name most like `name`, if one is near enough to be a slip.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = name.chars().count().div_ceil(3).max(1);
    known
        .into_iter()
        .map(|candidate| (edit_distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance over characters.
fn edit_distance(lhs: &str, rhs: &str) -> usize {
    let rhs: Vec<char> = rhs.chars().collect();
    let mut row: Vec<usize> = (0..=rhs.len()).collect();
    for (i, left) in lhs.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in rhs.iter().enumerate() {
            let substituted = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[rhs.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_slips_and_nothing_else() {
        let known = ["name", "values", "doc"];
        assert_eq!(nearest("vlaues", known), Some("values"));
        assert_eq!(nearest("value", known), Some("values"));
        assert_eq!(nearest("dco", known), None);
        assert_eq!(nearest("do", known), Some("doc"));
        assert_eq!(nearest("registers", known), None);
    }
}
