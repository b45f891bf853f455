//! What a worker asks of the operating system for itself.
#![expect(unsafe_code, reason = "the system's limits have no safe wrapper")]

use std::io;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

/// Returns the logical processors that this process may run on, ascending; empty if the system
/// does not say.
pub fn allowed_cpus() -> Vec<usize> {
    // SAFETY: a set of zeros is an empty one.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a set of the size that is given.
    let result = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
    if result != 0 {
        return Vec::new();
    }
    (0..libc::CPU_SETSIZE as usize)
        // SAFETY: the number is below the size of the set.
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
        .collect()
}

/// Returns the allowed logical processors that are not on the core of `cpu`, ascending.
pub fn cpus_off_core(cpu: usize) -> Vec<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let siblings = parse_cpus(&std::fs::read_to_string(path).unwrap_or_default());
    let mut cpus = allowed_cpus();
    cpus.retain(|other| *other != cpu && !siblings.iter().any(|range| range.contains(other)));
    cpus
}

/// Returns the allowed logical processors other than `cpu`, those on other cores first.
pub(super) fn cpus_beside(cpu: usize) -> Vec<usize> {
    let mut cpus = cpus_off_core(cpu);
    let of_core = allowed_cpus();
    let siblings = of_core
        .into_iter()
        .filter(|other| *other != cpu && !cpus.contains(other));
    let siblings: Vec<usize> = siblings.collect();
    cpus.extend(siblings);
    cpus
}

/// Reads a list of processors as the system writes it, e.g. `0-3,8`.
fn parse_cpus(list: &str) -> Vec<RangeInclusive<usize>> {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    ranges.collect()
}

/// Keeps a thread, and what it starts meanwhile, off the core of a logical processor; until it is
/// dropped, on the same thread.
pub struct OffCore {
    before: libc::cpu_set_t,
    /// It belongs to its thread.
    _thread: PhantomData<*const ()>,
}

impl OffCore {
    /// Keeps this thread off the core of `cpu`; `None` if there is no other one that it may use.
    pub fn of(cpu: usize) -> Option<Self> {
        // SAFETY: a set of zeros is an empty one.
        let (mut before, mut others): (libc::cpu_set_t, libc::cpu_set_t) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        // SAFETY: the pointer is to a set of the size that is given.
        let got = unsafe { libc::sched_getaffinity(0, size_of_val(&before), &raw mut before) };
        result(got).ok()?;
        for other in cpus_off_core(cpu) {
            // SAFETY: the number was found in a set of the same size.
            unsafe { libc::CPU_SET(other, &mut others) };
        }
        set_cpus(&others).ok()?;
        Some(Self {
            before,
            _thread: PhantomData,
        })
    }
}

impl Drop for OffCore {
    fn drop(&mut self) {
        // A thread that cannot go back is slower, and as right as before.
        let _ = set_cpus(&self.before);
    }
}

/// Keeps this thread on some processors; an empty set is an error.
fn set_cpus(cpus: &libc::cpu_set_t) -> io::Result<()> {
    // SAFETY: the pointer is to a set of the size that is given, which is only read.
    result(unsafe { libc::sched_setaffinity(0, size_of_val(cpus), &raw const *cpus) })
}

/// Keeps this thread on a logical processor.
pub(super) fn stay_on_cpu(cpu: usize) -> io::Result<()> {
    if !allowed_cpus().contains(&cpu) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    move_to_cpu(cpu)
}

/// As [`stay_on_cpu`], for a thread of which another processor is known to be allowed to the
/// process although the thread was started on this one.
pub(super) fn move_to_cpu(cpu: usize) -> io::Result<()> {
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: a set of zeros is an empty one.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the number is below the size of the set.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    set_cpus(&set)
}

/// Limits the address space of this process.
pub(super) fn limit_memory(bytes: u64) -> io::Result<()> {
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: bytes,
    };
    // SAFETY: the pointer is to a value of the right type, which is only read.
    result(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) })
}

/// Ends this process at once, whatever its other threads are doing.
pub(super) fn end() -> ! {
    // SAFETY: runs no code of this process, so nothing can go wrong in it.
    unsafe { libc::_exit(0) }
}

fn result(code: libc::c_int) -> io::Result<()> {
    if code == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_read_as_the_system_writes_them() {
        assert_eq!(parse_cpus("0-1,4\n"), [0..=1, 4..=4]);
        assert_eq!(parse_cpus(""), []);
    }

    #[test]
    fn a_thread_and_its_children_keep_off_a_core_until_told_otherwise() {
        let cpus = allowed_cpus();
        let last = *cpus.last().unwrap();
        let others = cpus_off_core(last);
        assert!(!others.contains(&last));
        std::thread::spawn(move || {
            let off_core = OffCore::of(last);
            assert_eq!(off_core.is_some(), !others.is_empty());
            if off_core.is_some() {
                assert_eq!(allowed_cpus(), others);
                let child = std::thread::spawn(allowed_cpus);
                assert_eq!(child.join().unwrap(), others);
            }
            drop(off_core);
            assert_eq!(allowed_cpus(), cpus);
        })
        .join()
        .unwrap();
    }
}
