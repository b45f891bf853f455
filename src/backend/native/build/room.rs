//! Room on the disk: objects that were not used for the longest time go first.
//!
//! Objects of all compilers and levels in a workspace are looked at, and several processes may do so
//! at once. One that is gone is compiled again by whoever needs it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::leftovers;
use crate::fsx;

/// Which objects stay.
#[derive(Debug)]
struct Object {
    used: SystemTime,
    bytes: u64,
    path: PathBuf,
    /// Whether a link under way uses it: it has another name then.
    is_pinned: bool,
}

/// Removes objects in the directories of a root until those that are left take `max_bytes` at most,
/// or are in use. Returns what they take.
pub(super) fn make(root: &Path, max_bytes: u64) -> u64 {
    let dirs = std::fs::read_dir(root).into_iter().flatten().flatten();
    let mut objects: Vec<Object> = Vec::new();
    for dir in dirs.map(|dir| dir.path()) {
        leftovers::remove(&dir);
        objects.extend(objects_in(&dir));
    }
    objects.sort_by(|lhs, rhs| (lhs.used, &lhs.path).cmp(&(rhs.used, &rhs.path)));
    let mut total: u64 = objects.iter().map(|object| object.bytes).sum();
    for object in objects.iter().filter(|object| !object.is_pinned) {
        if total <= max_bytes {
            break;
        }
        // The list makes it known, so that goes first. What cannot be removed stays.
        let removed = fsx::remove_file(&object.path.with_extension("list"))
            .and_then(|()| fsx::remove_file(&object.path));
        if removed.is_ok() {
            total -= object.bytes;
        }
    }
    total
}

/// Returns the objects in a directory.
fn objects_in(dir: &Path) -> Vec<Object> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let objects = paths.filter(|path| path.extension().is_some_and(|extension| extension == "o"));
    let object = |path: PathBuf| {
        let metadata = path.metadata().ok()?;
        let list = path.with_extension("list").metadata();
        Some(Object {
            used: metadata.modified().ok()?,
            bytes: metadata.len() + list.map_or(0, |list| list.len()),
            is_pinned: metadata.nlink() > 1,
            path,
        })
    };
    objects.filter_map(object).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_was_not_used_for_the_longest_time_goes_first_and_what_is_in_use_stays() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("abc");
        fsx::create_dir_all(&dir).unwrap();
        let now = SystemTime::now();
        for (age, name) in ["new", "middle", "old", "used"].iter().enumerate() {
            let path = dir.join(name).with_extension("o");
            fsx::write_scratch(&path, &[0; 90]).unwrap();
            fsx::write_scratch(&path.with_extension("list"), &[0; 10]).unwrap();
            let file = std::fs::File::options().append(true).open(&path).unwrap();
            let used = now - Duration::from_secs(100 * age as u64);
            file.set_modified(used).unwrap();
        }
        let pin = root.path().join("pin");
        fsx::hard_link(&dir.join("used.o"), &pin).unwrap();
        let left = || {
            let mut left: Vec<String> = Vec::new();
            for entry in std::fs::read_dir(&dir).unwrap().flatten() {
                left.push(entry.file_name().into_string().unwrap());
            }
            left.sort();
            left.join(" ")
        };
        assert_eq!(make(root.path(), 400), 400);
        assert_eq!(make(root.path(), 399), 300);
        assert_eq!(
            left(),
            "middle.list middle.o new.list new.o used.list used.o"
        );
        fsx::touch(&dir.join("middle.o")).unwrap();
        assert_eq!(make(root.path(), 200), 200);
        assert_eq!(left(), "middle.list middle.o used.list used.o");
        assert_eq!(make(root.path(), 0), 100);
        assert_eq!(left(), "used.list used.o");
        fsx::remove_file(&pin).unwrap();
        assert_eq!(make(root.path(), 0), 0);
    }
}
