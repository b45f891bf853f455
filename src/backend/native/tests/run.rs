//! Builds a program and calls it.
#![expect(unsafe_code, reason = "runs the built kernels")]

use std::path::PathBuf;
use std::time::Duration;

use crate::backend::Artifact;
use crate::backend::native::build::{Builder, Toolchain};
use crate::backend::native::program::Program;

type Steps = unsafe extern "C" fn(
    *const *const u8,
    *const *mut u8,
    *mut u8,
    *const u8,
    usize,
    usize,
    *mut u64,
);

type SharedSteps = unsafe extern "C" fn(
    *const *const u8,
    *const *mut u8,
    *mut u8,
    *const u8,
    usize,
    usize,
    *mut u64,
    usize,
    *mut Line,
);

/// Memory that threads share.
#[derive(Clone, Copy)]
struct Shared<T>(T);

// SAFETY: the threads of a program may use its memory at once.
unsafe impl<T> Send for Shared<T> {}

impl<T: Copy> Shared<T> {
    fn get(&self) -> T {
        self.0
    }
}

/// Memory aligned as an artifact asks for.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

const GUARD: Line = Line([0x5a; 64]);

/// Builds the program and runs it twice on the inputs; returns the outputs of both runs. The second
/// run finds the arena as the first left it. Guards around the arena and the outputs show writes
/// outside of them.
pub(super) fn build_and_run_twice(program: &Program, inputs: &[Vec<u8>]) -> [Vec<Vec<u8>>; 2] {
    let dir = tempfile::tempdir().unwrap();
    let toolchain = Toolchain::discover(&PathBuf::from("rustc")).unwrap();
    let builder = Builder::open(toolchain, dir.path(), 1, Duration::from_mins(5)).unwrap();
    let packed = builder.pack(program.clone()).unwrap();
    let artifact = builder.build(packed, 2).unwrap().unwrap();
    run_twice(program, &artifact, inputs)
}

/// Runs what was built of a program, see [`build_and_run_twice`].
pub(super) fn run_twice(
    program: &Program,
    artifact: &Artifact,
    inputs: &[Vec<u8>],
) -> [Vec<Vec<u8>>; 2] {
    crate::measure::worker::load_math_library();
    let n_lines = program.arena_bytes.div_ceil(64);
    let mut arena = vec![Line([0; 64]); n_lines + 2];
    arena[0] = GUARD;
    arena[n_lines + 1] = GUARD;
    for fill in &program.fills {
        for at in fill.offset..fill.offset + fill.len {
            arena[1 + at / 64].0[at % 64] = fill.byte;
        }
    }
    let weights = lines(&program.weights);
    let inputs: Vec<Vec<Line>> = inputs.iter().map(|bytes| lines(bytes)).collect();
    let inputs: Vec<*const u8> = inputs.iter().map(|lines| lines.as_ptr().cast()).collect();
    [(), ()].map(|()| {
        let mut outputs: Vec<Vec<Line>> = Vec::new();
        for output in &program.outputs {
            let n_bytes = output.shape.len() * output.dtype.bytes();
            outputs.push(vec![GUARD; n_bytes.div_ceil(64) + 1]);
        }
        let pointers: Vec<*mut u8> = outputs.iter_mut().map(|o| o.as_mut_ptr().cast()).collect();
        // SAFETY: the library was built from `program`; all buffers have the sizes it states.
        unsafe {
            let arena = arena.as_mut_ptr().add(1).cast();
            let (inputs, outputs) = (inputs.as_ptr(), pointers.as_ptr());
            call(
                program,
                artifact,
                inputs,
                outputs,
                arena,
                weights.as_ptr().cast(),
            );
        }
        let is_whole = |line: &Line| line.0 == GUARD.0;
        assert!(is_whole(&arena[0]), "wrote before the arena");
        assert!(is_whole(&arena[n_lines + 1]), "wrote beyond the arena");
        let outputs = program.outputs.iter().zip(outputs).map(|(io, lines)| {
            let n_bytes = io.shape.len() * io.dtype.bytes();
            let bytes: Vec<u8> = lines.iter().flat_map(|line| line.0).collect();
            assert!(
                bytes[n_bytes..].iter().all(|&b| b == 0x5a),
                "wrote beyond `{}`",
                io.name
            );
            bytes[..n_bytes].to_vec()
        });
        outputs.collect()
    })
}

