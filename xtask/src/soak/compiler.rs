//! The compiler that the tool is given: `rustc`, and now and then a fault.
//!
//! Whether a kernel is faulty follows from its symbol, which names its source: it is so in every run.
//! Kernels that were compiled before the tool had its first evaluation are those of the untuned
//! default, without which there is nothing to search from: they are spared.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process, setrlimit};

use super::dice::chance;
use super::fault::{CALLS, Fault, KERNELS, log, struck};

/// Names the directory of the round; its presence marks all processes of it.
pub(super) const ROUND: &str = "METAINFER_SOAK_ROUND";
/// Seed of the faults.
pub(super) const SEED: &str = "METAINFER_SOAK_SEED";

/// How the head of a kernel begins.
const HEAD: &str = "pub unsafe extern \"C\" fn k_";

/// Bytes that a compiler may write to a file when the disk is full.
const NEARLY_NOTHING: u64 = 100;

/// A call of the compiler, as the tool makes it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What rustc is told
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

/// Becomes `rustc`, perhaps with a fault. Returns only if that fails.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mut is_full = false;
    if let (Some(round), Some(source)) = (std::env::var_os(ROUND), source(&args.args)) {
        let round = Files::of(Path::new(&round));
        let seed = std::env::var(SEED)?.parse()?;
        is_full = spoil(&round, seed, source)?;
    }
    let mut rustc = Command::new("rustc");
    rustc.args(&args.args);
    if is_full {
        let limit = Rlimit {
            current: Some(NEARLY_NOTHING),
            maximum: Some(NEARLY_NOTHING),
        };
        setrlimit(Resource::Fsize, limit)?;
    }
    Err(rustc.exec()).context("cannot run `rustc`")
}

/// Returns the file that is to be compiled, if it is one of the tool's.
fn source(args: &[OsString]) -> Option<&Path> {
    let mut paths = args.iter().map(Path::new);
    paths.find(|path| path.file_name() == Some(OsStr::new("program.rs")))
}

/// Does to a source what chance has for it; returns whether the disk is to be full.
fn spoil(round: &Files, seed: u64, path: &Path) -> Result<bool> {
    let call = path.parent().and_then(Path::file_name).unwrap_or_default();
    match struck(&CALLS, chance(seed, &call.to_string_lossy())) {
        Some(Fault::DiskFull) if round.is_armed() => {
            log(&round.log, Fault::DiskFull)?;
            return Ok(true);
        }
        Some(Fault::CompilerKilled) if round.is_armed() => {
            log(&round.log, Fault::CompilerKilled)?;
            kill_process(getpid(), Signal::KILL)?;
        }
        _ => {}
    }
    let text = fs::read_to_string(path)?;
    let kernels = symbols(&text);
    if kernels.is_empty() {
        return Ok(false);
    }
    if !round.is_armed() {
        round.spare(&kernels)?;
        return Ok(false);
    }
    let spared = round.spared();
    let mut spoilt = text.clone();
    for symbol in kernels.iter().filter(|symbol| !spared.contains(**symbol)) {
        let Some(fault) = struck(&KERNELS, chance(seed, symbol)) else {
            continue;
        };
        log(&round.log, fault)?;
        if fault == Fault::CompilerHang {
            hang();
        }
        spoilt = with_fault(&spoilt, symbol, fault);
    }
    if spoilt != text {
        fs::write(path, spoilt)?;
    }
    Ok(false)
}

/// Returns the fault that a kernel has in a round, if it has one.
pub(super) fn is_faulty(round: &Files, seed: u64, symbol: &str) -> Option<Fault> {
    let fault = struck(&KERNELS, chance(seed, symbol));
    fault.filter(|_| !round.spared().contains(symbol))
}

/// Waits for whoever ends it.
fn hang() -> ! {
    loop {
        std::thread::sleep(std::time::Duration::from_mins(1));
    }
}

/// Returns the symbols of the kernels in a source.
fn symbols(source: &str) -> Vec<&str> {
    let heads = source.lines().filter_map(|line| line.strip_prefix(HEAD));
    heads
        .filter_map(|rest| rest.split_once('('))
        .map(|(digest, _)| digest)
        .collect()
}

