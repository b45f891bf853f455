//! Reading templates from TOML.

use std::collections::BTreeSet;

use serde::Deserialize;
use toml_edit::{DocumentMut, Item};

use super::error::{SpaceError, nearest};
use super::expr::Expr;
use super::template::{ConstraintTemplate, FeatureTemplate, ParamTemplate, Source};
use super::{ParamValue, SpaceTemplate};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTemplate {
    #[serde(default)]
    doc: String,
    #[serde(default)]
    param: Vec<RawParam>,
    #[serde(default)]
    constraint: Vec<RawConstraint>,
    #[serde(default)]
    feature: Vec<RawFeature>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawParam {
    name: String,
    #[serde(default)]
    doc: String,
    when: Option<String>,
    values: RawValues,
    default: Option<ParamValue>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawValues {
    List(Vec<ParamValue>),
    Expr(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConstraint {
    expr: String,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFeature {
    name: String,
    expr: String,
}

/// Keys by table; the first line is the top level.
const KEYS: [(&str, &[&str]); 4] = [
    ("", &["doc", "param", "constraint", "feature"]),
    ("param", &["name", "doc", "when", "values", "default"]),
    ("constraint", &["expr", "reason"]),
    ("feature", &["name", "expr"]),
];

impl SpaceTemplate {
    /// Reads a template; `name` is used in messages only.
    ///
    /// # Errors
    /// Text that is not TOML, unknown keys, two parameters of one name, expressions that do not
    /// compile.
    pub fn parse(name: &str, text: &str) -> Result<Self, SpaceError> {
        let toml = |source| SpaceError::Toml {
            space: name.to_owned(),
            source: Box::new(source),
        };
        let document: DocumentMut = text
            .parse()
            .map_err(|error: toml_edit::TomlError| toml(error.into()))?;
        check_keys(name, &document)?;
        let raw: RawTemplate = toml_edit::de::from_document(document).map_err(toml)?;

        let mut seen = BTreeSet::new();
        for param in &raw.param {
            if !seen.insert(param.name.as_str()) {
                return Err(SpaceError::Duplicate {
                    space: name.to_owned(),
                    name: param.name.clone(),
                });
            }
        }
        Ok(Self {
            name: name.into(),
            doc: raw.doc,
            params: collect(raw.param, |param| param_template(name, param))?,
            constraints: collect(raw.constraint, |constraint| {
                Ok(ConstraintTemplate {
                    expr: parse_expr(name, "a constraint", &constraint.expr)?,
                    reason: constraint.reason,
                })
            })?,
            features: collect(raw.feature, |feature| {
                let place = format!("feature `{}`", feature.name);
                Ok(FeatureTemplate {
                    expr: parse_expr(name, &place, &feature.expr)?,
                    name: feature.name,
                })
            })?,
        })
    }
}

fn collect<T, U>(
    items: Vec<T>,
    convert: impl FnMut(T) -> Result<U, SpaceError>,
) -> Result<Vec<U>, SpaceError> {
    items.into_iter().map(convert).collect()
}

fn param_template(space: &str, raw: RawParam) -> Result<ParamTemplate, SpaceError> {
    let values = match raw.values {
        RawValues::List(list) => Source::Given(list),
        RawValues::Expr(text) => {
            let place = format!("values of `{}`", raw.name);
            Source::Computed(parse_expr(space, &place, &text)?)
        }
    };
    let default = match raw.default {
        None => None,
        Some(ParamValue::Word(text)) if !offers_word(&values, &text) => {
            let place = format!("default of `{}`", raw.name);
            Some(Source::Computed(parse_expr(space, &place, &text)?))
        }
        Some(value) => Some(Source::Given(vec![value])),
    };
    let when = raw.when.map(|text| {
        let place = format!("`when` of `{}`", raw.name);
        parse_expr(space, &place, &text)
    });
    Ok(ParamTemplate {
        name: raw.name.into(),
        doc: raw.doc,
        when: when.transpose()?,
        values,
        default,
    })
}

fn offers_word(values: &Source, word: &str) -> bool {
    match values {
        Source::Given(list) => list.contains(&word.into()),
        Source::Computed(_) => false,
    }
}

fn parse_expr(space: &str, place: &str, text: &str) -> Result<Expr, SpaceError> {
    Expr::parse(text).map_err(|source| SpaceError::Expression {
        space: space.to_owned(),
        place: place.to_owned(),
        expr: text.to_owned(),
        source: Box::new(source),
    })
}

fn check_keys(space: &str, document: &DocumentMut) -> Result<(), SpaceError> {
    let [(_, top), tables @ ..] = KEYS;
    check_table(
        space,
        "the top level",
        document.iter().map(|(key, _)| key),
        top,
    )?;
    for (table, known) in tables {
        let place = format!("`[[{table}]]`");
        let Some(Item::ArrayOfTables(entries)) = document.get(table) else {
            continue;
        };
        for entry in entries {
            check_table(space, &place, entry.iter().map(|(key, _)| key), known)?;
        }
    }
    Ok(())
}

fn check_table<'a>(
    space: &str,
    place: &str,
    mut keys: impl Iterator<Item = &'a str>,
    known: &[&str],
) -> Result<(), SpaceError> {
    match keys.find(|key| !known.contains(key)) {
        None => Ok(()),
        Some(key) => Err(SpaceError::UnknownKey {
            space: space.to_owned(),
            place: place.to_owned(),
            key: key.to_owned(),
            nearest: nearest(key, known.iter().copied()).map(str::to_owned),
        }),
    }
}
