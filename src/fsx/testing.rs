//! What unit tests share: a second process, and losing the rights that a test must not have.
#![expect(
    unsafe_code,
    reason = "the operating system's limits have no safe wrapper"
)]

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

/// Variable that tells a test that it runs as the child of another one, with its argument.
const CHILD_VARIABLE: &str = "METAINFER_TEST_CHILD";

/// Returns a command that runs one test of this binary as a child, which sees `argument`.
pub(crate) fn child(test: &str, argument: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env(CHILD_VARIABLE, argument).stdout(Stdio::null());
    command
}

/// Returns the argument if this process is a child.
#[expect(clippy::disallowed_methods, reason = "a test knows no settings")]
pub(crate) fn child_argument() -> Option<String> {
    std::env::var(CHILD_VARIABLE).ok()
}

/// Reads lines until one contains `text`; panics if there is none.
pub(crate) fn read_until(stream: impl Read, text: &str) {
    let mut lines = BufReader::new(stream).lines();
    assert!(lines.any(|line| line.unwrap().contains(text)));
}

/// Runs a function on this thread without the superuser's access to all files.
pub(crate) fn without_privileges<T>(function: impl FnOnce() -> T) -> T {
    const NOBODY: libc::uid_t = 65534;
    // SAFETY: changes the file system identity of this thread only, and changes it back.
    let old = unsafe { libc::setfsuid(NOBODY) };
    let result = function();
    // SAFETY: as above.
    unsafe { libc::setfsuid(old as libc::uid_t) };
    result
}

/// Limits the size of files that this process may write.
pub(crate) fn limit_file_size(bytes: u64) {
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: bytes,
    };
    crate::process::survive_size_limit();
    // SAFETY: the pointer is to a value of the right type, which is only read.
    let code = unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
    assert_eq!(code, 0);
}
