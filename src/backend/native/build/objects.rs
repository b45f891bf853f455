//! Kernels that are compiled, being compiled, or refused.
//!
//! Several builds run at once and share kernels. One that another build is compiling is waited
//! for: compiled twice, its objects would define it twice, and no program could be linked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::BuildError;
use super::batch::Named;
use super::leftovers::CallDir;
use super::refused::{self, Refusal};
use crate::fsx::{self, FsError, FsErrorKind};
use crate::label::Outcome;

/// What is known of kernels, by symbol.
#[derive(Debug, Default)]
pub(super) struct Objects {
    state: Mutex<State>,
    released: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Object file of those that are compiled.
    compiled: BTreeMap<String, PathBuf>,
    /// How rustc refused those that it refused: they are not tried again.
    refused: BTreeMap<String, Refusal>,
    /// Those that a build is compiling.
    claimed: BTreeSet<String>,
}

/// What is to be done for kernels to be compiled.
pub(super) enum Next<'o, 'k> {
    /// Nothing: all are.
    Nothing,
    /// Nothing can be done: one was refused.
    Refused(Named<'k>, Outcome, String),
    /// These are to be compiled by whoever has the claim.
    Compile(Vec<Named<'k>>, Claim<'o>),
}

/// The right to compile kernels; given up when dropped, compiled or not.
pub(super) struct Claim<'o> {
    objects: &'o Objects,
    symbols: Vec<String>,
}

impl Objects {
    /// Reads which kernels a build directory has objects of, and which the compiler refused that
    /// has so much time.
    pub(super) fn read(dir: &Path, limit: Duration) -> Result<Self, BuildError> {
        let mut state = State {
            refused: refused::read(dir, limit),
            ..State::default()
        };
        let entries = std::fs::read_dir(dir)
            .map_err(|source| FsError::new("list the directory", dir, source))?;
        let paths: BTreeSet<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        for path in paths {
            let object = path.with_extension("o");
            if path.extension().is_none_or(|ext| ext != "list") || !object.exists() {
                continue;
            }
            let list = fsx::read_to_string(&path)?;
            // An object that shares kernels with another one cannot be linked with it.
            if list
                .lines()
                .any(|symbol| state.compiled.contains_key(symbol))
            {
                continue;
            }
            for symbol in list.lines() {
                state.compiled.insert(symbol.to_owned(), object.clone());
            }
        }
        Ok(Self {
            state: Mutex::new(state),
            released: Condvar::new(),
        })
    }

