//! How much memory a worker may use unless somebody says so.

use std::path::{Path, PathBuf};

/// Share of the memory that a worker may use: the rest is for the tool and its compilers.
const SHARE: (u64, u64) = (3, 4);

/// Returns the share of the machine's memory, or of what this process's control group may use, that
/// a worker may use; `None` if the system does not say.
pub fn share_of_memory() -> Option<u64> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let machine = of_machine(&read(Path::new("/proc/meminfo"))?)?;
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limits = limit_files(&groups);
    let limits = limits
        .iter()
        .filter_map(|path| read(path)?.trim().parse().ok());
    let least = limits.fold(machine, u64::min);
    Some(least / SHARE.1 * SHARE.0)
}

/// Returns what `/proc/meminfo` says of all memory, bytes.
fn of_machine(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Returns the files that limit the memory of the groups in `/proc/self/cgroup` and of those above
/// them, of both versions of control groups. Where the group is not seen by its own name, as in
/// a container, that of the root is what limits it.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else {
            continue;
        };
        let (root, file) = if controllers.is_empty() {
            ("/sys/fs/cgroup", "memory.max")
        } else if controllers.split(',').any(|name| name == "memory") {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        } else {
            continue;
        };
        let group = Path::new(group.trim_start_matches('/'));
        files.extend(
            group
                .ancestors()
                .map(|group| Path::new(root).join(group).join(file)),
        );
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_the_machine_is_read_in_bytes() {
        let text = "MemTotal:       16384 kB\nMemFree:  1 kB\n";
        assert_eq!(of_machine(text), Some(16 << 20));
        assert_eq!(of_machine("MemTotal: much\n"), None);
        assert_eq!(of_machine(""), None);
    }

    #[test]
    fn groups_and_those_above_them_limit_memory() {
        let files = limit_files("12:cpu,memory:/a/b\n3:cpuset:/c\n0::/d\nnonsense\n");
        let expected = [
            "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/d/memory.max",
            "/sys/fs/cgroup/memory.max",
        ];
        assert_eq!(files, expected.map(PathBuf::from));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_worker_gets_less_than_all_of_this_machine() {
        let all = of_machine(&std::fs::read_to_string("/proc/meminfo").unwrap()).unwrap();
        let share = share_of_memory().unwrap();
        assert!(share > 0 && share <= all / 4 * 3);
    }
}
