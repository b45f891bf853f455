//! What a worker asks of the operating system for itself.
#![expect(unsafe_code, reason = "the system's limits have no safe wrapper")]

use std::io;

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
