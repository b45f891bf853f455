//! Files: the only place that writes to the file system.
//!
//! A file that people or later runs depend on is replaced as a whole ([`replace`]): whoever reads
//! it, also after a crash, sees the old content or the new one. Every error names the path and
//! what was being done to it. Nothing here knows what the files mean.

mod error;
mod files;
mod lock;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use error::{FsError, FsErrorKind};
pub use files::{
    Appender, create_dir_all, create_scratch, disk_usage, hard_link, read, read_to_string,
    remove_dir_all, remove_file, rename, replace, replace_if_changed, touch, write_scratch,
};
pub use lock::{Attempt, FileLock, Holder};
