//! One model, adapted until the tool says that it is done.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::Value;

use super::clock::Clock;
use super::compiler::{Files, is_faulty};
use super::dice::Dice;
use super::fault::{self, Fault};
use super::inspect::{Seen, after_run};
use super::lock_quality::{Builds, locked};
use super::run::{self, Run};
use super::strike::Striker;
use super::tally::Tally;
use super::workspace::Workspace;
use super::{model, proc};

/// Runs of a round that faults hit; what is left is done in peace.
const MOST_RUNS: usize = 12;

/// What all rounds share.
pub(super) struct Ground<'a> {
    pub(super) root: &'a Path,
    pub(super) tool: &'a Path,
    pub(super) seed: u64,
    pub(super) clock: &'a Clock,
    /// See [`Striker::hangs`].
    pub(super) hangs: &'a Mutex<Vec<Instant>>,
}

/// Plays a round. With `has_twin` the same model is adapted once more without faults, and what both
/// locked is compared.
pub(super) fn play(
    ground: &Ground<'_>,
    name: &str,
    priority: &str,
    has_twin: bool,
) -> Result<Tally> {
    let mut dice = Dice::new(ground.seed, name);
    let model = model::random(&mut dice)?;
    let budget = 40 + dice.below(41);
    let seed = dice.below(1 << 30) as u64;
    let dir = ground.root.join(name);
    let workspace = Workspace::new(&dir, &ground.root.join("home"), ground.tool, &model)?;
    workspace.with_faults(seed)?;
    let budget_argument = budget.to_string();
    let arguments = [
        "--max-evaluations",
        &budget_argument,
        "--priority",
        priority,
    ];
    let files = Files::of(&dir);
    let mut round = Round {
        ground,
        workspace: &workspace,
        files: &files,
        tally: Tally::default(),
    };
    let mut seen = Seen::default();
    round.until_done(&mut dice, &mut seen, &arguments, budget)?;
    files.disarm()?;
    round.afterwards(&mut dice, &arguments)?;
    round.quality(seed, has_twin.then_some(&model[..]), &arguments)?;
    let Round { mut tally, .. } = round;
    tally.n_rounds = 1;
    tally.n_evaluations = seen.n_evaluations();
    for (fault, n) in fault::count(&files.log) {
        *tally.faults.entry(fault).or_default() += n;
    }
    for violation in &mut tally.violations {
        *violation = format!("{name}: {violation}");
    }
    if tally.violations.is_empty() {
        fs::remove_dir_all(&dir)?;
    }
    Ok(tally)
}

struct Round<'a> {
    ground: &'a Ground<'a>,
    workspace: &'a Workspace,
    files: &'a Files,
    tally: Tally,
}

