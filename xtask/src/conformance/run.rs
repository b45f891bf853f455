//! The command: chooses cases, shares them among threads, reports.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use metainfer::backend::native::{Native, NativeOptions};
use metainfer::device::probe;

use super::cache::Cache;
use super::expected::{Expected, matches};
use super::report;
use super::runner::Runner;
use super::suite::{self, Case};
use super::trial::Bench;
use super::verdict::{Outcome, Verdict};
use crate::shell;

/// Optimisation level of kernels, as `adapt` compiles them.
const OPT_LEVEL: u8 = 3;
/// Longest time that a compiler call may take.
const COMPILE_LIMIT: Duration = Duration::from_mins(2);

/// What to run.
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct Args {
    /// Only cases that count for an operator of ONNX
    #[arg(long = "op", value_name = "NAME")]
    operators: Vec<String>,
    /// Only cases of a name, in which `*` stands for any characters
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,
    /// Cases that are built at once
    #[arg(short, long, default_value_t = 2)]
    jobs: usize,
    /// Also the real networks, which take minutes to build
    #[arg(long)]
    light: bool,
    /// Also fail on cases that are not covered although the list does not say why
    #[arg(long)]
    strict: bool,
    /// Print how each case went
    #[arg(short, long)]
    verbose: bool,
    /// List the cases and run none
    #[arg(long)]
    list: bool,
}

/// Runs the cases.
pub(crate) fn run(args: &Args) -> Result<()> {
    let expected = Expected::read()?;
    let all = suite::cases()?;
    let cases: Vec<&Case> = all.iter().filter(|case| args.choose(case)).collect();
    if args.list {
        for case in &cases {
            println!("{:30} {}", case.operator, case.name);
        }
        return Ok(());
    }
    if cases.is_empty() {
        bail!("there is no such case; `--list` shows all");
    }
    let started = Instant::now();
    let tried = try_all(&cases, &expected, args.jobs.max(1))?;
    if args.verbose {
        for (case, verdict) in &tried {
            println!("{:30} {}: {verdict}", case.operator, case.name);
        }
        println!();
    }
    report::publish(&tried, args.operators.is_empty() && args.cases.is_empty())?;
    eprintln!("{} cases in {:.0?}", tried.len(), started.elapsed());
    let names: Vec<&str> = all.iter().map(|case| case.name.as_str()).collect();
    judge(&tried, &expected, &names, args.strict)
}

impl Args {
    fn choose(&self, case: &Case) -> bool {
        let is_named = |pattern: &String| matches(pattern, &case.name);
        (self.operators.is_empty() || self.operators.contains(&case.operator))
            && (self.cases.is_empty() || self.cases.iter().any(is_named))
            && (self.light || !self.cases.is_empty() || case.kind != "light")
    }
}

/// Tries cases on `jobs` threads; the results are in the order of the cases.
fn try_all<'a>(
    cases: &[&'a Case],
    expected: &Expected,
    jobs: usize,
) -> Result<Vec<(&'a Case, Verdict)>> {
    let native = Native::open(&NativeOptions {
        isa: probe::host().isa,
        threads: 1,
        rustc: "rustc".into(),
        dir: shell::target("conformance/native"),
        opt_level: OPT_LEVEL,
        timeout: COMPILE_LIMIT,
        templates: BTreeMap::new(),
    })?;
    let cache = Cache::open(&native)?;
    let scratch = shell::target("conformance/scratch");
    fs::create_dir_all(&scratch)?;
    // A panic is one case that fails, and says so there.
    std::panic::set_hook(Box::new(|_| {}));
    let next = AtomicUsize::new(0);
    let work = |job: usize| -> Result<Vec<(usize, Verdict)>> {
        let mut bench = Bench {
            native: &native,
            cache: &cache,
            runner: Runner::new(scratch.join(format!("outputs_{job}.safetensors")))?,
            scratch: scratch.join(format!("model_{job}.onnx")),
        };
        let mut verdicts = Vec::new();
        loop {
            let idx = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(idx) else {
                return Ok(verdicts);
            };
            if idx.is_multiple_of(100) {
                eprintln!("case {idx} of {}", cases.len());
            }
            let verdict = match expected.skips(&case.name) {
                Some(reason) => Verdict::skipped(reason),
                None => bench
                    .judge(case)
                    .with_context(|| format!("cannot try `{}`", case.name))?,
            };
            verdicts.push((idx, verdict));
        }
    };
    let ended: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs)
            .map(|job| scope.spawn(move || work(job)))
            .collect();
        threads
            .into_iter()
            .map(std::thread::ScopedJoinHandle::join)
            .collect()
    });
    let _ = std::panic::take_hook();
    let mut verdicts = BTreeMap::new();
    for thread in ended {
        let thread = thread.map_err(|_| anyhow::anyhow!("a thread panicked"))?;
        verdicts.extend(thread?);
    }
    Ok(cases.iter().copied().zip(verdicts.into_values()).collect())
}

/// Fails if a case went otherwise than the repository says, or the list names cases that are not.
fn judge(
    tried: &[(&Case, Verdict)],
    expected: &Expected,
    names: &[&str],
    is_strict: bool,
) -> Result<()> {
    let mut objections = Vec::new();
    let mut n_unexplained = 0;
    for (case, verdict) in tried {
        let is_unexplained =
            verdict.outcome == Outcome::NotCovered && !expected.refuses(&case.operator, verdict);
        n_unexplained += usize::from(is_unexplained);
        let objection = match expected.objection(&case.name, verdict) {
            None if is_strict && is_unexplained => verdict.reason.clone(),
            objection => objection,
        };
        let Some(objection) = objection else { continue };
        let objection: String = objection.chars().take(400).collect();
        objections.push(format!("{}: {objection}", case.name));
    }
    objections.extend(expected.unknown(names).into_iter().map(|name| {
        format!("{name}: stands in `xtask/conformance.toml`, but there is no such case")
    }));
    for objection in &objections {
        println!("{objection}");
    }
    if n_unexplained > 0 {
        println!(
            "{n_unexplained} cases are not covered, and `xtask/conformance.toml` does not say why"
        );
    }
    match objections.len() {
        0 => Ok(()),
        n => bail!("{n} cases went otherwise than `xtask/conformance.toml` says"),
    }
}
