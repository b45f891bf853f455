//! What killed processes left in a build directory.

use std::path::Path;

use crate::fsx;

/// Returns the stem of a file that this process makes for itself: whoever finds it later can tell
/// by the process whether somebody is still at work on it.
pub(super) fn stem(name: &str, number: u64) -> String {
    format!("{name}-{}-{number}", std::process::id())
}

/// Removes the files of processes that are gone. Failure is harmless: the next one tries again.
pub(super) fn remove(dir: &Path) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if owner(&name.to_string_lossy()).is_some_and(|process| !is_alive(process)) {
            let _ = fsx::remove_file(&entry.path());
        }
    }
}

/// Returns the process whose file this is, by its name: `NAME-PROCESS-NUMBER.EXTENSION`.
fn owner(file_name: &str) -> Option<u32> {
    let (stem, _) = file_name.split_once('.')?;
    let mut parts = stem.rsplit('-');
    let _number: u64 = parts.next()?.parse().ok()?;
    let process = parts.next()?.parse().ok()?;
    parts.next()?;
    Some(process)
}

/// Returns whether a process may still be there: always where the system does not say.
fn is_alive(process: u32) -> bool {
    let proc = Path::new("/proc");
    proc.join(process.to_string()).exists() || !proc.join("self").exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_dead_processes_go_and_all_others_stay() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let dead = child.id();
        child.wait().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let gone = [
            format!("abc-{dead}-0.rs"),
            format!("abc-{dead}-12.program.f00-cgu.0.rcgu.o"),
        ];
        let stay = [
            format!("{}.so", stem("abc", 3)),
            "abc.o".to_owned(),
            "abc.list".to_owned(),
            format!("{dead}-0.rs"),
            format!("abc-{dead}.rs"),
        ];
        for name in gone.iter().chain(&stay) {
            fsx::write_scratch(&dir.path().join(name), b"").unwrap();
        }
        remove(dir.path());
        for name in &gone {
            assert!(!dir.path().join(name).exists(), "{name}");
        }
        for name in &stay {
            assert!(dir.path().join(name).exists(), "{name}");
        }
    }
}
