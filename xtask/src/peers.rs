//! `cargo xtask peers`: deployed models against onnxruntime and OpenVINO.
//!
//! Deploys each model twice, as locked and untuned, builds both, and races them with the peers in
//! one process on one core (`peers.py`). Writes `target/peers/<model>.json` and prints a table.
//! Needs `python3` with `venv` and `pip`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::models::{self, Model};
use crate::shell;

/// What the virtual environment holds.
const PACKAGES: &str = "numpy==2.4.6\nonnx==1.23.2\nonnxruntime==1.32.0\nopenvino==2026.4.0\n";
/// The program that races the engines.
const HARNESS: &str = include_str!("peers.py");

/// What to measure.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Names of models; all of them if none is given
    names: Vec<String>,
    /// Rounds that are measured
    #[arg(long, default_value_t = 600)]
    rounds: u32,
    /// Calls of each engine before the first round
    #[arg(long, default_value_t = 50)]
    warmup: u32,
    /// Random inputs that the outputs are compared on
    #[arg(long, default_value_t = 5)]
    inputs: u32,
    /// Seed of the inputs and of the order
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Processor core to run on
    #[arg(long, default_value_t = 1)]
    core: u32,
}

/// What the harness is asked for.
#[derive(Serialize)]
struct Specification<'a> {
    model: &'a str,
    onnx: PathBuf,
    fixed_onnx: PathBuf,
    shapes: BTreeMap<&'a str, &'a [usize]>,
    ranges: BTreeMap<&'a str, [i64; 2]>,
    ours: Vec<Ours>,
    rounds: u32,
    warmup: u32,
    inputs: u32,
    seed: u64,
    core: u32,
}

/// A build of ours.
#[derive(Serialize)]
struct Ours {
    name: &'static str,
    library: PathBuf,
}

/// The part of the harness's answer that goes into the table.
#[derive(Deserialize)]
struct Answer {
    wall: Figures,
    cpu: Figures,
    relative_error: BTreeMap<String, f64>,
    start: BTreeMap<String, Start>,
    missing: BTreeMap<String, String>,
}

/// What a process takes to its first result.
#[derive(Deserialize)]
struct Start {
    load_ms: f64,
    first_ms: f64,
    memory_mib: f64,
    disk_mib: f64,
}

/// What one clock says.
#[derive(Deserialize)]
struct Figures {
    p25_us: BTreeMap<String, f64>,
    ratio: BTreeMap<String, BTreeMap<String, f64>>,
    tuned_over_untuned: Option<f64>,
    share_of_gain_by_tuning: Option<f64>,
}

/// Measures the models one after the other.
pub(crate) fn run(args: &Args) -> Result<()> {
    let python = shell::python("peers-venv", PACKAGES)?;
    shell::run(shell::command("cargo").args(["build", "--release", "--bin", "cargo-metainfer"]))?;
    for model in models::select(&args.names)? {
        let answer = measure(model, args, &python)?;
        print(model.name, &answer);
    }
    Ok(())
}

fn measure(model: &Model, args: &Args, python: &Path) -> Result<Answer> {
    let manifest = models::prepare(model)?;
    let directory = shell::target("peers");
    fs::create_dir_all(&directory)?;
    if !manifest.with_file_name("metainfer.lock").exists() {
        shell::run(&mut metainfer("adapt", &manifest))?;
    }
    let file = |suffix: &str| directory.join(format!("{}{suffix}", model.name));
    let specification = Specification {
        model: model.name,
        onnx: model.file(),
        fixed_onnx: file(".fixed.onnx"),
        shapes: model.inputs.iter().copied().collect(),
        ranges: model
            .ranges
            .iter()
            .map(|&(name, low, high)| (name, [low, high]))
            .collect(),
        ours: vec![
            Ours {
                name: "tuned",
                library: deploy(model, &manifest, &[])?,
            },
            Ours {
                name: "untuned",
                library: deploy(model, &manifest, &["--untuned"])?,
            },
        ],
        rounds: args.rounds,
        warmup: args.warmup,
        inputs: args.inputs,
        seed: args.seed,
        core: args.core,
    };
    fs::write(
        file(".spec.json"),
        serde_json::to_string_pretty(&specification)?,
    )?;
    let harness = directory.join("peers.py");
    fs::write(&harness, HARNESS)?;
    let mut race = shell::command(python);
    for variable in [
        "OPENBLAS_CORETYPE",
        "OPENBLAS_NUM_THREADS",
        "OPENBLAS_VERBOSE",
    ] {
        race.env_remove(variable);
    }
    race.envs(["OMP_NUM_THREADS", "MKL_NUM_THREADS", "TBB_NUM_THREADS"].map(|name| (name, "1")));
    shell::run(race.arg(harness).arg(file(".spec.json")).arg(file(".json")))?;
    let answer = fs::read_to_string(file(".json"))?;
    serde_json::from_str(&answer).context("the harness wrote an answer of another form")
}

