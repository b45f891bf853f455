//! Journals as files: a line an entry, each with a checksum, so that a torn end is known as such.

use std::path::{Path, PathBuf};

use super::{Entry, Stop};
use crate::digest::Digest;
use crate::fsx::{self, Appender, FsError};

/// Characters of a checksum.
const CHECKSUM: usize = 16;

/// A journal that is being written.
#[derive(Debug)]
pub(in crate::adapt) struct Journal {
    file: Appender,
    /// Bytes that may still be written.
    n_left: u64,
    /// How often the run asked whether to end, since the last entry.
    n_asked: u64,
}

/// Returns where the journal of the last run for a model and a target is.
pub(in crate::adapt) fn journal_path(scratch: &Path, model: &str, target: &str) -> PathBuf {
    let name = format!("{model}@{target}.journal");
    scratch.join("journals").join(name)
}

impl Journal {
    /// Begins a journal of `max_bytes` at most: what does not fit any more is left out, with all that
    /// follows. An earlier one in its place is kept beside it, as `.old`.
    ///
    /// # Errors
    /// [`FsError`] if it cannot be written.
    pub(in crate::adapt) fn create(path: &Path, max_bytes: u64) -> Result<Self, FsError> {
        if let Some(directory) = path.parent() {
            fsx::create_dir_all(directory)?;
        }
        if path.exists() {
            fsx::rename(path, &path.with_extension("journal.old"))?;
        }
        Ok(Self {
            file: Appender::open(path)?,
            n_left: max_bytes,
            n_asked: 0,
        })
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// [`FsError`] if it cannot be written.
    pub(in crate::adapt) fn append(&mut self, entry: &Entry) -> Result<(), FsError> {
        // Entries are plain data with text keys and finite numbers: there is JSON for them.
        let json = serde_json::to_string(entry).unwrap_or_default();
        let line = format!("{} {json}\n", checksum(&json));
        self.n_asked = 0;
        let n_bytes = line.len() as u64;
        if n_bytes > self.n_left {
            self.n_left = 0;
            return Ok(());
        }
        self.n_left -= n_bytes;
        self.file.append(line.as_bytes())
    }

    /// Takes note that the run asks whether to end, and of the answer if it is to.
    ///
    /// # Errors
    /// [`FsError`] if it cannot be written.
    pub(in crate::adapt) fn ask(&mut self, stop: Option<Stop>) -> Result<(), FsError> {
        self.n_asked += 1;
        let n_asked = self.n_asked;
        match stop {
            Some(stop) => self.append(&Entry::Stopped { stop, n_asked }),
            None => Ok(()),
        }
    }
}

/// Reads a journal as far as it is whole.
///
/// # Errors
/// [`FsError`] if it cannot be read at all.
pub(in crate::adapt) fn read(path: &Path) -> Result<Vec<Entry>, FsError> {
    let bytes = fsx::read(path)?;
    let text = String::from_utf8_lossy(&bytes);
    let whole = text.split_inclusive('\n').map_while(|line| {
        let (sum, json) = line.strip_suffix('\n')?.split_once(' ')?;
        let is_whole = sum == checksum(json);
        serde_json::from_str(json).ok().filter(|_| is_whole)
    });
    Ok(whole.collect())
}

fn checksum(json: &str) -> String {
    let mut text = Digest::of_bytes("metainfer journal v1", json.as_bytes()).to_string();
    text.truncate(CHECKSUM);
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::adapt::bench::TrialError;
    use crate::label::Outcome;

    fn entries() -> Vec<Entry> {
        vec![
            Entry::Idle,
            Entry::Glanced {
                result: Ok(1_234.567_890_123),
            },
            Entry::Stopped {
                stop: Stop::Cancelled,
                n_asked: 3,
            },
            Entry::Compared {
                artifacts: vec![Digest::of_bytes("test", b"x")],
                result: Err(TrialError {
                    outcome: Outcome::RunTimeout,
                    message: "line\nbreak".to_owned(),
                    is_fatal: true,
                }),
            },
        ]
    }

    fn write(path: &Path) -> Vec<u8> {
        let mut journal = Journal::create(path, u64::MAX).unwrap();
        for entry in entries() {
            journal.append(&entry).unwrap();
        }
        fsx::read(path).unwrap()
    }

    #[test]
    fn a_journal_is_read_as_it_was_written_and_the_one_before_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = journal_path(dir.path(), "net", "cpu");
        write(&path);
        write(&path);
        assert_eq!(read(&path).unwrap(), entries());
        let old = path.with_extension("journal.old");
        assert_eq!(read(&old).unwrap(), entries());
    }

    #[test]
    fn a_journal_ends_where_there_is_no_more_room_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.journal");
        let n_bytes = write(&path).len() as u64;
        let mut journal = Journal::create(&path, n_bytes - 1).unwrap();
        for entry in entries().into_iter().chain([Entry::Idle]) {
            journal.append(&entry).unwrap();
        }
        assert_eq!(read(&path).unwrap(), entries()[..3]);
    }

    proptest! {
        /// Whatever is cut off or damaged, what is read is the beginning of what was written.
        #[test]
        fn a_torn_or_damaged_journal_is_read_up_to_there(
            cut in any::<prop::sample::Index>(), damage in any::<Option<(prop::sample::Index, u8)>>(),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("x.journal");
            let mut bytes = write(&path);
            bytes.truncate(cut.index(bytes.len() + 1));
            if let Some((at, mask)) = damage && !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] ^= mask;
            }
            fsx::write_scratch(&path, &bytes).unwrap();
            let found = read(&path).unwrap();
            prop_assert_eq!(&found[..], &entries()[..found.len()]);
            let n_lines = String::from_utf8_lossy(&bytes).matches('\n').count();
            prop_assert!(damage.is_some() || found.len() == n_lines);
        }
    }
}