impl Round<'_> {
    /// Runs the tool again and again.
    fn until_done(
        &mut self,
        dice: &mut Dice,
        seen: &mut Seen,
        arguments: &[&str],
        budget: usize,
    ) -> Result<()> {
        for n_runs in 0.. {
            let is_calm = n_runs >= MOST_RUNS;
            if is_calm {
                self.files.disarm()?;
            }
            let run = self.run(dice, arguments, is_calm)?;
            let hangs = match self.ground.hangs.lock() {
                Ok(hangs) => hangs.clone(),
                Err(poisoned) => poisoned.into_inner().clone(),
            };
            let found = after_run(self.workspace, &run, seen, budget, &hangs);
            self.tally.violations.extend(found);
            if run.was_killed() {
                self.replay(dice)?;
            }
            let is_done = run.code() == Some(0);
            self.tally.add_run(&run);
            if is_done {
                return Ok(());
            }
            if n_runs > 2 * MOST_RUNS {
                self.blame("it does not come to an end");
                return Ok(());
            }
        }
        Ok(())
    }

    fn run(&self, dice: &mut Dice, arguments: &[&str], is_calm: bool) -> Result<Run> {
        let Ground { clock, hangs, .. } = self.ground;
        let (store, log) = (self.workspace.store(), self.files.log.clone());
        let own = Dice::new(dice.below(1 << 30) as u64, "strikes");
        let mut striker = Striker::new(clock, store, log, own, hangs);
        let striker = (!is_calm).then_some(&mut striker);
        let arm = || if is_calm { Ok(()) } else { self.files.arm() };
        run::adapt(self.workspace, arguments, striker, &arm)
    }

    /// What must hold once the tool says that it is done.
    fn afterwards(&mut self, dice: &mut Dice, arguments: &[&str]) -> Result<()> {
        self.expect(0, &["check"])?;
        let before = fs::read(self.workspace.lock()).unwrap_or_default();
        let again = run::adapt(self.workspace, arguments, None, &|| Ok(()))?;
        let after = fs::read(self.workspace.lock()).unwrap_or_default();
        if again.code() != Some(0) || again.n_evaluations > 0 || before != after {
            self.blame("a run with nothing to do evaluated something, or moved the lock");
        }
        self.replay(dice)?;
        let (_, said) = self.workspace.say(&["jobs", "--message-format", "json"])?;
        let own = self.workspace.dir.display().to_string();
        let jobs = said
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        if jobs.into_iter().any(|job| job["workspace"] == own.as_str()) {
            self.blame("a job is said to be running that has ended");
        }
        let left = proc::of_round(&self.workspace.dir);
        if !left.is_empty() {
            self.blame(format!("processes are left: {}", left.join("; ")));
        }
        Ok(())
    }

    /// Replays the last run, whole and with its end torn off.
    fn replay(&mut self, dice: &mut Dice) -> Result<()> {
        let journal = self.workspace.journal();
        let Ok(bytes) = fs::read(&journal) else {
            // Killed before it began.
            return Ok(());
        };
        let mut ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let Some((head, _)) = ends.nth(1) else {
            return Ok(());
        };
        self.expect(0, &["adapt", "--replay"])?;
        let kept = head + 1 + dice.below(bytes.len() - head);
        OpenOptions::new()
            .write(true)
            .open(&journal)?
            .set_len(kept as u64)?;
        fault::log(&self.files.log, Fault::TornJournal)?;
        self.expect(0, &["adapt", "--replay"])?;
        self.tally.n_replays += 2;
        Ok(fs::write(&journal, bytes)?)
    }

    /// Takes note of a promise that was not kept.
    fn blame(&mut self, what: impl Into<String>) {
        self.tally.violations.push(what.into());
    }

    /// Runs a command whose exit code is known.
    fn expect(&mut self, expected: i32, arguments: &[&str]) -> Result<()> {
        let (code, said) = self.workspace.say(arguments)?;
        if code != Some(expected) {
            self.blame(format!(
                "`{}` ended with {code:?}: {said}",
                arguments.join(" ")
            ));
        }
        Ok(())
    }

    /// Looks at what is locked.
    fn quality(&mut self, seed: u64, twin: Option<&[u8]>, arguments: &[&str]) -> Result<()> {
        let deployment = match locked(self.workspace) {
            Ok(deployment) => deployment,
            Err(error) => {
                self.blame(format!("{error:#}"));
                return Ok(());
            }
        };
        if deployment.is_interrupted {
            self.blame("what is locked is said to be unfinished");
        }
        let builds = Builds::new(&self.workspace.model(), &self.workspace.dir.join("built"))?;
        for kernel in builds.kernels(&deployment)? {
            if let Some(fault) = is_faulty(self.files, seed, &kernel) {
                self.blame(format!(
                    "kernel {kernel} is locked and has the fault {fault:?}"
                ));
            }
        }
        let Some(model) = twin else {
            return Ok(());
        };
        let dir = self.workspace.dir.join("twin");
        let twin = Workspace::new(&dir, &dir.join("home"), self.ground.tool, model)?;
        let run = run::adapt(&twin, arguments, None, &|| Ok(()))?;
        self.tally.add_twin(&run);
        let without = locked(&twin).context("a run without faults locked nothing")?;
        let ratios = builds.race(&[&without, &deployment])?;
        self.tally.over_twin.push(ratios[1]);
        Ok(())
    }
}
