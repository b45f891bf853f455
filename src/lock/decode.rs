//! Text → lockfile, by an explicit function for each version.

use std::collections::BTreeMap;

use toml_edit::{Document, Item, TableLike, TomlError, Value};

use super::lockfile::{INTERRUPTED, evidence_name};
use super::{
    Accuracy, Basis, Deployment, DeploymentKey, Figure, Footprint, GateFigures, LockedSubgraph,
    Lockfile, REVISION, VERSION,
};
use crate::config::Objective;
use crate::device::Isa;
use crate::digest::Digest;
use crate::label::Stage;
use crate::space::{Candidate, Mapping, ParamValue, Variant};

/// A text that is not a lockfile this release reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// A merge left its markers.
    #[error("line {line}: unresolved merge conflict")]
    MergeMarkers {
        /// Line of the first marker.
        line: usize,
    },
    /// Another version of the format.
    #[error("version {found} is newer than {VERSION}, the newest that this release reads")]
    NewerVersion {
        /// Version of the text.
        found: i64,
    },
    /// The same version with additions that writing would lose.
    #[error("revision {found} is newer than {REVISION}, the newest that this release writes")]
    NewerRevision {
        /// Revision of the text.
        found: i64,
    },
    /// Not TOML.
    #[error("line {line}: not valid TOML: {message}")]
    Syntax {
        /// Line of the fault.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// A field is missing or is not what it must be.
    #[error("line {line}: `{key}` must be {expected}")]
    Field {
        /// Line of the field, or of the table that lacks it.
        line: usize,
        /// Key of the field.
        key: String,
        /// What it must be.
        expected: &'static str,
    },
    /// A field that no revision up to this one has.
    #[error("line {line}: unknown key `{key}`")]
    UnknownKey {
        /// Line of the field.
        line: usize,
        /// Key of the field.
        key: String,
    },
    /// A model and target are locked twice.
    #[error("line {line}: model `{}` is locked twice for target `{}`", key.model, key.target)]
    Duplicate {
        /// Line of the second one.
        line: usize,
        /// What is locked twice.
        key: DeploymentKey,
    },
}

impl LockError {
    /// Returns what to do about it.
    pub fn help(&self) -> String {
        match self {
            Self::MergeMarkers { .. } => "keep either side and adapt again, nothing that was \
                measured is lost: git checkout --ours metainfer.lock && cargo metainfer adapt"
                .to_owned(),
            Self::NewerVersion { .. } | Self::NewerRevision { .. } => {
                "update the tool: cargo install cargo-metainfer".to_owned()
            }
            _ => "restore the file, e.g. git checkout metainfer.lock, or remove it and run \
                cargo metainfer adapt"
                .to_owned(),
        }
    }
}

/// Reads a lockfile.
///
/// # Errors
/// [`LockError`] naming the line, or the version if it is a newer one.
pub fn decode(text: &str) -> Result<Lockfile, LockError> {
    if let Some(line) = merge_marker(text) {
        return Err(LockError::MergeMarkers { line });
    }
    let document = Document::parse(text).map_err(|error| syntax(text, &error))?;
    let root = Reader {
        text,
        table: document.as_table(),
        line: 1,
    };
    let version = root.int("version", 1)?;
    if version > VERSION {
        return Err(LockError::NewerVersion { found: version });
    }
    decode_v1(root)
}

fn decode_v1(root: Reader<'_>) -> Result<Lockfile, LockError> {
    let revision = match root.table.get("revision") {
        Some(_) => root.int("revision", 0)?,
        None => 0,
    };
    let is_strict = revision <= REVISION;
    if is_strict {
        root.expect_keys(&["version", "revision", "deployment"])?;
    }
    let mut lockfile = Lockfile {
        revision,
        ..Lockfile::default()
    };
    for reader in root.tables("deployment")? {
        let key = DeploymentKey {
            model: reader.text("model")?.to_owned(),
            target: reader.text("target")?.to_owned(),
        };
        let line = reader.line;
        let deployment = read_deployment(reader, revision, is_strict)?;
        if lockfile
            .deployments
            .insert(key.clone(), deployment)
            .is_some()
        {
            return Err(LockError::Duplicate { line, key });
        }
    }
    Ok(lockfile)
}

