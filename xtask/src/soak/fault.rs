//! Faults by name, and the log that counts them.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Fault {
    /// A kernel that the compiler refuses.
    CompileError,
    /// A kernel that the compiler does not come to an end with.
    CompilerHang,
    /// The compiler is killed.
    CompilerKilled,
    /// The compiler cannot write its output.
    DiskFull,
    /// A kernel that reads other weights.
    WrongOutput,
    /// A kernel that does not come to an end.
    KernelHang,
    /// A kernel that writes where it may not.
    KernelCrash,
    /// The worker may have no more memory than it has.
    OutOfMemory,
    /// The worker is killed.
    WorkerKilled,
    /// The worker is stopped and does not answer.
    DeviceHang,
    /// The tool is killed.
    ToolKilled,
    /// The tool is interrupted as by Ctrl-C.
    Interrupt,
    /// The wall clock jumps.
    ClockJump,
    /// Another process has the store for a while.
    StoreLocked,
    /// Another process has the store for longer than the tool waits.
    StoreHang,
    /// The end of the journal is torn off.
    TornJournal,
}

/// Share of the kernels that each fault of a kernel falls on.
pub(super) const KERNELS: [(Fault, f64); 5] = [
    (Fault::CompileError, 0.03),
    (Fault::WrongOutput, 0.03),
    (Fault::KernelCrash, 0.02),
    (Fault::KernelHang, 0.01),
    (Fault::CompilerHang, 0.005),
];

/// Share of the calls of the compiler that each fault of the moment falls on.
pub(super) const CALLS: [(Fault, f64); 2] =
    [(Fault::DiskFull, 0.012), (Fault::CompilerKilled, 0.012)];

/// Chance of each fault from outside after an evaluation.
pub(super) const STRIKES: [(Fault, f64); 8] = [
    (Fault::WorkerKilled, 0.03),
    (Fault::ToolKilled, 0.025),
    (Fault::ClockJump, 0.04),
    (Fault::StoreLocked, 0.03),
    (Fault::OutOfMemory, 0.02),
    (Fault::Interrupt, 0.01),
    (Fault::DeviceHang, 0.006),
    (Fault::StoreHang, 0.0015),
];

/// Returns the fault that a number in `[0, 1)` falls on.
pub(super) fn struck(rates: &[(Fault, f64)], chance: f64) -> Option<Fault> {
    let mut end = 0.0;
    rates.iter().find_map(|&(fault, rate)| {
        end += rate;
        (chance < end).then_some(fault)
    })
}

/// Takes note of a fault, from whichever process: a line each.
pub(super) fn log(path: &Path, fault: Fault) -> Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    let line = format!("{}\n", serde_json::to_string(&fault)?);
    Ok(file.write_all(line.as_bytes())?)
}

/// Counts what a log has.
pub(super) fn count(path: &Path) -> BTreeMap<Fault, usize> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut counts = BTreeMap::new();
    for fault in text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
    {
        *counts.entry(fault).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_falls_on_a_fault_as_often_as_its_rate_says() {
        let rates = [(Fault::Interrupt, 0.25), (Fault::ClockJump, 0.5)];
        assert_eq!(struck(&rates, 0.0), Some(Fault::Interrupt));
        assert_eq!(struck(&rates, 0.25), Some(Fault::ClockJump));
        assert_eq!(struck(&rates, 0.75), None);
    }

    #[test]
    fn faults_are_counted_by_kind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("faults");
        assert!(count(&path).is_empty());
        for fault in [Fault::ClockJump, Fault::DiskFull, Fault::ClockJump] {
            log(&path, fault).unwrap();
        }
        let counts = count(&path);
        assert_eq!(
            (counts[&Fault::ClockJump], counts[&Fault::DiskFull]),
            (2, 1)
        );
    }
}
