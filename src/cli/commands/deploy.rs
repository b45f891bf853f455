//! `deploy`: a locked model as a crate.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::backend::native::{Native, NativeOptions};
use crate::cli::args::Selection;
use crate::cli::commands::diff::in_working_tree;
use crate::cli::exit_code::Outcome;
use crate::cli::models::{self, Loaded};
use crate::cli::project::Project;
use crate::cli::run::Ctx;
use crate::cli::{Error, select};
use crate::config::Overrides;
use crate::deploy::{self, Program};
use crate::device::{Isa, Target};
use crate::fsx;
use crate::graph::{self, Graph};
use crate::lock::{Deployment, DeploymentKey, Finding};
use crate::onnx;
use crate::report::{Deployed, Failure};
use crate::space::{Candidate, Mapping};

/// Optimisation level of a deployment that names none.
const OPT_LEVEL: u8 = 3;
/// Nothing is compiled here; what runs the compiler asks it for its version only.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Write a locked model as a crate with a Rust and a C interface
///
/// The crate has no dependencies and builds on stable Rust. Run it again after `adapt`: it writes
/// what changed. A directory with other files in it is left alone. With `--onnx`, what is locked is
/// written as an ONNX file instead: the variant of the model, for other engines.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Model to deploy; may be left out if there is one
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Target to deploy it for; may be left out if there is one
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// Directory of the crate, or the file with `--onnx`
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
    /// Write an ONNX file, which other engines run, too
    #[arg(long)]
    onnx: bool,
    /// Without a lock: the choices that the search starts from
    #[arg(long)]
    untuned: bool,
}

/// Writes the crate. A lock that is missing or stale is an answer: no.
pub(crate) fn run(args: &Args, ctx: &Ctx) -> Result<Outcome, Error> {
    let Args {
        model,
        target,
        out,
        onnx,
        untuned,
    } = args;
    let project = Project::read(ctx, Overrides::default())?;
    let selection = Selection {
        models: model.iter().cloned().collect(),
        targets: target.iter().cloned().collect(),
    };
    let selected = select::models(&project, &selection)?;
    let model = *one("model", &selected, |model| &model.name)?;
    let targets = select::targets(&project, &selection)?;
    let target = one("target", &targets, |target| &target.name)?;

    let mut loaded = models::load(model)?;
    let choice = if *untuned {
        Choice::untuned(target)
    } else {
        let lockfile = in_working_tree(&project.workspace)?;
        let key = DeploymentKey {
            model: model.name.clone(),
            target: target.name.clone(),
        };
        let Some(locked) = lockfile.deployments.get(&key) else {
            return Ok(refuse(ctx, &key, &Finding::Missing));
        };
        if let Some(finding) = models::difference(model, &loaded, locked)? {
            return Ok(refuse(ctx, &key, &finding));
        }
        loaded = models::varied(model, loaded, locked)?;
        match Choice::locked(locked, &loaded) {
            Ok(choice) => choice,
            Err(finding) => return Ok(refuse(ctx, &key, &finding)),
        }
    };
    if *onnx {
        return write_onnx(ctx, &model.name, loaded.graph, out);
    }
    let native = Native::open(&NativeOptions {
        isa: choice.isa,
        threads: choice.threads as usize,
        rustc: ctx.environment.rustc.clone(),
        dir: project.workspace.target_dir.join("metainfer/native"),
        opt_level: choice.opt_level,
        timeout: TIMEOUT,
        templates: BTreeMap::new(),
    })?;
    let program = native
        .program(
            &loaded.graph,
            &loaded.partition,
            choice.candidates.as_deref(),
            &choice.options,
        )?
        .map_err(|failure| {
            Error::failed(failure.message)
                .context(format!("cannot deploy model `{}`", model.name))
                .help("cargo metainfer adapt finds choices that this release can build")
        })?;
    let opt_level = choice.opt_level.to_string();
    let program = Program::from_native(&model.name, &target.name, &opt_level, &program);
    let exported = deploy::export(&program, out)?;
    ctx.console.status(
        "Deployed",
        &format!(
            "`{}` for `{}` as crate `{}` in `{}`",
            model.name,
            target.name,
            exported.package,
            out.display()
        ),
    );
    ctx.console.answer(&Deployed {
        model: model.name.clone(),
        target: target.name.clone(),
        is_tuned: !untuned,
        exported,
    });
    Ok(Outcome::Done)
}

