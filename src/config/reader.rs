//! Typed access to a TOML table that collects findings instead of stopping at the first.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml_edit::{Item, TableLike, Value};

use super::diagnostic::{Diagnostic, Place, Severity, nearest};
use super::size::{SIZE, Size};

/// Below this a timeout would end what is in order.
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);

/// Reads one text and collects what is wrong with it.
pub(super) struct Reader<'a> {
    file: &'a Path,
    text: &'a str,
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// A table and its dotted path, for messages.
#[derive(Clone, Copy)]
pub(super) struct Section<'a> {
    pub(super) table: &'a dyn TableLike,
    pub(super) path: &'a str,
}

impl<'a> Reader<'a> {
    pub(super) fn new(file: &'a Path, text: &'a str) -> Self {
        Self {
            file,
            text,
            diagnostics: Vec::new(),
        }
    }

    /// Warns of each key that is not in `known`.
    pub(super) fn expect_keys(&mut self, section: Section<'_>, known: &[&str]) {
        for (key, item) in section.table.iter() {
            if known.contains(&key) {
                continue;
            }
            let help = nearest(key, known).map_or_else(
                || format!("known keys: {}", known.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            self.push(
                Severity::Warning,
                "unknown-key",
                key_span(section.table, key, item),
                format!("unknown key `{}`", section.key(key)),
                Some(help),
            );
        }
    }

    /// Warns that a key is understood and has no effect.
    pub(super) fn without_effect(&mut self, section: Section<'_>, key: &str, help: &str) {
        if let Some(item) = section.table.get(key) {
            self.push(
                Severity::Warning,
                "no-effect",
                key_span(section.table, key, item),
                format!(
                    "`{}` is not supported by this release and has no effect",
                    section.key(key)
                ),
                Some(help.to_owned()),
            );
        }
    }

    pub(super) fn string(&mut self, section: Section<'_>, key: &str) -> Option<String> {
        let item = section.table.get(key)?;
        match item.as_str() {
            Some(text) if !text.is_empty() => Some(text.to_owned()),
            _ => self.wrong(section, key, item, "a string that is not empty"),
        }
    }

    pub(super) fn path(&mut self, section: Section<'_>, key: &str) -> Option<PathBuf> {
        self.string(section, key).map(PathBuf::from)
    }

    /// Reads one of a few words.
    pub(super) fn word(
        &mut self,
        section: Section<'_>,
        key: &str,
        words: &[&str],
    ) -> Option<String> {
        let item = section.table.get(key)?;
        match item.as_str() {
            Some(text) if words.contains(&text) => Some(text.to_owned()),
            other => {
                let expected = words
                    .iter()
                    .map(|word| format!("`{word}`"))
                    .collect::<Vec<_>>()
                    .join(" or ");
                let help = other
                    .and_then(|text| nearest(text, words))
                    .map(|near| format!("did you mean `{near}`?"));
                self.wrong_with_help(section, key, item, &expected, help)
            }
        }
    }

    pub(super) fn integer<T: TryFrom<i64>>(
        &mut self,
        section: Section<'_>,
        key: &str,
        minimum: i64,
    ) -> Option<T> {
        let item = section.table.get(key)?;
        let value = item.as_integer().filter(|&value| value >= minimum);
        match value.and_then(|value| T::try_from(value).ok()) {
            Some(value) => Some(value),
            None => self.wrong(section, key, item, &format!("an integer from {minimum} up")),
        }
    }

    /// Reads a finite number in a half-open range.
    pub(super) fn number(
        &mut self,
        section: Section<'_>,
        key: &str,
        range: Range<f64>,
    ) -> Option<f64> {
        let item = section.table.get(key)?;
        let value = item
            .as_float()
            .or_else(|| item.as_integer().map(|value| value as f64));
        match value {
            Some(value) if range.contains(&value) => Some(value),
            _ if range.end.is_infinite() => {
                let expected = format!("a number from {} up", range.start);
                self.wrong(section, key, item, &expected)
            }
            _ => {
                let expected = format!("a number from {} to below {}", range.start, range.end);
                self.wrong(section, key, item, &expected)
            }
        }
    }

    /// Reads a list of numbers of a range, at least one.
    pub(super) fn numbers(
        &mut self,
        section: Section<'_>,
        key: &str,
        range: Range<f64>,
    ) -> Option<Vec<f64>> {
        let item = section.table.get(key)?;
        let number = |value: &Value| {
            let number = value.as_float().or(value.as_integer().map(|n| n as f64))?;
            range.contains(&number).then_some(number)
        };
        let numbers = item.as_array();
        let numbers = numbers.and_then(|array| array.iter().map(number).collect());
        let numbers = numbers.filter(|numbers: &Vec<f64>| !numbers.is_empty());
        numbers.or_else(|| {
            let Range { start, end } = range;
            let expected = format!(
                "a list of numbers from {start} to below {end}, one or one for each channel"
            );
            self.wrong(section, key, item, &expected)
        })
    }

    /// Reads a span of time.
    pub(super) fn duration(&mut self, section: Section<'_>, key: &str) -> Option<Duration> {
        let item = section.table.get(key)?;
        let parsed = item.as_str().map(humantime::parse_duration);
        match parsed {
            Some(Ok(duration)) => Some(duration),
            _ => self.wrong(
                section,
                key,
                item,
                "a span of time such as \"90s\" or \"30m\"",
            ),
        }
    }

    /// Reads a span of time that something can be done in.
    pub(super) fn timeout(&mut self, section: Section<'_>, key: &str) -> Option<Duration> {
        let duration = self.duration(section, key)?;
        if duration >= SHORTEST_TIMEOUT {
            return Some(duration);
        }
        let item = section.table.get(key)?;
        self.wrong(section, key, item, "1s or more")
    }

    /// Reads a size.
    pub(super) fn size(&mut self, section: Section<'_>, key: &str) -> Option<Size> {
        let item = section.table.get(key)?;
        match item.as_str().map(str::parse) {
            Some(Ok(size)) => Some(size),
            _ => self.wrong(section, key, item, SIZE),
        }
    }

    /// Reads a list of dimensions.
    pub(super) fn dims(&mut self, section: Section<'_>, key: &str) -> Option<Vec<usize>> {
        let item = section.table.get(key)?;
        let dims = item.as_array().and_then(|array| {
            array
                .iter()
                .map(|value| value.as_integer().filter(|&dim| dim > 0))
                .map(|dim| dim.and_then(|dim| usize::try_from(dim).ok()))
                .collect::<Option<Vec<_>>>()
        });
        match dims {
            Some(dims) => Some(dims),
            None => self.wrong(
                section,
                key,
                item,
                "a list of dimensions such as [1, 3, 224, 224]",
            ),
        }
    }

    /// Reads a table, inline or not.
    pub(super) fn table<'t>(
        &mut self,
        section: Section<'t>,
        key: &str,
    ) -> Option<&'t dyn TableLike> {
        let item = section.table.get(key)?;
        match item.as_table_like() {
            Some(table) => Some(table),
            None => self.wrong(section, key, item, "a table"),
        }
    }

