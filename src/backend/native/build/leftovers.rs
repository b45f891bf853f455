//! What processes make for themselves in a build directory, and what killed ones left there.

use std::path::{Path, PathBuf};

use crate::fsx::{self, FsError};

/// A directory for one call of the compiler, which makes more files than it is asked for. It goes
/// when dropped, with all that is in it.
#[derive(Debug)]
pub(super) struct CallDir {
    path: PathBuf,
}

impl CallDir {
    /// Makes the directory of a stem.
    pub(super) fn new(dir: &Path, stem: &str) -> Result<Self, FsError> {
        let path = dir.join(format!("{stem}.tmp"));
        fsx::create_dir_all(&path)?;
        Ok(Self { path })
    }

    /// Returns the path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a file in it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for CallDir {
    fn drop(&mut self) {
        // What cannot be removed now is removed by a later process.
        let _ = fsx::remove_dir_all(&self.path);
    }
}

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
        if owner(&name.to_string_lossy()).is_none_or(is_alive) {
            continue;
        }
        let _ = match entry.file_type() {
            Ok(kind) if kind.is_dir() => fsx::remove_dir_all(&entry.path()),
            _ => fsx::remove_file(&entry.path()),
        };
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
        let gone = [format!("abc-{dead}-0.so"), format!("abc-{dead}-12.tmp")];
        let stay = [
            format!("{}.so", stem("abc", 3)),
            "abc.o".to_owned(),
            "abc.list".to_owned(),
            format!("{dead}-0.rs"),
            format!("abc-{dead}.rs"),
        ];
        let call = CallDir::new(dir.path(), &format!("abc-{dead}-12")).unwrap();
        fsx::write_scratch(&call.file("program.rs"), b"").unwrap();
        std::mem::forget(call);
        for name in gone[..1].iter().chain(&stay) {
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

    #[test]
    fn what_a_call_leaves_goes_with_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let call = CallDir::new(dir.path(), &stem("abc", 1)).unwrap();
        fsx::write_scratch(&call.file("program.rs"), b"").unwrap();
        assert!(call.path().exists());
        drop(call);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