/// Returns a source in which a kernel has a fault.
fn with_fault(source: &str, symbol: &str, fault: Fault) -> String {
    let statement = match fault {
        Fault::CompileError => "compile_error!(\"injected\");",
        Fault::KernelCrash => "core::ptr::write_volatile(8 as *mut u32, 1);",
        Fault::KernelHang => "loop { core::hint::spin_loop() }",
        // What it reads lies one value further.
        _ => "let x = x.wrapping_add(1);",
    };
    let head = format!("{HEAD}{symbol}(");
    let lines = source.lines().map(|line| {
        if line.starts_with(&head) {
            format!("{line}\n{statement}\n")
        } else {
            format!("{line}\n")
        }
    });
    lines.collect()
}

/// What the compiler and the round tell each other.
pub(super) struct Files {
    /// Lines of [`log`].
    pub(super) log: PathBuf,
    armed: PathBuf,
    spared: PathBuf,
}

impl Files {
    /// Returns the files of a round.
    pub(super) fn of(round: &Path) -> Self {
        Self {
            log: round.join("faults.log"),
            armed: round.join("armed"),
            spared: round.join("spared"),
        }
    }

    /// Lets faults begin.
    pub(super) fn arm(&self) -> Result<()> {
        Ok(fs::write(&self.armed, "")?)
    }

    /// Ends faults.
    pub(super) fn disarm(&self) -> Result<()> {
        match fs::remove_file(&self.armed) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn is_armed(&self) -> bool {
        self.armed.exists()
    }

    fn spare(&self, symbols: &[&str]) -> Result<()> {
        let options = OpenOptions::new().create(true).append(true).to_owned();
        let mut file = options.open(&self.spared)?;
        Ok(file.write_all(format!("{}\n", symbols.join("\n")).as_bytes())?)
    }

    fn spared(&self) -> BTreeSet<String> {
        let text = fs::read_to_string(&self.spared).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "mod m {\npub unsafe extern \"C\" fn k_1(x: *const f32) {\n}\n}\nmod n {\npub unsafe extern \"C\" fn k_22(x: *const f32) {\n}\n}\n";

    #[test]
    fn the_kernel_that_is_meant_has_the_fault_and_no_other() {
        assert_eq!(symbols(SOURCE), ["1", "22"]);
        let spoilt = with_fault(SOURCE, "1", Fault::KernelHang);
        let lines: Vec<&str> = spoilt.lines().collect();
        assert_eq!(lines[2], "loop { core::hint::spin_loop() }");
        assert_eq!(lines.len(), SOURCE.lines().count() + 1);
        assert_eq!(with_fault(SOURCE, "3", Fault::KernelHang), SOURCE);
    }

    #[test]
    fn what_was_compiled_before_the_first_evaluation_is_spared() {
        let dir = tempfile::tempdir().unwrap();
        let round = Files::of(dir.path());
        let path = dir.path().join("program.rs");
        let write = || fs::write(&path, SOURCE).unwrap();
        write();
        spoil(&round, 0, &path).unwrap();
        round.arm().unwrap();
        // Some seed has a fault of the source, not of the call, for each of them.
        let is_hit = |seed: &u64| {
            let fault = |symbol| struck(&KERNELS[..1], chance(*seed, symbol));
            let calls = struck(
                &CALLS,
                chance(*seed, &dir.path().file_name().unwrap().to_string_lossy()),
            );
            fault("1").is_some()
                && struck(&KERNELS, chance(*seed, "22")).is_none()
                && calls.is_none()
        };
        let seed = (0..100_000).find(is_hit).unwrap();
        spoil(&round, seed, &path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), SOURCE);
        fs::remove_file(&round.spared).unwrap();
        spoil(&round, seed, &path).unwrap();
        assert!(
            fs::read_to_string(&path)
                .unwrap()
                .contains("compile_error!")
        );
        assert_eq!(
            super::super::fault::count(&round.log)[&Fault::CompileError],
            1
        );
        round.disarm().unwrap();
        assert!(!round.is_armed());
    }
}
