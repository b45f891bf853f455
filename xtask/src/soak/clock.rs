//! A wall clock that jumps, for the processes of a soak alone: a library that is loaded before all
//! others answers when they ask for the time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::dice::Dice;
use crate::shell;

/// Names the file that holds the shift, seconds, as 8 bytes.
const VARIABLE: &str = "METAINFER_SOAK_CLOCK";

/// Text of the library.
const SOURCE: &str = include_str!("clock_shift.rs");

/// The clock of a soak.
#[derive(Debug)]
pub(super) struct Clock {
    library: PathBuf,
    shift: PathBuf,
}

impl Clock {
    /// Builds the library; the clock is right at first.
    pub(super) fn new(root: &Path) -> Result<Self> {
        let source = root.join("clock_shift.rs");
        fs::write(&source, SOURCE)?;
        let clock = Self {
            library: root.join("libclock_shift.so"),
            shift: root.join("clock"),
        };
        fs::write(&clock.shift, 0i64.to_le_bytes())?;
        let mut rustc = shell::command("rustc");
        rustc
            .args([
                "--edition",
                "2021",
                "--crate-type",
                "cdylib",
                "-C",
                "panic=abort",
            ])
            .args(["-C", "opt-level=2", "-o"])
            .args([&clock.library, &source]);
        shell::capture(&mut rustc)?;
        Ok(clock)
    }

    /// Has a command and all that it starts live by this clock.
    pub(super) fn give(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.library)
            .env(VARIABLE, &self.shift);
    }

    /// Moves it by up to 40 days, forward or back.
    pub(super) fn jump(&self, dice: &mut Dice) -> Result<()> {
        let most = 40.0 * 86_400.0;
        self.set(((dice.chance() * 2.0 - 1.0) * most) as i64)
    }

    fn set(&self, seconds: i64) -> Result<()> {
        // In place, as processes have the file mapped.
        let mut file = fs::OpenOptions::new().write(true).open(&self.shift)?;
        Ok(std::io::Write::write_all(
            &mut file,
            &seconds.to_le_bytes(),
        )?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_sees_the_shift_and_only_in_its_wall_clock() {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::new(dir.path()).unwrap();
        let year = || {
            let mut date = Command::new("date");
            clock.give(&mut date);
            let output = date.args(["-u", "+%s"]).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            text.trim().parse::<i64>().unwrap() / (365 * 86_400)
        };
        let now = year();
        clock.set(-20 * 365 * 86_400).unwrap();
        assert!((now - year() - 20).abs() <= 1);
    }
}
