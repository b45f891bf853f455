//! What a worker asks of the operating system for itself.
#![expect(unsafe_code, reason = "the system's limits have no safe wrapper")]

use std::io;

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

/// Keeps this thread on a logical processor.
pub(super) fn stay_on_cpu(cpu: usize) -> io::Result<()> {
    if !allowed_cpus().contains(&cpu) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: a set of zeros is an empty one.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the number was found in a set of the same size.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the pointer is to a set of the size that is given.
    result(unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) })
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
