//! `adapt`: the main job.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::adapt::{self, Request};
use crate::cli::args::Selection;
use crate::cli::exit_code::Outcome;
use crate::cli::project::Project;
use crate::cli::run::Ctx;
use crate::cli::{Error, interrupt, models, select};
use crate::config::{Overrides, Size};
use crate::cpu::guard::guard_with;
use crate::measure::{WorkerSpec, share_of_memory};
use crate::queue::Priority;

/// Search, measure and lock the best deployment of each model on each target
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Real evaluations to spend on each model and target
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_evaluations: Option<u32>,
    /// Gain that a challenger needs over the locked choice, e.g. 0.03
    #[arg(long, value_name = "FRACTION", value_parser = parse_gain)]
    min_gain: Option<f64>,
    /// Seed of everything random
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Compilers to run at once [default: all processors]
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Time for each search, e.g. 30m; finals come on top
    #[arg(long, value_name = "T", value_parser = super::parse_time)]
    max_time: Option<Duration>,
    /// Time of all compilers for each search, e.g. 2h
    #[arg(long, value_name = "T", value_parser = super::parse_time)]
    max_compile_time: Option<Duration>,
    /// What is kept in the target directory, e.g. 2GiB [default: 4 GiB]
    #[arg(long, value_name = "SIZE")]
    max_disk: Option<Size>,
    /// Memory of what is measured [default: three quarters of the machine's]
    #[arg(long, value_name = "SIZE")]
    worker_memory: Option<Size>,
    /// Beside other runs: low, normal (the default), high
    #[arg(long, value_name = "LEVEL", value_parser = super::parse_priority)]
    priority: Option<Priority>,
    /// Say what would be searched, and stop
    #[arg(long)]
    dry_run: bool,
    /// Go through the last run again from its journal, without a device
    #[arg(long, conflicts_with = "dry_run")]
    replay: bool,
}

/// Adapts the selected models to the selected targets.
pub(crate) fn run(args: &Args, ctx: &Ctx) -> Result<Outcome, Error> {
    let Args {
        selection,
        max_evaluations,
        min_gain,
        seed,
        jobs,
        max_time,
        max_compile_time,
        max_disk,
        worker_memory,
        priority,
        dry_run,
        replay,
    } = args;
    let overrides = Overrides {
        max_evaluations: *max_evaluations,
        min_gain: *min_gain,
        seed: *seed,
        max_time: *max_time,
        max_compile_time: *max_compile_time,
        max_disk: *max_disk,
        worker_memory: *worker_memory,
    };
    let project = Project::read(ctx, overrides)?;
    let selected = select::models(&project, selection)?;
    selected.iter().copied().try_for_each(models::expect_file)?;
    let targets = select::targets(&project, selection)?;
    select::expect_usable(&targets)?;
    let mut worker = WorkerSpec::of_this_program()
        .map_err(|error| Error::failed(error).context("cannot find this program"))?;
    let memory = project.settings.limits.worker_memory.map(|size| size.0);
    worker.memory_limit_bytes = memory.or_else(share_of_memory);
    guard_with(worker.command.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::failed(error).context("cannot start the runtime"))?;
    let jobs = jobs
        .or_else(|| std::thread::available_parallelism().ok())
        .map_or(1, NonZeroUsize::get);
    runtime.block_on(async {
        let request = Request {
            workspace_root: project.workspace.root.clone(),
            scratch: project.workspace.target_dir.join("metainfer"),
            home: ctx.home()?,
            models: selected.into_iter().cloned().collect(),
            targets,
            is_everything: *selection == Selection::default() && !ctx.global.selects_packages(),
            search: project.settings.search,
            jobs,
            limits: project.settings.limits,
            priority: priority.unwrap_or_default(),
            is_locked: ctx.global.is_locked(),
            is_offline: ctx.global.is_offline(),
            is_dry_run: *dry_run,
            worker,
            timeouts: project.settings.timeouts,
            rustc: ctx.environment.rustc.clone(),
            cancellation: interrupt::watch(ctx.console.clone()),
        };
        if *replay {
            adapt::replay(&request, ctx.console.as_ref()).await?;
            return Ok(Outcome::Done);
        }
        let summary = adapt::run(&request, ctx.console.as_ref()).await?;
        Ok(if summary.interrupted {
            Outcome::Interrupted
        } else if summary.n_unmet > 0 {
            Outcome::No
        } else {
            Outcome::Done
        })
    })
}

fn parse_gain(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(gain) if (0.0..1.0).contains(&gain) => Ok(gain),
        _ => Err("expected a number from 0 to below 1".to_owned()),
    }
}