    /// Claims what is neither compiled nor being compiled. If there is nothing to claim, waits for
    /// what others compile.
    pub(super) fn claim<'k>(&self, kernels: &[Named<'k>]) -> Next<'_, 'k> {
        let mut state = self.lock();
        loop {
            for kernel in kernels {
                if let Some(refusal) = state.refused.get(kernel.0) {
                    return Next::Refused(*kernel, refusal.outcome, refusal.message.clone());
                }
            }
            let missing = kernels.iter().copied();
            let missing = missing.filter(|kernel| !state.compiled.contains_key(kernel.0));
            let (others, free): (Vec<Named<'k>>, Vec<Named<'k>>) =
                missing.partition(|kernel| state.claimed.contains(kernel.0));
            if !free.is_empty() {
                let symbols: Vec<String> = free.iter().map(|kernel| kernel.0.to_owned()).collect();
                state.claimed.extend(symbols.iter().cloned());
                let claim = Claim {
                    objects: self,
                    symbols,
                };
                return Next::Compile(free, claim);
            }
            if others.is_empty() {
                return Next::Nothing;
            }
            let waited = self.released.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes note of an object.
    pub(super) fn add(&self, kernels: &[Named<'_>], object: &Path) {
        let mut state = self.lock();
        for (symbol, _) in kernels {
            let symbol = (*symbol).to_owned();
            state.compiled.insert(symbol, object.to_owned());
        }
    }

    /// Takes note of a kernel that rustc refused.
    pub(super) fn refuse(&self, symbol: &str, refusal: Refusal) {
        self.lock().refused.insert(symbol.to_owned(), refusal);
    }

    /// Returns the objects that define kernels.
    fn of<'s>(&self, symbols: impl Iterator<Item = &'s String>) -> BTreeSet<PathBuf> {
        let state = self.lock();
        symbols
            .filter_map(|symbol| state.compiled.get(symbol).cloned())
            .collect()
    }

    /// Returns the objects that define kernels under names of their own in the directory of a call:
    /// whoever [makes room](super::room) leaves them alone as long as they are there. `None` if
    /// some are gone, whose kernels are to be compiled again.
    pub(super) fn pin<'s>(
        &self,
        symbols: impl Iterator<Item = &'s String>,
        call: &CallDir,
    ) -> Result<Option<Vec<PathBuf>>, BuildError> {
        let mut pinned = Vec::new();
        let mut is_complete = true;
        for object in self.of(symbols) {
            let name = object.file_name().unwrap_or_default().to_string_lossy();
            let pin = call.file(&name);
            match fsx::hard_link(&object, &pin) {
                Ok(()) => {
                    // Only the order of removal depends on it.
                    let _ = fsx::touch(&pin);
                    pinned.push(pin);
                }
                Err(error) if error.kind == FsErrorKind::NotFound => {
                    self.lock().compiled.retain(|_, known| *known != object);
                    is_complete = false;
                }
                Err(error) if error.kind == FsErrorKind::DiskFull => return Err(error.into()),
                // Pinned before, or on a file system without such links.
                Err(_) => pinned.push(object),
            }
        }
        Ok(is_complete.then_some(pinned))
    }

    /// A thread that panicked while it held the lock left the state as it was.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut state = self.objects.lock();
        for symbol in &self.symbols {
            state.claimed.remove(symbol);
        }
        drop(state);
        self.objects.released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::backend::native::program::KernelSource;
    use crate::digest::Digest;

    fn kernel() -> KernelSource {
        KernelSource {
            digest: Digest::of_bytes("test", b"kernel"),
            source: String::new(),
            parameters: Vec::new(),
            subgraph: None,
        }
    }

    #[test]
    fn what_another_build_compiles_is_waited_for() {
        let (objects, kernel) = (Objects::default(), kernel());
        let Next::Compile(mine, claim) = objects.claim(&[("a", &kernel)]) else {
            panic!("`a` is free");
        };
        assert_eq!(mine.len(), 1);
        let is_added = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let both = [("a", &kernel), ("b", &kernel)];
                let Next::Compile(free, claim) = objects.claim(&both) else {
                    panic!("`b` is free");
                };
                assert_eq!(free[0].0, "b");
                objects.add(&free, Path::new("b.o"));
                drop(claim);
                assert!(matches!(objects.claim(&both), Next::Nothing));
                assert!(is_added.load(Ordering::SeqCst), "it did not wait");
            });
            std::thread::sleep(Duration::from_millis(50));
            is_added.store(true, Ordering::SeqCst);
            objects.add(&mine, Path::new("a.o"));
            drop(claim);
            other.join().unwrap();
        });
        let symbols = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
        assert_eq!(objects.of(symbols.iter()).len(), 2);
    }

    #[test]
    fn a_claim_that_came_to_nothing_is_free_again_and_a_refused_kernel_is_not() {
        let (objects, kernel) = (Objects::default(), kernel());
        drop(objects.claim(&[("a", &kernel)]));
        assert!(matches!(
            objects.claim(&[("a", &kernel)]),
            Next::Compile(..)
        ));
        let limit = Duration::from_secs(1);
        objects.refuse("a", Refusal::new("a", Outcome::CompileError, "no", limit));
        let next = objects.claim(&[("a", &kernel)]);
        assert!(
            matches!(next, Next::Refused(("a", _), Outcome::CompileError, text) if text == "no")
        );
    }

    #[test]
    fn an_object_that_is_gone_is_compiled_again() {
        let dir = tempfile::tempdir().unwrap();
        let (objects, kernel) = (Objects::default(), kernel());
        let path = |name: &str| dir.path().join(name);
        for name in ["a", "b"] {
            fsx::write_scratch(&path(name), b"").unwrap();
            objects.add(&[(name, &kernel)], &path(name));
        }
        let symbols = ["a".to_owned(), "b".to_owned()];
        let call = CallDir::new(dir.path(), "abc-1-1").unwrap();
        let pinned = objects.pin(symbols.iter(), &call).unwrap().unwrap();
        assert_eq!(pinned, [call.file("a"), call.file("b")]);
        let again = CallDir::new(dir.path(), "abc-1-2").unwrap();
        fsx::remove_file(&path("b")).unwrap();
        assert_eq!(objects.pin(symbols.iter(), &again).unwrap(), None);
        let missing = objects.claim(&[("a", &kernel), ("b", &kernel)]);
        assert!(matches!(missing, Next::Compile(missing, _) if missing[0].0 == "b"));
    }

    #[test]
    fn an_object_without_a_list_or_with_kernels_of_another_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in [
            ("1.o", ""),
            ("1.list", "a\nb"),
            ("2.o", ""),
            ("2.list", "b\nc"),
            ("3.list", "d"),
            ("4.o", ""),
        ] {
            fsx::write_scratch(&dir.path().join(name), content.as_bytes()).unwrap();
        }
        let objects = Objects::read(dir.path(), Duration::from_secs(1)).unwrap();
        let symbols = ["a", "b", "c", "d"].map(str::to_owned);
        let known: Vec<PathBuf> = objects.of(symbols.iter()).into_iter().collect();
        assert_eq!(known, [dir.path().join("1.o")]);
    }
}
