//! Compiling what is new and linking the rest.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::batch::{self, Named};
use super::leftovers::{self, CallDir};
use super::objects::{Next, Objects};
use super::process::{self, End};
use super::refused::Refusal;
use super::{Packed, Toolchain, room};
use crate::backend::native::program::Program;
use crate::backend::{Artifact, Failure};
use crate::digest::{Digest, Encoder};
use crate::fsx::{self, FsError};
use crate::label::Outcome;

/// Builds programs in a directory of its own.
#[derive(Debug)]
pub struct Builder {
    toolchain: Toolchain,
    dir: PathBuf,
    pub(super) opt_level: u8,
    /// Longest time that one rustc call may take.
    timeout: Duration,
    objects: Objects,
    sequence: AtomicU64,
    /// How often all calls under way were abandoned.
    n_abandoned: AtomicU64,
}

/// How often kernels are compiled whose objects others remove before they are linked.
const MAX_ROUNDS: usize = 4;

/// Something other than the candidate is wrong: the directory, the disk, the compiler itself.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Files cannot be written or read.
    #[error(transparent)]
    Files(#[from] FsError),
    /// The compiler cannot be started.
    #[error("cannot run the Rust compiler `{}`", rustc.display())]
    Spawn {
        /// The executable.
        rustc: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl Builder {
    /// Opens a build directory; objects of the same compiler and level are used again, and what
    /// killed processes left behind is removed.
    ///
    /// # Errors
    /// [`BuildError::Files`] if the directory cannot be made or read.
    pub fn open(
        toolchain: Toolchain,
        dir: &Path,
        opt_level: u8,
        timeout: Duration,
    ) -> Result<Self, BuildError> {
        let mut encoder = Encoder::new("metainfer objects v2");
        encoder.str(&toolchain.version);
        encoder.str(&toolchain.host);
        encoder.u64(opt_level.into());
        let dir = dir.join(encoder.finish().short());
        fsx::create_dir_all(&dir)?;
        leftovers::remove(&dir);
        let objects = Objects::read(&dir, timeout)?;
        Ok(Self {
            toolchain,
            dir,
            opt_level,
            timeout,
            objects,
            sequence: AtomicU64::new(0),
            n_abandoned: AtomicU64::new(0),
        })
    }

    /// Compiles the kernels of a program that are not compiled yet, `jobs` calls at a time.
    ///
    /// # Errors
    /// The outer error stops everything; the inner one blames a candidate.
    pub fn compile(
        &self,
        program: &Program,
        jobs: usize,
    ) -> Result<Result<(), Failure>, BuildError> {
        let kernels = program.kernels.iter();
        let kernels: Vec<Named<'_>> = kernels
            .map(|(symbol, kernel)| (symbol.as_str(), kernel))
            .collect();
        loop {
            let (missing, _claim) = match self.objects.claim(&kernels) {
                Next::Nothing => return Ok(Ok(())),
                Next::Refused((_, kernel), outcome, message) => {
                    return Ok(Err(Failure {
                        subgraph: kernel.subgraph,
                        outcome,
                        message,
                    }));
                }
                Next::Compile(missing, claim) => (missing, claim),
            };
            if let Err(failure) = self.batches(missing, jobs)? {
                return Ok(Err(failure));
            }
        }
    }

    /// Compiles the kernels of a program that are not compiled yet, `jobs` calls at a time, and
    /// links them.
    ///
    /// # Errors
    /// The outer error stops everything; the inner one blames a candidate, or is a linker that
    /// refused.
    pub fn build(
        &self,
        packed: Packed,
        jobs: usize,
    ) -> Result<Result<Artifact, Failure>, BuildError> {
        for _ in 0..MAX_ROUNDS {
            if let Err(failure) = self.compile(&packed.program, jobs)? {
                return Ok(Err(failure));
            }
            let call = CallDir::new(&self.dir, &self.stem(packed.digest))?;
            let symbols = packed.program.kernels.keys();
            if let Some(objects) = self.objects.pin(symbols, &call)? {
                return self.link(packed, &call, &objects);
            }
        }
        let message = "objects are removed as soon as they are compiled".to_owned();
        Ok(Err(Failure {
            subgraph: None,
            outcome: Outcome::DeviceLost,
            message,
        }))
    }

    /// Removes objects of all builders of a workspace, those first that were not used for the
    /// longest time, until they take `max_bytes` at most or are in use; returns what they take.
    pub fn make_room(&self, max_bytes: u64) -> u64 {
        self.dir
            .parent()
            .map_or(0, |root| room::make(root, max_bytes))
    }

    /// Ends the calls of the compiler that are under way; builds fail of it, and no kernel is to
    /// blame. Later calls are not affected.
    pub fn abandon(&self) {
        self.n_abandoned.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes the files of an artifact that is not needed any more.
    ///
    /// # Errors
    /// [`BuildError::Files`] if they cannot be removed.
    pub fn discard(artifact: &Artifact) -> Result<(), BuildError> {
        fsx::remove_file(&artifact.library)?;
        fsx::remove_file(&artifact.weights)?;
        Ok(())
    }

    /// Compiles kernels in `jobs` batches at once.
    fn batches(
        &self,
        kernels: Vec<Named<'_>>,
        jobs: usize,
    ) -> Result<Result<(), Failure>, BuildError> {
        let batches = batch::split(kernels, jobs);
        let results: Vec<Result<Result<(), Failure>, BuildError>> = std::thread::scope(|scope| {
            let threads: Vec<_> = batches
                .iter()
                .map(|batch| scope.spawn(|| self.batch(batch)))
                .collect();
            threads
                .into_iter()
                .map(|thread| {
                    thread
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect()
        });
        for result in results {
            if let Err(failure) = result? {
                return Ok(Err(failure));
            }
        }
        Ok(Ok(()))
    }

    /// Compiles a batch; if it fails, each kernel alone, to find the one to blame.
    fn batch(&self, kernels: &[Named<'_>]) -> Result<Result<(), Failure>, BuildError> {
        let Err((outcome, message)) = self.object(kernels)? else {
            return Ok(Ok(()));
        };
        if !outcome.is_final() {
            return Ok(Err(Failure {
                subgraph: None,
                outcome,
                message,
            }));
        }
        if let [(symbol, kernel)] = kernels {
            let refusal = Refusal::new(symbol, outcome, &message, self.timeout);
            let call = CallDir::new(&self.dir, &self.stem(kernel.digest))?;
            refusal.write(&self.dir, &call)?;
            self.objects.refuse(symbol, refusal);
            return Ok(Err(Failure {
                subgraph: kernel.subgraph,
                outcome,
                message,
            }));
        }
        for kernel in kernels {
            if let Err(failure) = self.batch(std::slice::from_ref(kernel))? {
                return Ok(Err(failure));
            }
        }
        Ok(Ok(()))
    }

    /// Compiles kernels to one object.
    fn object(&self, kernels: &[Named<'_>]) -> Result<Result<(), (Outcome, String)>, BuildError> {
        let digest: Digest = batch::digest(kernels);
        let call = CallDir::new(&self.dir, &self.stem(digest))?;
        let (source, unfinished) = (call.file("program.rs"), call.file("program.o"));
        fsx::write_scratch(&source, batch::source(kernels).as_bytes())?;
        let mut command = self.rustc("rlib", &call);
        command
            .arg("--emit")
            .arg(format!("obj={}", unfinished.display()))
            .arg(&source);
        if let Err(refused) = self.run(command, &call)? {
            return Ok(Err(refused));
        }
        // The object gets its name before the list that makes it known.
        let object = self.path(&digest.short(), "o");
        fsx::rename(&unfinished, &object)?;
        let symbols: Vec<&str> = kernels.iter().map(|(symbol, _)| *symbol).collect();
        let list = call.file("list");
        fsx::write_scratch(&list, symbols.join("\n").as_bytes())?;
        fsx::rename(&list, &self.path(&digest.short(), "list"))?;
        self.objects.add(kernels, &object);
        Ok(Ok(()))
    }

    /// Prepares a call. It has a directory of its own, as calls run side by side and rustc names
    /// its temporary files after the crate.
    pub(super) fn rustc(&self, crate_type: &str, call: &CallDir) -> Command {
        let mut command = Command::new(&self.toolchain.rustc);
        command.args([
            "--edition",
            "2021",
            "--crate-name",
            "program",
            "--crate-type",
            crate_type,
        ]);
        command
            .arg("-C")
            .arg(format!("opt-level={}", self.opt_level));
        for option in [
            "codegen-units=1",
            "panic=abort",
            "debuginfo=0",
            "strip=debuginfo",
        ] {
            command.args(["-C", option]);
        }
        command
            .current_dir(call.path())
            .env("TMPDIR", call.path())
            .env_remove("RUSTFLAGS");
        command
    }

    pub(super) fn run(
        &self,
        command: Command,
        call: &CallDir,
    ) -> Result<Result<(), (Outcome, String)>, BuildError> {
        let n_abandoned = self.n_abandoned.load(Ordering::Relaxed);
        let is_abandoned = || self.n_abandoned.load(Ordering::Relaxed) != n_abandoned;
        let ended = process::run(command, &call.file("log"), self.timeout, &is_abandoned);
        let ended = ended.map_err(|source| BuildError::Spawn {
            rustc: self.toolchain.rustc.clone(),
            source,
        })?;
        if let Some(source) = ended.disk_error() {
            return Err(FsError::new("write to", &self.dir, source).into());
        }
        Ok(match ended.end {
            End::Status(status) if status.success() => Ok(()),
            _ if ended.was_stopped() => Err((Outcome::DeviceLost, "rustc was stopped".to_owned())),
            End::Status(_) | End::Abandoned => Err((Outcome::CompileError, ended.stderr)),
            End::TimedOut => Err((
                Outcome::CompileTimeout,
                format!("rustc did not end within {} s", self.timeout.as_secs()),
            )),
        })
    }

    /// Returns a stem that no other file has.
    pub(super) fn stem(&self, digest: Digest) -> String {
        let number = self.sequence.fetch_add(1, Ordering::Relaxed);
        leftovers::stem(&digest.short(), number)
    }

    pub(super) fn path(&self, stem: &str, extension: &str) -> PathBuf {
        self.dir.join(format!("{stem}.{extension}"))
    }
}