/// Deploys a model, builds the crate and returns its library.
fn deploy(model: &Model, manifest: &Path, flags: &[&str]) -> Result<PathBuf> {
    let form = if flags.is_empty() { "tuned" } else { "untuned" };
    let out = shell::target("peers").join(model.name).join(form);
    shell::run(
        metainfer("deploy", manifest)
            .args(["--model", model.name, "--target", "cpu", "--out"])
            .arg(&out)
            .args(flags),
    )?;
    let messages = shell::capture(
        shell::command("cargo")
            .args([
                "build",
                "--release",
                "--message-format",
                "json",
                "--manifest-path",
            ])
            .arg(out.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(out.join("target")),
    )?;
    library(&messages).with_context(|| format!("`{}` built no library", out.display()))
}

/// Finds the shared library in cargo's messages.
fn library(messages: &[u8]) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Message {
        #[serde(default)]
        filenames: Vec<PathBuf>,
    }
    let is_library = |path: &PathBuf| {
        path.extension()
            .is_some_and(|extension| extension == std::env::consts::DLL_EXTENSION)
    };
    messages
        .split(|&byte| byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Message>(line).ok())
        .flat_map(|message| message.filenames)
        .find(is_library)
}

fn metainfer(verb: &str, manifest: &Path) -> std::process::Command {
    let mut command = shell::command(shell::target("release/cargo-metainfer"));
    command
        .args(["metainfer", verb, "--manifest-path"])
        .arg(manifest);
    command
}

/// Prints a table for each clock: rows are engines, ratios are ours over the peer's.
fn print(model: &str, answer: &Answer) {
    for (clock, figures) in [("wall", &answer.wall), ("processor", &answer.cpu)] {
        println!("{model}, {clock} time");
        let row = |cells: [&str; 5]| {
            let [name, p25, onnxruntime, openvino, error] = cells;
            println!("  {name:18} {p25:>10} {onnxruntime:>14} {openvino:>11} {error:>15}");
        };
        row([
            "",
            "p25, µs",
            "/ onnxruntime",
            "/ openvino",
            "relative error",
        ]);
        for (name, p25) in &figures.p25_us {
            let ratio = |peer: &str| {
                let ratio = figures.ratio.get(name).and_then(|ratios| ratios.get(peer));
                ratio.map(|ratio| format!("{ratio:.3}")).unwrap_or_default()
            };
            let error = answer.relative_error.get(name);
            let error = error
                .map(|error| format!("{error:.1e}"))
                .unwrap_or_default();
            let p25 = format!("{p25:.1}");
            row([
                name,
                &p25,
                &ratio("onnxruntime"),
                &ratio("openvino"),
                &error,
            ]);
        }
        if let Some(ratio) = figures.tuned_over_untuned {
            println!("  tuned over untuned: {ratio:.3}");
        }
        if let Some(share) = figures.share_of_gain_by_tuning {
            println!(
                "  share of the gain over the fastest peer that is owed to tuning: {share:.2}"
            );
        }
    }
    println!("{model}, start of a process: load, first inference, memory on top, size on disk");
    for (name, start) in &answer.start {
        let Start {
            load_ms,
            first_ms,
            memory_mib,
            disk_mib,
        } = start;
        println!(
            "  {name:18} {load_ms:>7.2} ms {first_ms:>8.2} ms {memory_mib:>8.1} MiB {disk_mib:>8.1} MiB"
        );
    }
    for (peer, reason) in &answer.missing {
        let reason = reason.lines().next().unwrap_or_default();
        println!("  {peer} cannot run it: {reason}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_is_found_in_cargo_messages() {
        let extension = std::env::consts::DLL_EXTENSION;
        let messages = format!(
            "{{\"reason\":\"build-script-executed\"}}\n\
             {{\"reason\":\"compiler-artifact\",\"filenames\":[\"a/liba.rlib\",\"a/liba.{extension}\"]}}\n"
        );
        let expected = PathBuf::from(format!("a/liba.{extension}"));
        assert_eq!(library(messages.as_bytes()), Some(expected));
        assert_eq!(library(b"{\"reason\":\"build-finished\"}\n"), None);
    }

    #[test]
    fn harness_pins_itself_before_it_loads_an_engine() {
        let position = |text: &str| HARNESS.find(text).unwrap();
        assert!(position("sched_setaffinity") < position("import onnxruntime"));
    }
}