fn read_deployment(
    reader: Reader<'_>,
    revision: i64,
    is_strict: bool,
) -> Result<Deployment, LockError> {
    let subgraphs = reader
        .tables("subgraph")?
        .into_iter()
        .map(|reader| read_subgraph(reader, is_strict))
        .collect::<Result<_, _>>()?;
    let deployment = Deployment {
        file: reader.digest("file")?,
        structure: reader.digest("structure")?,
        content: reader.digest("content")?,
        profile: reader.text("profile")?.to_owned(),
        isa: reader.one_of("isa", &Isa::ALL, Isa::name, "an instruction set")?,
        processor: reader.text("processor")?.to_owned(),
        device: reader.digest("device")?,
        backend: reader.text("backend")?.to_owned(),
        backend_version: reader.text("backend-version")?.to_owned(),
        toolchain: reader.text("toolchain")?.to_owned(),
        threads: reader.count("threads")?,
        objective: reader.one_of(
            "objective",
            &[Objective::Latency],
            Objective::name,
            "`latency`",
        )?,
        evidence: reader.one_of(
            "evidence",
            &[Stage::Measured, Stage::Simulated],
            evidence_name,
            "`measured` or `simulated`",
        )?,
        evaluations: reader.count("evaluations")?,
        is_interrupted: match reader.table.get("search") {
            Some(_) => reader.one_of("search", &[true], |_| INTERRUPTED, "`interrupted`")?,
            None => false,
        },
        speed_up: reader.figure("speed-up")?,
        latency_ms: reader.figure("latency-ms")?,
        divergence: reader.figure("divergence")?,
        footprint: match revision {
            ..=0 => None,
            _ => read_footprint(reader)?,
        },
        accuracy: match revision {
            ..=1 => None,
            _ => read_accuracy(reader, is_strict)?,
        },
        options: reader.mapping("options")?,
        subgraphs,
    };
    if is_strict {
        let fields = deployment.fields();
        let mut known: Vec<&str> = fields.iter().map(|field| field.key.as_ref()).collect();
        known.extend(["model", "target", "options", "subgraph", "search"]);
        if deployment.accuracy.is_some() {
            known.extend(["gate", "variants"]);
        }
        reader.expect_keys(&known)?;
    }
    Ok(deployment)
}

/// Reads the sizes of revision 1; what an earlier revision locked still has none.
fn read_footprint(reader: Reader<'_>) -> Result<Option<Footprint>, LockError> {
    let keys = ["arena-bytes", "weight-bytes", "code-bytes"];
    if !keys.iter().any(|key| reader.table.contains_key(key)) {
        return Ok(None);
    }
    let [arena, weights, code] = keys.map(|key| reader.int(key, 0).map(i64::unsigned_abs));
    Ok(Some(Footprint {
        arena_bytes: arena?,
        weight_bytes: weights?,
        code_bytes: code?,
    }))
}

/// Reads what revision 2 adds; a deployment of a model without samples has none of it.
fn read_accuracy(reader: Reader<'_>, is_strict: bool) -> Result<Option<Accuracy>, LockError> {
    if !reader.table.contains_key("samples") {
        return Ok(None);
    }
    let gate = match reader.part("gate")? {
        Some(gate) => Some(read_gate(gate, is_strict)?),
        None => None,
    };
    let mut variants = BTreeMap::new();
    if let Some(table) = reader.part("variants")? {
        for (key, _) in table.table.iter() {
            let variant = table.variant(key)?;
            let site = key.strip_prefix('s').and_then(|site| site.parse().ok());
            let site = site.ok_or_else(|| LockError::UnknownKey {
                line: table.line,
                key: key.to_owned(),
            })?;
            variants.insert(site, variant);
        }
    }
    Ok(Some(Accuracy {
        basis: Basis {
            samples: reader.digest("samples")?,
            accept: reader.text("accept")?.to_owned(),
        },
        gate,
        variants,
    }))
}

fn read_gate(reader: Reader<'_>, is_strict: bool) -> Result<GateFigures, LockError> {
    if is_strict {
        reader.expect_keys(&["samples", "l2", "kl", "lost", "gained"])?;
    }
    let has = |key: &str| reader.table.contains_key(key);
    Ok(GateFigures {
        n_samples: reader.count("samples")?,
        relative_l2: reader.figure("l2")?,
        kl: has("kl").then(|| reader.figure("kl")).transpose()?,
        paired: if has("lost") || has("gained") {
            Some([reader.count("lost")?, reader.count("gained")?])
        } else {
            None
        },
    })
}

fn read_subgraph(reader: Reader<'_>, is_strict: bool) -> Result<LockedSubgraph, LockError> {
    if is_strict {
        reader.expect_keys(&["op", "structure", "variant", "mapping"])?;
    }
    let variant = match reader.table.get("variant") {
        Some(_) => reader.variant("variant")?,
        None => Variant::default(),
    };
    Ok(LockedSubgraph {
        op: reader.text("op")?.to_owned(),
        structure: reader.digest("structure")?,
        candidate: Candidate {
            variant,
            mapping: reader.mapping("mapping")?,
        },
    })
}

/// A table that fails with the line.
#[derive(Clone, Copy)]
struct Reader<'a> {
    text: &'a str,
    table: &'a dyn TableLike,
    line: usize,
}

