//! What this process asks of the system for itself, before anything else.
#![expect(unsafe_code, reason = "signals and the allocator have no safe wrapper")]

/// Size from which memory is given back to the system when it is freed, bytes.
#[cfg(target_env = "gnu")]
const GIVEN_BACK: libc::c_int = 1 << 20;

/// Makes a write over the system's limit on the size of files an error, of the kind of a full disk,
/// in this process and in those that it starts. Without it the system ends whoever writes.
pub fn survive_size_limit() {
    // SAFETY: ignoring a signal runs no code, and nothing else here has a handler for it.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Has weights, which come and go with each build, leave nothing behind. The C library of GNU keeps
/// what was freed for its threads, up to 32 MiB a piece: with a model of 69 MB each further build
/// thread kept some 30 MiB.
pub fn give_memory_back() {
    // SAFETY: sets a number, before other threads allocate.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, GIVEN_BACK);
    }
}
