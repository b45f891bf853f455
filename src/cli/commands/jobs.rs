//! `jobs`: what runs of the tool on this machine are at.

use clap::Subcommand;

use crate::cli::Error;
use crate::cli::exit_code::Outcome;
use crate::cli::run::Ctx;
use crate::queue::{JobId, JobState, Priority};
use crate::report::Jobs;
use crate::store::{Queue, Sqlite};

/// List, end or reprioritise what is adapted on this machine
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Those that have ended, too
    #[arg(long)]
    all: bool,
}

/// What to do with a job.
#[derive(Debug, Clone, Copy, Subcommand)]
enum Action {
    /// End it with the best so far
    Cancel {
        /// Number of the job
        id: i64,
    },
    /// Change how much it matters: low, normal or high
    Priority {
        /// Number of the job
        id: i64,
        /// The priority
        #[arg(value_parser = super::parse_priority)]
        level: Priority,
    },
}

/// Lists jobs, or changes one.
pub(crate) fn run(args: &Args, ctx: &Ctx) -> Result<Outcome, Error> {
    let path = Sqlite::path_in(&ctx.home()?);
    // A look at the queue makes none.
    let queue = if path.exists() {
        Some(Queue::of(Sqlite::open(&path)?))
    } else {
        None
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| Error::failed(error).context("cannot start the runtime"))?;
    runtime.block_on(async {
        match args.action {
            None => list(args.all, queue, ctx).await,
            Some(action) => change(action, queue, ctx).await,
        }
    })
}

async fn list(all: bool, queue: Option<Queue>, ctx: &Ctx) -> Result<Outcome, Error> {
    let mut jobs = match queue {
        Some(queue) => queue.jobs().await?,
        None => Vec::new(),
    };
    jobs.retain(|job| all || job.state == JobState::Running);
    ctx.console.answer(&Jobs { jobs });
    Ok(Outcome::Done)
}

async fn change(action: Action, queue: Option<Queue>, ctx: &Ctx) -> Result<Outcome, Error> {
    let (Action::Cancel { id } | Action::Priority { id, .. }) = action;
    let none = || {
        let none = Error::usage(format!("no job {id} is running"));
        none.help("`cargo metainfer jobs` lists those that are")
    };
    let queue = queue.ok_or_else(none)?;
    let (is_at_work, verb, note) = match action {
        Action::Cancel { .. } => {
            let note = format!("job {id}: it ends with the best so far");
            (queue.cancel(JobId(id)).await?, "Cancelling", note)
        }
        Action::Priority { level, .. } => {
            let changed = queue.prioritise(JobId(id), level).await?;
            (changed, "Changed", format!("job {id} to {}", level.name()))
        }
    };
    if !is_at_work {
        return Err(none());
    }
    ctx.console.status(verb, &note);
    Ok(Outcome::Done)
}
