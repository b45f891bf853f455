//! What a workspace keeps in its target directory, within a budget.
//!
//! All of it can be made again. Journals and reference values of other models and of earlier runs go
//! first, the oldest ahead; then what the backend keeps to build faster. What this run needs stays,
//! also if it is more than the budget.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::job::Job;
use super::{Request, journal};
use crate::backend::Prepared;
use crate::fsx;

/// Builds between two looks at the disk.
const LOOK: u32 = 8;

/// A journal may take that part of the budget.
const JOURNAL_PART: u64 = 8;

/// The budget, and what was seen at the last look.
pub(super) struct Disk {
    scratch: PathBuf,
    /// What this run needs in places where others keep things, too.
    own: Vec<PathBuf>,
    max_bytes: u64,
    prepared: Arc<dyn Prepared>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    used_bytes: u64,
    n_builds: u32,
}

/// Something that nobody needs now.
struct Leftover {
    changed: SystemTime,
    bytes: u64,
    path: PathBuf,
}

impl Disk {
    /// Looks at the disk, and makes room.
    pub(super) fn new(request: &Request, job: &Job<'_>) -> Self {
        let (model, target) = (&job.model.name, &job.target.name);
        let journal = journal::journal_path(&request.scratch, model, target);
        let disk = Self {
            scratch: request.scratch.clone(),
            own: vec![job.scratch(request), journal],
            max_bytes: request.limits.max_disk.0,
            prepared: Arc::clone(&job.prepared),
            state: Mutex::default(),
        };
        disk.tidy();
        disk
    }

    /// Returns the bytes that were taken at the last look.
    pub(super) fn used_bytes(&self) -> u64 {
        self.state().used_bytes
    }

    /// Takes note of a build; looks at the disk now and then.
    pub(super) fn built(&self) {
        let is_time = {
            let mut state = self.state();
            state.n_builds += 1;
            state.n_builds.is_multiple_of(LOOK)
        };
        if is_time {
            self.tidy();
        }
    }

    /// Looks at the disk, and makes room.
    pub(super) fn tidy(&self) {
        self.keep(self.max_bytes);
    }

    /// Removes all that nobody needs now; returns whether that was anything.
    pub(super) fn make_all_room(&self) -> bool {
        let before = fsx::disk_usage(&self.scratch);
        self.keep(0) < before
    }

    /// Makes room until `max_bytes` are taken at most, or nothing is left to remove; returns what is
    /// taken.
    fn keep(&self, max_bytes: u64) -> u64 {
        let mut used_bytes = fsx::disk_usage(&self.scratch);
        if used_bytes > max_bytes {
            for leftover in self.leftovers() {
                if used_bytes <= max_bytes {
                    break;
                }
                let removed = fsx::remove_dir_all(&leftover.path);
                if removed
                    .or_else(|_| fsx::remove_file(&leftover.path))
                    .is_ok()
                {
                    used_bytes = used_bytes.saturating_sub(leftover.bytes);
                }
            }
        }
        if used_bytes > max_bytes {
            let kept = self.prepared.make_room(u64::MAX);
            let others = used_bytes.saturating_sub(kept);
            let kept = self.prepared.make_room(max_bytes.saturating_sub(others));
            used_bytes = others + kept;
        }
        tracing::debug!(used_bytes, max_bytes, "disk");
        self.state().used_bytes = used_bytes;
        used_bytes
    }

    /// Returns journals and reference values that this run does not need, the oldest first.
    fn leftovers(&self) -> Vec<Leftover> {
        let dirs = [self.scratch.join("models"), self.scratch.join("journals")];
        let mut leftovers: Vec<Leftover> = dirs
            .iter()
            .flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten().flatten())
            .map(|entry| entry.path())
            .filter(|path| !self.own.contains(path))
            .filter_map(Leftover::at)
            .collect();
        leftovers.sort_by(|lhs, rhs| (lhs.changed, &lhs.path).cmp(&(rhs.changed, &rhs.path)));
        leftovers
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the bytes that a journal may take.
pub(super) fn journal_bytes(request: &Request) -> u64 {
    request.limits.max_disk.0 / JOURNAL_PART
}

impl Leftover {
    fn at(path: PathBuf) -> Option<Self> {
        let metadata = path.metadata().ok()?;
        let bytes = if metadata.is_dir() {
            fsx::disk_usage(&path)
        } else {
            metadata.len()
        };
        Some(Self {
            changed: metadata.modified().ok()?,
            bytes,
            path,
        })
    }
}
