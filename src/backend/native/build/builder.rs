//! Compiling what is new and linking the rest.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::batch::{self, Named};
use super::leftovers::{self, CallDir};
use super::objects::{Next, Objects};
use super::process::{self, End};
use super::refused::Refusal;
use super::{Toolchain, entry};
use crate::backend::native::program::Program;
use crate::backend::{Artifact, Failure, StepSpec};
use crate::digest::{Digest, Encoder};
use crate::fsx::{self, FsError};
use crate::label::Outcome;

/// Builds programs in a directory of its own.
#[derive(Debug)]
pub struct Builder {
    toolchain: Toolchain,
    dir: PathBuf,
    opt_level: u8,
    /// Longest time that one rustc call may take.
    timeout: Duration,
    objects: Objects,
    sequence: AtomicU64,
    /// How often all calls under way were abandoned.
    n_abandoned: AtomicU64,
}

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

    /// Links a program whose kernels are compiled, and writes its weights.
    ///
    /// # Errors
    /// The outer error stops everything; the inner one is a linker that refused.
    pub fn link(&self, program: &Program) -> Result<Result<Artifact, Failure>, BuildError> {
        let started = Instant::now();
        let mut encoder = Encoder::new("metainfer artifact v1");
        encoder.digest(&program.digest());
        encoder.u64(self.opt_level.into());
        let digest = encoder.finish();
        let stem = self.stem(digest);
        let call = CallDir::new(&self.dir, &stem)?;
        let (source, unfinished) = (call.file("program.rs"), call.file("program.so"));
        fsx::write_scratch(&source, entry::source(program).as_bytes())?;
        let objects = self.objects.of(program.kernels.keys());
        let mut command = self.rustc("cdylib", &call);
        command.args(["-C", "linker=rust-lld", "-C", "linker-flavor=ld.lld"]);
        for object in &objects {
            command
                .arg("-C")
                .arg(format!("link-arg={}", object.display()));
        }
        command.arg(&source).arg("-o").arg(&unfinished);
        if let Err((outcome, message)) = self.run(command, &call)? {
            return Ok(Err(Failure {
                subgraph: None,
                outcome,
                message,
            }));
        }
        let (library, weights) = (self.path(&stem, "so"), self.path(&stem, "bin"));
        fsx::write_scratch(&weights, &program.weights)?;
        fsx::rename(&unfinished, &library)?;
        Ok(Ok(Artifact {
            digest,
            library,
            weights,
            arena_bytes: program.arena_bytes,
            threads: program.threads,
            fills: program.fills.clone(),
            inputs: program.inputs.clone(),
            outputs: program.outputs.clone(),
            resolutions: program.resolutions.clone(),
            steps: program.steps.iter().map(step_spec).collect(),
            compile_ns: started.elapsed().as_nanos() as u64,
        }))
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
    fn rustc(&self, crate_type: &str, call: &CallDir) -> Command {
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

    fn run(
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
    fn stem(&self, digest: Digest) -> String {
        let number = self.sequence.fetch_add(1, Ordering::Relaxed);
        leftovers::stem(&digest.short(), number)
    }

    fn path(&self, stem: &str, extension: &str) -> PathBuf {
        self.dir.join(format!("{stem}.{extension}"))
    }
}

fn step_spec(step: &crate::backend::native::program::Step) -> StepSpec {
    StepSpec {
        name: step.name.clone(),
        subgraph: step.subgraph,
        conversion: step.conversion.clone(),
        traces: step.traces.clone(),
    }
}