impl<'a> Reader<'a> {
    fn text(&self, key: &str) -> Result<&'a str, LockError> {
        self.field(key, "a string", Item::as_str)
    }

    fn int(&self, key: &str, minimum: i64) -> Result<i64, LockError> {
        let at_least = |item: &'a Item| item.as_integer().filter(|&value| value >= minimum);
        self.field(key, "a whole number", at_least)
    }

    fn count(&self, key: &str) -> Result<u32, LockError> {
        self.field(key, "a whole number", |item| {
            item.as_integer()
                .and_then(|value| u32::try_from(value).ok())
        })
    }

    fn digest(&self, key: &str) -> Result<Digest, LockError> {
        self.field(key, "a digest of 64 hexadecimal digits", |item| {
            item.as_str().and_then(|text| text.parse().ok())
        })
    }

    fn figure(&self, key: &str) -> Result<Figure, LockError> {
        self.field(key, "a number that is not negative", |item| {
            item.as_float().and_then(Figure::new)
        })
    }

    fn one_of<T: Copy>(
        &self,
        key: &str,
        values: &[T],
        name: impl Fn(T) -> &'static str,
        expected: &'static str,
    ) -> Result<T, LockError> {
        self.field(key, expected, |item| {
            let text = item.as_str()?;
            values.iter().copied().find(|&value| name(value) == text)
        })
    }

    fn variant(&self, key: &str) -> Result<Variant, LockError> {
        self.field(key, "a variant such as `int8`", |item| {
            item.as_str()?.parse().ok()
        })
    }

    fn mapping(&self, key: &str) -> Result<Mapping, LockError> {
        if !self.table.contains_key(key) {
            return Ok(Mapping::default());
        }
        self.field(key, "a table of numbers and words", |item| {
            item.as_table_like()?
                .iter()
                .map(|(name, item)| {
                    let value = match item.as_value()? {
                        Value::Integer(value) => ParamValue::Int(*value.value()),
                        Value::String(word) => ParamValue::Word(word.value().clone()),
                        _ => return None,
                    };
                    Some((name.to_owned(), value))
                })
                .collect::<Option<_>>()
                .map(Mapping)
        })
    }

    /// Returns a table within, e.g. `gate.samples` and its like.
    fn part(&self, key: &str) -> Result<Option<Reader<'a>>, LockError> {
        if !self.table.contains_key(key) {
            return Ok(None);
        }
        let table = self.field(key, "a table", Item::as_table_like)?;
        Ok(Some(Self { table, ..*self }))
    }

    fn tables(&self, key: &str) -> Result<Vec<Reader<'a>>, LockError> {
        if !self.table.contains_key(key) {
            return Ok(Vec::new());
        }
        let array = self.field(key, "an array of tables", Item::as_array_of_tables)?;
        let reader = |table: &'a toml_edit::Table| Reader {
            text: self.text,
            table,
            line: table
                .span()
                .map_or(self.line, |span| line_of(self.text, span.start)),
        };
        Ok(array.iter().map(reader).collect())
    }

    fn expect_keys(&self, known: &[&str]) -> Result<(), LockError> {
        match self.table.iter().find(|(key, _)| !known.contains(key)) {
            Some((key, item)) => Err(LockError::UnknownKey {
                line: self.line_of_item(key, item),
                key: key.to_owned(),
            }),
            None => Ok(()),
        }
    }

    fn field<T>(
        &self,
        key: &str,
        expected: &'static str,
        read: impl FnOnce(&'a Item) -> Option<T>,
    ) -> Result<T, LockError> {
        let table: &'a dyn TableLike = self.table;
        let item = table.get(key);
        item.and_then(read).ok_or_else(|| LockError::Field {
            line: item.map_or(self.line, |item| self.line_of_item(key, item)),
            key: key.to_owned(),
            expected,
        })
    }

    fn line_of_item(&self, key: &str, item: &Item) -> usize {
        let span = self.table.key(key).and_then(toml_edit::Key::span);
        span.or_else(|| item.span())
            .map_or(self.line, |span| line_of(self.text, span.start))
    }
}

/// Returns the line of the first merge marker.
fn merge_marker(text: &str) -> Option<usize> {
    let is_marker = |line: &str| {
        ["<<<<<<< ", ">>>>>>> ", "||||||| "]
            .iter()
            .any(|marker| line.starts_with(marker))
            || line == "======="
    };
    text.lines().position(is_marker).map(|idx| idx + 1)
}

/// A newer version need not be TOML that this release's parser reads, so its number goes first.
fn syntax(text: &str, error: &TomlError) -> LockError {
    let version = text.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "version").then(|| value.trim().parse::<i64>().ok())?
    });
    match version {
        Some(found) if found > VERSION => LockError::NewerVersion { found },
        _ => LockError::Syntax {
            line: line_of(text, error.span().map_or(0, |span| span.start)),
            message: error.message().trim().to_owned(),
        },
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.get(..offset).unwrap_or(text).matches('\n').count() + 1
}
