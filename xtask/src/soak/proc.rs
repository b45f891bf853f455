//! What `/proc` says of processes.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::compiler::ROUND;

/// Returns a size in the status of a process, bytes: `VmHWM` for the most memory that it ever had,
/// `VmRSS` for what it has, `VmSize` for its address space.
pub(super) fn memory(pid: u32, field: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(field))?;
    let kib = line.split_whitespace().nth(1)?.parse::<u64>().ok()?;
    Some(kib * 1024)
}

/// Returns the worker of a tool, if it has one.
pub(super) fn worker_of(tool: u32) -> Option<u32> {
    let parent = format!("\nPPid:\t{tool}\n");
    let is_worker = |pid: &u32| {
        let read = |file| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        read("status").contains(&parent) && read("cmdline").contains("\0worker\0")
    };
    pids().into_iter().find(is_worker)
}

/// Returns the processes of a round that are alive, with what they run. This one is none.
pub(super) fn of_round(round: &Path) -> Vec<String> {
    let mark = format!("{ROUND}={}\0", round.display());
    let belongs = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(&mark)
    };
    let own = std::process::id();
    let found = pids().into_iter().filter(|&pid| pid != own).filter(belongs);
    found
        .map(|pid| {
            let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            format!("{pid} {}", line.replace('\0', " "))
        })
        .collect()
}

/// Waits until a round has no processes; returns those that are left when the time is up.
pub(super) fn wait_for_none(round: &Path, limit: Duration) -> Vec<String> {
    let deadline = Instant::now() + limit;
    loop {
        let left = of_round(round);
        if left.is_empty() || Instant::now() > deadline {
            return left;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn pids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_string_lossy().parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn processes_of_a_round_are_found_by_their_environment() {
        let round = Path::new("/nonexistent/round 1");
        assert!(of_round(round).is_empty());
        let mut sleep = Command::new("sleep");
        let mut child = sleep.arg("60").env(ROUND, round).spawn().unwrap();
        // The environment is there once the program is.
        let deadline = Instant::now() + Duration::from_secs(10);
        while of_round(round).is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let left = wait_for_none(round, Duration::from_millis(50));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(left.len(), 1);
        assert!(left[0].contains("sleep 60"), "{left:?}");
        assert!(wait_for_none(round, Duration::from_secs(10)).is_empty());
        assert!(memory(std::process::id(), "VmHWM").unwrap() > 1 << 20);
    }
}