    /// Reads an array of tables, inline or not, each with the span of its start.
    pub(super) fn tables<'t>(
        &mut self,
        section: Section<'t>,
        key: &str,
    ) -> Vec<(&'t dyn TableLike, Range<usize>)> {
        let Some(item) = section.table.get(key) else {
            return Vec::new();
        };
        match item {
            Item::ArrayOfTables(array) => array
                .iter()
                .map(|table| {
                    let table: &dyn TableLike = table;
                    (table, table_span(table, item))
                })
                .collect(),
            Item::Value(Value::Array(array)) if array.iter().all(Value::is_inline_table) => array
                .iter()
                .filter_map(Value::as_inline_table)
                .map(|table| {
                    let table: &dyn TableLike = table;
                    (table, table_span(table, item))
                })
                .collect(),
            _ => {
                let expected = format!("tables, each headed `[[{key}]]`");
                self.wrong::<()>(section, key, item, &expected);
                Vec::new()
            }
        }
    }

    pub(super) fn place(&self, span: &Range<usize>) -> Place {
        Place::new(self.file, self.text, span.start)
    }

    pub(super) fn push(
        &mut self,
        severity: Severity,
        code: &'static str,
        span: Range<usize>,
        message: String,
        help: Option<String>,
    ) {
        self.diagnostics.push(Diagnostic {
            place: self.place(&span),
            severity,
            code,
            message,
            help,
        });
    }

    fn wrong<T>(
        &mut self,
        section: Section<'_>,
        key: &str,
        item: &Item,
        expected: &str,
    ) -> Option<T> {
        self.wrong_with_help(section, key, item, expected, None)
    }

    fn wrong_with_help<T>(
        &mut self,
        section: Section<'_>,
        key: &str,
        item: &Item,
        expected: &str,
        help: Option<String>,
    ) -> Option<T> {
        self.push(
            Severity::Error,
            "wrong-value",
            item.span()
                .unwrap_or_else(|| key_span(section.table, key, item)),
            format!("`{}` must be {expected}", section.key(key)),
            help,
        );
        None
    }
}

impl<'a> Section<'a> {
    pub(super) fn new(table: &'a dyn TableLike, path: &'a str) -> Self {
        Self { table, path }
    }

    pub(super) fn key(self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }
}

fn key_span(table: &dyn TableLike, key: &str, item: &Item) -> Range<usize> {
    table
        .key(key)
        .and_then(toml_edit::Key::span)
        .or_else(|| item.span())
        .unwrap_or(0..0)
}

fn table_span(table: &dyn TableLike, parent: &Item) -> Range<usize> {
    let first_key = table
        .iter()
        .next()
        .map(|(key, item)| key_span(table, key, item));
    first_key.or_else(|| parent.span()).unwrap_or(0..0)
}