/// Runs what was built of a program once, in buffers that begin or end at pages nobody may touch: a
/// read or write outside of them ends the process.
pub(super) fn run_fenced(
    program: &Program,
    artifact: &Artifact,
    inputs: &[Vec<u8>],
    at_end: bool,
) -> Vec<Vec<u8>> {
    let fence = |bytes: &[u8]| fenced(bytes, at_end);
    let inputs: Vec<*const u8> = inputs.iter().map(|b| fence(b).cast_const()).collect();
    let n_bytes = program.outputs.iter();
    let n_bytes = n_bytes.map(|io| io.shape.len() * io.dtype.bytes());
    let outputs: Vec<(*mut u8, usize)> = n_bytes.map(|n| (fence(&vec![0x5a; n]), n)).collect();
    let pointers: Vec<*mut u8> = outputs.iter().map(|output| output.0).collect();
    let (arena, weights) = (fence(&filled_arena(program)), fence(&program.weights));
    // SAFETY: the library was built from `program`; all buffers have the sizes it states.
    unsafe {
        call(
            program,
            artifact,
            inputs.as_ptr(),
            pointers.as_ptr(),
            arena,
            weights,
        );
        let read = |&(pointer, n): &(*mut u8, usize)| std::slice::from_raw_parts(pointer, n);
        outputs.iter().map(|output| read(output).to_vec()).collect()
    }
}

/// Runs all steps of a program once, on as many threads as it is for.
///
/// # Safety
/// The artifact was built of the program, and all memory is as large as that says.
unsafe fn call(
    program: &Program,
    artifact: &Artifact,
    inputs: *const *const u8,
    outputs: *const *mut u8,
    arena: *mut u8,
    weights: *const u8,
) {
    let (n_steps, times) = (program.steps.len(), std::ptr::null_mut());
    // SAFETY: as the caller says; the threads of a program may run it at once.
    unsafe {
        let library = libloading::Library::new(&artifact.library).unwrap();
        if program.threads == 1 {
            let steps = library.get::<Steps>(b"metainfer_steps").unwrap();
            steps(inputs, outputs, arena, weights, 0, n_steps, times);
            return;
        }
        let steps = library.get::<SharedSteps>(b"metainfer_steps").unwrap();
        // A barrier is two lines of zeros before anybody waits.
        let (steps, mut barrier) = (*steps, [Line([0; 64]); 2]);
        let barrier = barrier.as_mut_ptr();
        std::thread::scope(|scope| {
            for thread in 0..program.threads {
                let memory = Shared((inputs, outputs, arena, weights, times, barrier));
                scope.spawn(move || {
                    let (inputs, outputs, arena, weights, times, barrier) = memory.get();
                    steps(
                        inputs, outputs, arena, weights, 0, n_steps, times, thread, barrier,
                    );
                });
            }
        });
    }
}

/// Copies bytes to memory of their own between two pages that nobody may touch, right behind the
/// first or right before the second. It is never given back.
fn fenced(bytes: &[u8], at_end: bool) -> *mut u8 {
    const PAGE: usize = 1 << 16;
    let inner = bytes.len().next_multiple_of(PAGE).max(PAGE);
    // SAFETY: the mapping is new, and all that is written lies between its first and last page.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let (anywhere, none) = (std::ptr::null_mut(), libc::PROT_NONE);
        let whole = libc::mmap(anywhere, inner + 2 * PAGE, none, flags, -1, 0);
        assert_ne!(whole, libc::MAP_FAILED);
        let start = whole.byte_add(PAGE);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        assert_eq!(libc::mprotect(start, inner, access), 0);
        let skipped = if at_end { inner - bytes.len() } else { 0 };
        let copy = start.byte_add(skipped).cast::<u8>();
        copy.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        copy
    }
}

fn filled_arena(program: &Program) -> Vec<u8> {
    let mut arena = vec![0; program.arena_bytes];
    for fill in &program.fills {
        arena[fill.offset..][..fill.len].fill(fill.byte);
    }
    arena
}

fn lines(bytes: &[u8]) -> Vec<Line> {
    let chunks = bytes.chunks(64).map(|chunk| {
        let mut line = Line([0; 64]);
        line.0[..chunk.len()].copy_from_slice(chunk);
        line
    });
    // One more, as kernels may read padding.
    chunks.chain([Line([0; 64])]).collect()
}
