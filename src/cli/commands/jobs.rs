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
    let path = ctx.home()?.join("labels.sqlite");
    // A look at the queue makes none.
    let queue = if path.exists() {
        let store = Sqlite::open(&path).map_err(crate::adapt::Error::Store)?;
        Some(Queue::of(store))
    } else {
        None
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| Error::failed(error).context("cannot start the runtime"))?;
    runtime.block_on(async {
        match (args.action, queue) {
            (None, queue) => {
                let jobs = match queue {
                    Some(queue) => queue.jobs().await.map_err(crate::adapt::Error::Store)?,
                    None => Vec::new(),
                };
                let is_shown = |state| args.all || state == JobState::Running;
                let jobs = jobs.into_iter().filter(|job| is_shown(job.state));
                ctx.console.answer(&Jobs {
                    jobs: jobs.collect(),
                });
                Ok(Outcome::Done)
            }
            (Some(action), queue) => {
                let (Action::Cancel { id } | Action::Priority { id, .. }) = action;
                let job = JobId(id);
                let is_at_work = match (action, queue) {
                    (_, None) => false,
                    (Action::Cancel { .. }, Some(queue)) => {
                        let asked = queue.cancel(job).await;
                        asked.map_err(crate::adapt::Error::Store)?
                    }
                    (Action::Priority { level, .. }, Some(queue)) => {
                        let changed = queue.prioritise(job, level).await;
                        changed.map_err(crate::adapt::Error::Store)?
                    }
                };
                if !is_at_work {
                    let none = Error::usage(format!("no job {id} is running"));
                    return Err(none.help("`cargo metainfer jobs` lists those that are"));
                }
                match action {
                    Action::Cancel { .. } => {
                        let note = format!("job {id}: it ends with the best so far");
                        ctx.console.status("Cancelling", &note);
                    }
                    Action::Priority { level, .. } => {
                        let note = format!("job {id} to {}", level.name());
                        ctx.console.status("Changed", &note);
                    }
                }
                Ok(Outcome::Done)
            }
        }
    })
}
