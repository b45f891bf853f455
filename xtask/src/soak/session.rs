//! Rounds until the time is up.

use std::fs;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use metainfer::fsx::{Attempt, FileLock};

use super::clock::Clock;
use super::round::{Ground, play};
use super::summary::Summary;
use super::tally::Tally;
use super::workspace;
use crate::shell;

/// One round in so many is compared with one without faults.
const TWINS: usize = 3;
/// One round in so many has another one beside it, on the same device.
const PAIRS: usize = 4;

/// How long, and what falls where.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// No round begins later
    #[arg(long, default_value_t = 30.0)]
    minutes: f64,
    /// What models, budgets and faults follow from
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Use the program in target/release as it is
    #[arg(long)]
    no_build: bool,
    /// End at the first round in which a promise was not kept
    #[arg(long)]
    fail_fast: bool,
}

/// Plays rounds, prints what they come to and keeps it as `target/soak/summary.json`.
///
/// # Errors
/// If a promise was not kept, or the soak itself could not go on.
pub(crate) fn run(args: &Args) -> Result<()> {
    let tool = workspace::tool(args.no_build)?;
    let root = shell::target("soak");
    fs::create_dir_all(&root)?;
    let lock = FileLock::try_lock(&root.join("soak.lock"), "cargo xtask soak")?;
    let Attempt::Locked(_lock) = lock else {
        bail!("another soak is at work in `{}`", root.display());
    };
    clear(&root)?;
    let clock = Clock::new(&root)?;
    let hangs = Mutex::new(Vec::new());
    let ground = Ground {
        root: &root,
        tool: &tool,
        seed: args.seed,
        clock: &clock,
        hangs: &hangs,
    };
    let started = Instant::now();
    let limit = Duration::from_secs_f64(args.minutes * 60.0);
    let mut all = Tally::default();
    for idx in 0.. {
        if started.elapsed() >= limit || (args.fail_fast && !all.violations.is_empty()) {
            break;
        }
        let round = rounds(&ground, idx).with_context(|| format!("in round {idx}"))?;
        let (n, n_faults) = (round.n_evaluations, round.n_faults());
        eprintln!(
            "round {idx}: {n} evaluations, {n_faults} faults, {} runs",
            round.n_runs
        );
        for violation in &round.violations {
            eprintln!("VIOLATION {violation}");
        }
        all.add(round);
    }
    let summary = Summary::of(all, args.seed, started.elapsed().as_secs_f64());
    let json = serde_json::to_string_pretty(&summary)?;
    fs::write(root.join("summary.json"), format!("{json}\n"))?;
    println!("{summary}");
    if !summary.violations.is_empty() {
        bail!("{} promises were not kept", summary.violations.len());
    }
    Ok(())
}

/// Plays one round, or two side by side.
fn rounds(ground: &Ground<'_>, idx: usize) -> Result<Tally> {
    let name = format!("round-{idx}");
    let has_twin = idx.is_multiple_of(TWINS);
    if idx % PAIRS != PAIRS - 1 {
        return play(ground, &name, "normal", has_twin);
    }
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| play(ground, &format!("{name}-beside"), "low", false));
        // Two that are timed beside others say nothing of each other.
        let mut tally = play(ground, &name, "normal", false)?;
        match beside.join() {
            Ok(other) => tally.add(other?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        Ok(tally)
    })
}

/// Removes what earlier soaks left.
fn clear(root: &std::path::Path) -> Result<()> {
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        if path.is_dir() {
            fs::remove_dir_all(&path)?;
        }
    }
    Ok(())
}