/// Writes a graph as ONNX.
fn write_onnx(ctx: &Ctx, model: &str, mut graph: Graph, out: &Path) -> Result<Outcome, Error> {
    let failed = |error: &dyn std::fmt::Display| {
        Error::failed(error.to_string()).context(format!("cannot write model `{model}` as ONNX"))
    };
    graph::upgrade(&mut graph).map_err(|error| failed(&error))?;
    let bytes = onnx::encode(&graph).map_err(|error| failed(&error))?;
    let changed = fsx::replace_if_changed(out, &bytes)?;
    let verb = if changed { "Wrote" } else { "Fresh" };
    ctx.console.status(
        verb,
        &format!(
            "`{model}` as `{}`, operator set {}",
            out.display(),
            graph.opset
        ),
    );
    Ok(Outcome::Done)
}

/// What decides the code of a deployment.
struct Choice {
    isa: Isa,
    threads: u32,
    opt_level: u8,
    options: Mapping,
    /// By subgraph; `None` for the defaults.
    candidates: Option<Vec<Candidate>>,
}

impl Choice {
    fn untuned(target: &Target) -> Self {
        Self {
            isa: target.profile.isa,
            threads: target.threads,
            opt_level: OPT_LEVEL,
            options: Mapping::default(),
            candidates: None,
        }
    }

    /// Takes the choices out of a lock. They hold for the instruction set that they were made for,
    /// whatever this machine has.
    fn locked(locked: &Deployment, loaded: &Loaded) -> Result<Self, Finding> {
        let mut choices: BTreeMap<_, Vec<&Candidate>> = BTreeMap::new();
        for subgraph in locked.subgraphs.iter().rev() {
            let candidates = choices.entry(subgraph.structure).or_default();
            candidates.push(&subgraph.candidate);
        }
        let candidates: Vec<_> = loaded
            .subgraphs
            .iter()
            .map(|digests| choices.get_mut(&digests.structure)?.pop().cloned())
            .collect();
        let n_new = candidates.iter().filter(|found| found.is_none()).count();
        if n_new > 0 {
            return Err(Finding::Structure {
                n_new,
                n_subgraphs: candidates.len(),
            });
        }
        let opt_level = locked.options.int("opt-level");
        Ok(Self {
            isa: locked.isa,
            threads: locked.threads,
            opt_level: opt_level
                .and_then(|level| u8::try_from(level).ok())
                .unwrap_or(OPT_LEVEL),
            options: locked.options.clone(),
            candidates: Some(candidates.into_iter().flatten().collect()),
        })
    }
}

/// Says why the lock cannot be deployed.
fn refuse(ctx: &Ctx, key: &DeploymentKey, finding: &Finding) -> Outcome {
    ctx.console.failure(&Failure {
        message: format!(
            "the lock has no deployment of model `{}` for target `{}`: {finding}",
            key.model, key.target
        ),
        causes: Vec::new(),
        help: vec![
            "cargo metainfer adapt brings `metainfer.lock` up to date".to_owned(),
            "--untuned deploys without a lock".to_owned(),
        ],
    });
    Outcome::No
}

/// Returns the only item; an error that names the flag and all items if there are several.
fn one<'a, T>(what: &str, items: &'a [T], name: impl Fn(&T) -> &String) -> Result<&'a T, Error> {
    match items {
        [item] => Ok(item),
        items => {
            let names: Vec<_> = items.iter().map(|item| name(item).as_str()).collect();
            Err(
                Error::usage(format!("there are {} {what}s", items.len())).help(format!(
                    "choose one with --{what} NAME: {}",
                    names.join(", ")
                )),
            )
        }
    }
}
