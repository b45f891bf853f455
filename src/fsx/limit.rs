//! The system's limit on the size of files.
#![expect(unsafe_code, reason = "signals have no safe wrapper")]

/// Makes a write over the limit an error of kind [`DiskFull`](super::FsErrorKind::DiskFull), in this
/// process and in those that it starts. Without it the system ends whoever writes, by a signal.
pub fn survive_size_limit() {
    // SAFETY: ignoring a signal runs no code, and nothing else here has a handler for it.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
