//! One race: a model at a number of threads, all engines and precisions.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;

use super::answer::Answer;
use super::build::{self, Choice};
use super::command::Args;
use super::quantize::model_file;
use super::scripts::Scripts;
use crate::models::{Form, Model, Precision};
use crate::shell;

/// What the harness is asked for.
#[derive(Serialize)]
struct Specification<'a> {
    model: &'a str,
    threads: u32,
    cores: Vec<u32>,
    forms: BTreeMap<&'static str, ModelForm<'a>>,
    ranges: BTreeMap<&'a str, [i64; 2]>,
    entries: Vec<Entry>,
    rounds: u32,
    warmup: u32,
    inputs: u32,
    seed: u64,
}

/// A model file of one precision.
#[derive(Serialize)]
struct ModelForm<'a> {
    onnx: PathBuf,
    fixed_onnx: PathBuf,
    shapes: BTreeMap<&'a str, &'a [usize]>,
}

/// An engine with a model file.
#[derive(Serialize, Default)]
struct Entry {
    name: String,
    engine: &'static str,
    precision: &'static str,
    /// Whether the others of its precision are compared with it.
    is_reference: bool,
    /// Whether onnxruntime is given bound arrays.
    is_bound: bool,
    /// Our library.
    library: Option<PathBuf>,
    /// The program that serves rten.
    program: Option<PathBuf>,
}

/// What the inputs of a model are.
#[derive(Serialize)]
pub(super) struct Shapes<'a> {
    pub(super) shapes: BTreeMap<&'a str, &'a [usize]>,
    pub(super) ranges: BTreeMap<&'a str, [i64; 2]>,
}

impl<'a> Shapes<'a> {
    /// Returns the shapes that are fixed, and the ranges of integers.
    pub(super) fn of(model: &'a Model) -> Self {
        let ranges = model.ranges.iter();
        Self {
            shapes: model.inputs.iter().copied().collect(),
            ranges: ranges
                .map(|&(name, low, high)| (name, [low, high]))
                .collect(),
        }
    }
}

/// Builds what can be built and races it.
///
/// # Errors
/// If the harness itself fails: an engine that does is part of the answer.
pub(super) fn race(model: &Model, threads: u32, args: &Args, scripts: &Scripts) -> Result<Answer> {
    let directory = shell::target("peers");
    fs::create_dir_all(&directory)?;
    let mut missing = BTreeMap::new();
    let mut forms = BTreeMap::new();
    let mut entries = Vec::new();
    let Shapes { shapes, ranges } = Shapes::of(model);
    for &precision in &args.precision {
        let form = Form { precision, threads };
        let onnx = match model_file(model, form, scripts) {
            Ok(onnx) => onnx,
            Err(error) => {
                missing.insert(precision.name().to_owned(), format!("{error:#}"));
                continue;
            }
        };
        let fixed = format!("{}-{}.fixed.onnx", model.name, precision.name());
        let fixed_onnx = directory.join(fixed);
        forms.insert(
            precision.name(),
            ModelForm {
                onnx,
                fixed_onnx,
                shapes: shapes.clone(),
            },
        );
        let choices = [Choice::Tuned, Choice::Untuned];
        for choice in choices.into_iter().skip(usize::from(args.untuned)) {
            let name = format!("{} {}", choice.name(), precision.name());
            match build::library(model, form, choice) {
                Ok(library) => entries.push(Entry {
                    library: Some(library),
                    ..entry(name, "ours", precision)
                }),
                Err(error) => {
                    missing.insert(name, format!("{error:#}"));
                }
            }
        }
        entries.extend(peers(precision));
    }
    let specification = Specification {
        model: model.name,
        threads,
        cores: (args.core..args.core + threads)
            .map(|core| core % cores())
            .collect(),
        forms,
        ranges,
        entries,
        rounds: args.rounds,
        warmup: args.warmup,
        inputs: args.inputs,
        seed: args.seed,
    };
    let file = |suffix: &str| directory.join(format!("{}-{threads}{suffix}", model.name));
    let asked = serde_json::to_string_pretty(&specification)?;
    fs::write(file(".spec.json"), asked)?;
    let mut harness = scripts.command("race.py", threads);
    shell::run(harness.arg(file(".spec.json")).arg(file(".json")))?;
    let mut answer = Answer::read(&file(".json"))?;
    answer.missing.extend(missing);
    answer.judge();
    fs::write(file(".json"), serde_json::to_string_pretty(&answer)? + "\n")?;
    Ok(answer)
}

/// Returns the other engines for a precision's model file.
fn peers(precision: Precision) -> Vec<Entry> {
    let named =
        |engine: &'static str| entry(format!("{engine} {}", precision.name()), engine, precision);
    vec![
        Entry {
            is_reference: true,
            ..named("onnxruntime")
        },
        Entry {
            is_bound: true,
            ..entry(
                format!("onnxruntime bound {}", precision.name()),
                "onnxruntime",
                precision,
            )
        },
        named("openvino"),
        named("tract"),
        Entry {
            program: Some(shell::target("release/xtask")),
            ..named("rten")
        },
    ]
}

fn entry(name: String, engine: &'static str, precision: Precision) -> Entry {
    Entry {
        name,
        engine,
        precision: precision.name(),
        ..Entry::default()
    }
}

fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1))
}
