//! Reading and setting where threads may run.
#![expect(unsafe_code, reason = "the system's calls have no safe wrapper")]

use std::io;
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
pub fn cpus_beside(cpu: usize) -> Vec<usize> {
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

/// Keeps this thread on a logical processor.
///
/// # Errors
/// [`io::Error`] if it is not allowed.
pub fn stay_on_cpu(cpu: usize) -> io::Result<()> {
    if !allowed_cpus().contains(&cpu) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    move_to_cpu(cpu)
}

/// As [`stay_on_cpu`], for a thread of which another processor is known to be allowed to the
/// process although the thread was started on this one.
///
/// # Errors
/// [`io::Error`] if the system refuses.
pub fn move_to_cpu(cpu: usize) -> io::Result<()> {
    set_cpus(0, &[cpu])
}

/// Keeps a thread, this one if it is 0, on some processors; none is an error.
pub(super) fn set_cpus(thread: libc::pid_t, cpus: &[usize]) -> io::Result<()> {
    if cpus.iter().any(|&cpu| cpu >= libc::CPU_SETSIZE as usize) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: a set of zeros is an empty one.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus {
        // SAFETY: the number is below the size of the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: the pointer is to a set of the size that is given, which is only read.
    let code = unsafe { libc::sched_setaffinity(thread, size_of_val(&set), &raw const set) };
    if code == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Returns the number by which the system knows this thread.
pub(super) fn this_thread() -> libc::pid_t {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::gettid() }
}

/// Sends a signal to a process group that this tool started; one that is gone is none the worse.
pub(super) fn signal_group(group: libc::pid_t, signal: libc::c_int) {
    // SAFETY: the call only passes integers.
    let _ = unsafe { libc::killpg(group, signal) };
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
    fn a_processor_that_is_not_there_is_refused() {
        assert!(set_cpus(0, &[]).is_err());
        assert!(set_cpus(0, &[libc::CPU_SETSIZE as usize]).is_err());
        assert!(stay_on_cpu(usize::MAX).is_err());
    }
}
