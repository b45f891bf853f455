//! Crates are really built and called, from Rust and from C.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use super::*;
use crate::backend::{Backend, HUGE_PAGES_FROM, IoSpec, native};
use crate::device::Isa;
use crate::fsx;
use crate::graph::{
    Attribute, DType, Graph, Node, Shape, Tensor, TensorData, Value, ValueId, canonicalize,
    partition,
};
use crate::space::{Candidate, Mapping};

/// `sum = left + right + weights`, by way of the arena; counts its runs in `runs`, which shows that
/// the arena is zeroed once and kept.
const SOURCE: &str = "
use core::ffi::c_void;

pub(crate) unsafe fn run(
    inputs: *const *const c_void,
    outputs: *const *mut c_void,
    arena: *mut f32,
    weights: *const f32,
) {
    unsafe {
        assert!(arena as usize % 64 == 0 && weights as usize % 64 == 0);
        let left = (*inputs).cast::<f32>();
        let right = (*inputs.add(1)).cast::<i64>();
        let sum = (*outputs).cast::<f32>();
        let runs = (*outputs.add(1)).cast::<i32>();
        for i in 0..4 {
            *arena.add(i) = *left.add(i) + *right.add(i) as f32;
        }
        for i in 0..4 {
            *sum.add(i) = *arena.add(i) + *weights.add(i);
        }
        *arena.add(4) += 1.0;
        *runs = *arena.add(4) as i32;
    }
}
";

const C_PROGRAM: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include "add_two.h"

static void explain(int code) {
    printf("%d %s\n", code, metainfer_last_error());
}

int main(void) {
    float left[ADD_TWO_INPUT_LEFT_LEN] = {1, 2, 3, 4};
    int64_t right[ADD_TWO_INPUT_RIGHT_SIDE_LEN] = {10, 20, 30, 40};
    float sum[ADD_TWO_OUTPUT_SUM_LEN];
    int32_t runs[ADD_TWO_OUTPUT_RUNS_LEN];
    const void *inputs[] = {left, right};
    void *outputs[] = {sum, runs};
    metainfer_model *model = metainfer_create();
    if (!model) {
        puts(metainfer_last_error());
        return 1;
    }
    puts(metainfer_describe());
    for (int i = 0; i < 2; i++) {
        int code = metainfer_run(model, inputs, outputs);
        printf("%d: %g %g %g %g, run %d\n", code, sum[0], sum[1], sum[2], sum[3], runs[0]);
    }
    explain(metainfer_run(NULL, inputs, outputs));
    explain(metainfer_run(model, NULL, outputs));
    outputs[1] = NULL;
    explain(metainfer_run(model, inputs, outputs));
    outputs[1] = (char *)runs + 1;
    explain(metainfer_run(model, inputs, outputs));
    metainfer_destroy(NULL);
    metainfer_destroy(model);
    return 0;
}
"#;

const C_OUTPUT: &str = r#"{"model":"add.two","target":"cpu","isa":"portable","features":[],"inputs":[{"name":"left","dtype":"f32","shape":[2,2]},{"name":"right/side","dtype":"i64","shape":[4]}],"outputs":[{"name":"sum","dtype":"f32","shape":[1,4]},{"name":"runs","dtype":"i32","shape":[]}]}
0: 11.5 22.5 33.5 44.5, run 1
0: 11.5 22.5 33.5 44.5, run 2
1 the model is null
2 the array of inputs or of outputs is null
2 an input or output is null
3 an input or output is not aligned to its elements
"#;

const RUST_PROGRAM: &str = r#"
use add_two::{Error, INPUTS, Inputs, Model, Outputs};

fn main() -> Result<(), Error> {
    let mut model = Model::new()?;
    let mut other = Model::new()?;
    let (mut sum, mut runs) = ([0.0; 4], [0]);
    let inputs = Inputs { left: &[1.0, 2.0, 3.0, 4.0], right_side: &[1; 4] };
    model.run(&inputs, &mut Outputs { sum: &mut sum, runs: &mut runs })?;
    model.run(&inputs, &mut Outputs { sum: &mut sum, runs: &mut runs })?;
    println!("{sum:?} {runs:?}");
    std::thread::spawn(move || {
        let (mut sum, mut runs) = ([0.0; 4], [0]);
        let inputs = Inputs { left: &[0.0; 4], right_side: &[0; 4] };
        other.run(&inputs, &mut Outputs { sum: &mut sum, runs: &mut runs }).unwrap();
        println!("{sum:?} {runs:?}");
    })
    .join()
    .unwrap();
    let short = Inputs { left: &[1.0], ..inputs };
    let error = model.run(&short, &mut Outputs { sum: &mut sum, runs: &mut runs }).unwrap_err();
    println!("{error}");
    let error = model.run(&inputs, &mut Outputs { sum: &mut sum, runs: &mut [] }).unwrap_err();
    println!("{error}");
    println!("{:?} {}", INPUTS[0], INPUTS[0].len());
    Ok(())
}
"#;

const RUST_OUTPUT: &str = r#"[2.5, 3.5, 4.5, 5.5] [2]
[0.5, 0.5, 0.5, 0.5] [1]
`left` needs 4 elements, the buffer has 1
`runs` needs 1 elements, the buffer has 0
Tensor { name: "left", dtype: "f32", shape: [2, 2] } 4
"#;

/// [`SOURCE`] on several threads, the first sum divided among them, as often as it takes to find out
/// whether they wait for each other.
const SHARED_SOURCE: &str = "
use core::ffi::c_void;

pub(crate) unsafe fn run(
    inputs: *const *const c_void,
    outputs: *const *mut c_void,
    arena: *mut f32,
    weights: *const f32,
    thread: usize,
    barrier: &crate::barrier::Barrier,
) {
    unsafe {
        let left = (*inputs).cast::<f32>();
        let right = (*inputs.add(1)).cast::<i64>();
        let sum = (*outputs).cast::<f32>();
        let runs = (*outputs.add(1)).cast::<i32>();
        for _ in 0..100 {
            for i in 4 * thread / 3..4 * (thread + 1) / 3 {
                *arena.add(i) = *left.add(i) + *right.add(i) as f32;
            }
            barrier.wait(3, std::thread::yield_now);
            if thread == 0 {
                for i in 0..4 {
                    *sum.add(i) = *arena.add(i) + *weights.add(i);
                    *arena.add(i) = f32::NAN;
                }
            }
            barrier.wait(3, std::thread::yield_now);
        }
        if thread == 0 {
            *arena.add(4) += 1.0;
            *runs = *arena.add(4) as i32;
        }
    }
}
";

const THREADS_PROGRAM: &str = r#"
fn n_threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(1, |tasks| tasks.count())
}

fn main() {
    match add_two::Model::new() {
        Ok(model) => {
            let during = n_threads();
            drop(model);
            println!("{during} {}", n_threads());
        }
        Err(error) => println!("{error}"),
    }
}
"#;

fn spec(name: &str, dtype: DType, shape: impl Into<Shape>) -> IoSpec {
    IoSpec {
        name: name.to_owned(),
        dtype,
        shape: shape.into(),
    }
}

fn program() -> Program {
    Program {
        model: "add.two".to_owned(),
        target: "cpu".to_owned(),
        source: SOURCE.to_owned(),
        isa: Isa::Portable,
        features: Vec::new(),
        opt_level: "s".to_owned(),
        threads: 1,
        arena_bytes: 20,
        fills: Vec::new(),
        weights: [0.5f32; 4].iter().flat_map(|w| w.to_le_bytes()).collect(),
        inputs: vec![
            spec("left", DType::F32, [2, 2]),
            spec("right/side", DType::I64, [4]),
        ],
        outputs: vec![
            spec("sum", DType::F32, [1, 4]),
            spec("runs", DType::I32, []),
        ],
    }
}

fn exported(program: &Program) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("deployed");
    export(program, &out).unwrap();
    (directory, out)
}

fn write(path: &Path, text: &str) {
    fsx::create_dir_all(path.parent().unwrap()).unwrap();
    fsx::write_scratch(path, text.as_bytes()).unwrap();
}

#[track_caller]
fn run(command: &mut Command) -> Output {
    // Variables that cargo sets for this test must not reach the cargo that it starts.
    let output = command.env_remove("CARGO_TARGET_DIR").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {stderr}");
    output
}

#[track_caller]
fn cargo(verb: &str, directory: &Path) -> Output {
    let mut command = Command::new(env!("CARGO"));
    run(command
        .args([verb, "--quiet", "--offline"])
        .current_dir(directory))
}

#[test]
fn c_program_links_and_gets_error_codes() {
    let (_directory, out) = exported(&program());
    check_from_c(&out);
}

/// Builds a crate for C, and a program that uses it.
#[track_caller]
fn check_from_c(out: &Path) {
    let mut command = Command::new(env!("CARGO"));
    run(command
        .args(["build", "--quiet", "--offline", "--release"])
        .current_dir(out));
    write(&out.join("main.c"), C_PROGRAM);
    let library = out.join("target/release");
    run(Command::new("cc")
        .args([
            "-std=c99", "-Wall", "-Wextra", "-Werror", "main.c", "-o", "main",
        ])
        .args(["-Iinclude", "-Ltarget/release", "-ladd_two"])
        .current_dir(out));
    let output = run(Command::new("./main")
        .current_dir(out)
        .env("LD_LIBRARY_PATH", &library)
        .env("DYLD_LIBRARY_PATH", &library));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), C_OUTPUT);
}

#[test]
fn rust_program_uses_it_as_a_dependency_without_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let app = directory.path();
    let manifest = "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
                    [workspace]\n[dependencies]\nadd-two = { path = \"deployed\" }\n";
    write(&app.join("Cargo.toml"), manifest);
    write(&app.join("src/main.rs"), RUST_PROGRAM);
    export(&program(), &app.join("deployed")).unwrap();
    let output = cargo("run", app);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), RUST_OUTPUT);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn crate_passes_the_checks_of_a_strict_workspace() {
    let (_directory, out) = exported(&program());
    check_strictly(&out);
}

#[test]
fn a_large_arena_asks_for_huge_pages_and_a_small_one_does_not() {
    let (_directory, out) = exported(&program());
    let library = |out: &Path| fsx::read_to_string(&out.join("src/lib.rs")).unwrap();
    assert!(!library(&out).contains("madvise"));
    let large = Program {
        arena_bytes: HUGE_PAGES_FROM + 20,
        ..program()
    };
    let (_directory, out) = exported(&large);
    assert!(library(&out).contains("madvise"));
    check_strictly(&out);
    check_from_c(&out);
}

/// Runs compiler, documentation and lints with warnings as errors.
#[track_caller]
fn check_strictly(out: &Path) {
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.args(arguments).current_dir(out);
        command.env("RUSTFLAGS", "-Dwarnings");
        command.env("RUSTDOCFLAGS", "-Dwarnings");
        command
    };
    run(&mut cargo(&["check", "--quiet", "--offline"]));
    run(&mut cargo(&["doc", "--quiet", "--offline"]));
    // Formatting and clippy are components that a toolchain may lack.
    for arguments in [&["fmt", "--check"][..], &["clippy", "--", "-Dwarnings"]] {
        let version = cargo(&[arguments[0], "--version"]).output().unwrap();
        if version.status.success() {
            run(&mut cargo(arguments));
        }
    }
}

#[test]
fn a_program_of_several_threads_gives_the_same_in_both_languages_and_ends_its_threads() {
    let shared = Program {
        source: SHARED_SOURCE.to_owned(),
        threads: 3,
        ..program()
    };
    let (_directory, out) = exported(&shared);
    check_from_c(&out);
    write(&out.join("examples/main.rs"), RUST_PROGRAM);
    write(&out.join("examples/threads.rs"), THREADS_PROGRAM);
    let example = |name: &str| {
        let mut command = Command::new(env!("CARGO"));
        command.args(["run", "--quiet", "--offline", "--example", name]);
        command.current_dir(&out);
        command
    };
    let output = run(&mut example("main"));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), RUST_OUTPUT);
    let output = run(&mut example("threads"));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "3 1\n");
    // Stacks that no address space holds: the system starts no thread.
    let mut again = Command::new(out.join("target/debug/examples/threads"));
    let output = run(again.env("RUST_MIN_STACK", "70368744177664"));
    let message = String::from_utf8(output.stdout).unwrap();
    let expected = "cannot start a thread for model `add.two`: ";
    assert!(message.starts_with(expected), "{message}");
    check_strictly(&out);

    // Nothing of it is left when the model has one thread again.
    export(&program(), &out).unwrap();
    for file in ["src/barrier.rs", "src/pool.rs"] {
        assert!(!out.join(file).exists(), "{file}");
    }
    check_strictly(&out);
}

#[test]
fn two_models_link_into_one_program_without_the_c_interface() {
    let directory = tempfile::tempdir().unwrap();
    let app = directory.path();
    let manifest = "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
                    [workspace]\n[dependencies]\n\
                    one = { path = \"one\", default-features = false }\n\
                    two = { path = \"two\", default-features = false }\n\
                    [profile.dev]\ncodegen-units = 1\n";
    write(&app.join("Cargo.toml"), manifest);
    let main = "fn main() { assert!(one::Model::new().is_ok() && two::Model::new().is_ok()); }";
    write(&app.join("src/main.rs"), main);
    for name in ["one", "two"] {
        let model = name.to_owned();
        export(&Program { model, ..program() }, &app.join(name)).unwrap();
    }
    cargo("run", app);
}

#[test]
fn docs_example_runs_and_awkward_names_survive() {
    let awkward = Program {
        model: "*/ \"fn\"\n`".to_owned(),
        target: "cpu */".to_owned(),
        inputs: vec![
            spec("type", DType::F32, [2, 2]),
            spec("*/\n", DType::I64, [4]),
        ],
        outputs: vec![
            spec("self", DType::F32, [1, 4]),
            spec("\"\0é", DType::I32, []),
        ],
        ..program()
    };
    let (_directory, out) = exported(&awkward);
    let output = cargo("test", &out);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("1 passed"), "{stdout}");
    run(Command::new("cc")
        .args(["-fsyntax-only", "-xc", "include/fn_model.h"])
        .current_dir(&out));
}

#[test]
fn missing_features_are_named() {
    // No x86 processor has all of these.
    let features = ["sse2", "sse4a", "avx512vp2intersect", "tbm"];
    let impossible = Program {
        isa: Isa::X86V4,
        features: features.map(str::to_owned).to_vec(),
        ..program()
    };
    let (_directory, out) = exported(&impossible);
    let main = "fn main() { println!(\"{}\", add_two::Model::new().err().unwrap()); }";
    write(&out.join("examples/main.rs"), main);
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--offline", "--example", "main"]);
    if cfg!(target_arch = "x86_64") {
        let output = run(command.current_dir(&out));
        let message = String::from_utf8(output.stdout).unwrap();
        let expected = "model `add.two` was made for x86-64-v4, but this processor has no ";
        assert!(message.starts_with(expected), "{message}");
        assert!(
            message.contains("tbm") && !message.contains("sse2"),
            "{message}"
        );
    }
}

#[test]
fn export_changes_nothing_the_second_time() {
    let (_directory, out) = exported(&program());
    assert_eq!(export(&program(), &out).unwrap().n_changed, 0);
    let other = Program {
        model: "other".to_owned(),
        ..program()
    };
    let exported = export(&other, &out).unwrap();
    assert_eq!(exported.package, "other");
    assert!(out.join("include/other.h").exists() && !out.join("include/add_two.h").exists());
}

#[test]
fn export_refuses_a_directory_of_somebody_else() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path();
    for name in ["notes.txt", "Cargo.toml"] {
        write(&out.join(name), "mine");
        let error = export(&program(), out).unwrap_err();
        assert!(
            matches!(&error, DeployError::Occupied(path) if path == out),
            "{error}"
        );
        assert_eq!(fs::read_to_string(out.join(name)).unwrap(), "mine");
        fs::remove_file(out.join(name)).unwrap();
    }
    assert!(export(&program(), out).is_ok());
}

#[test]
fn profile_is_in_the_manifest_of_a_crate_on_its_own_only() {
    let manifest = |placement| {
        let files = render(&program(), placement).unwrap();
        let manifest = files.into_iter().find(|file| file.path == "Cargo.toml");
        String::from_utf8(manifest.unwrap().bytes).unwrap()
    };
    assert!(manifest(Placement::Standalone).contains("[profile.release]\nopt-level = \"s\"\n"));
    assert!(!manifest(Placement::Member).contains("profile"));
}

#[test]
fn tensor_that_no_memory_holds_is_an_error() {
    let huge = Program {
        inputs: vec![spec("x", DType::F32, [usize::MAX, 2])],
        ..program()
    };
    let error = render(&huge, Placement::Standalone).unwrap_err();
    assert_eq!(
        error.to_string(),
        "value `x` has more elements than memory can hold"
    );
}

const NATIVE_PROGRAM: &str = r#"
use scale::{Inputs, Model, Outputs};

fn main() {
    let x: Vec<f32> = (0..1024).map(|i| i as f32 - 500.0).collect();
    let mut y = vec![0.0; x.len()];
    let mut model = Model::new().unwrap();
    for _ in 0..2 {
        model.run(&Inputs { x: &x }, &mut Outputs { y: &mut y }).unwrap();
        let expected = x.iter().map(|x| (2.0 * x + 1.0).max(0.0));
        assert!(y.iter().copied().eq(expected), "{y:?}");
    }
}
"#;

/// Returns `relu(2·x + 1)` as a 1×1 convolution of 16 channels.
fn scale_graph() -> Graph {
    let value = |name: &str, data: Option<Tensor>, shape: &[usize]| Value {
        name: name.to_owned(),
        dtype: DType::F32,
        shape: Shape(shape.to_vec()),
        data: data.map(Arc::new),
    };
    let constant = |name, data: Vec<f32>, shape: &[usize]| {
        let tensor = Tensor::new(Shape(shape.to_vec()), TensorData::F32(data));
        value(name, Some(tensor.unwrap()), shape)
    };
    let weights = (0..16 * 16).map(|idx| if idx % 17 == 0 { 2.0 } else { 0.0 });
    let node = |op: &str, inputs: &[usize], output| Node {
        name: String::new(),
        op: op.to_owned(),
        domain: String::new(),
        attributes: BTreeMap::new(),
        inputs: inputs.iter().map(|&id| Some(ValueId(id))).collect(),
        outputs: vec![Some(ValueId(output))],
    };
    Graph {
        name: "scale".to_owned(),
        opset: 17,
        values: vec![
            value("x", None, &[1, 16, 8, 8]),
            constant("w", weights.collect(), &[16, 16, 1, 1]),
            constant("b", vec![1.0; 16], &[16]),
            value("conv", None, &[1, 16, 8, 8]),
            value("y", None, &[1, 16, 8, 8]),
        ],
        nodes: vec![node("Conv", &[0, 1, 2], 3), node("Relu", &[3], 4)],
        inputs: vec![ValueId(0)],
        outputs: vec![ValueId(4)],
    }
}

#[test]
fn native_program_gives_the_numbers_of_the_model_on_each_instruction_set() {
    let graph = scale_graph();
    let operations = native::lower::lower(&graph, &partition(&graph)).unwrap();
    let renderer = native::render::Renderer::new(&BTreeMap::new()).unwrap();
    let host = crate::device::probe::host().isa;
    for isa in Isa::ALL.into_iter().filter(|&isa| host.runs(isa)) {
        let ctx = native::kernels::KernelCtx {
            renderer: &renderer,
            isa,
            share: native::kernels::Share::Whole,
        };
        let lanes = native::isa::widest(isa).lanes as i64;
        let mapping = [
            ("lanes", lanes),
            ("oc_vectors", 1),
            ("tile_w", 4),
            ("tile_h", 1),
        ]
        .into_iter()
        .chain([("ic_block", 0), ("unroll", 1)])
        .fold(Mapping::default(), |mapping, (name, value)| {
            mapping.with(name, value)
        });
        let mapping = [
            ("layout_in", "nhwc"),
            ("layout_out", "nhwc"),
            ("order", "oc"),
        ]
        .into_iter()
        .chain([("taps", "loop"), ("padding", "edge"), ("scale", "input")])
        .fold(mapping, |mapping, (name, value)| mapping.with(name, value));
        let candidate = Candidate {
            mapping,
            ..Candidate::default()
        };
        let choice = native::program::Choice(std::slice::from_ref(&candidate));
        let program = native::program::assemble(ctx, &graph, &operations, &choice).unwrap();
        let (_directory, out) = exported(&Program::from_native("scale", "cpu", "3", &program));
        write(&out.join("examples/main.rs"), NATIVE_PROGRAM);
        let mut command = Command::new(env!("CARGO"));
        command.args(["run", "--quiet", "--offline", "--example", "main"]);
        run(command.current_dir(&out));
    }
}

const BORDERS_PROGRAM: &str = r"
use borders::{Inputs, Model, Outputs};

fn main() {
    let x: Vec<f32> = (0..1024).map(|i| (i * 37 % 256) as f32 - 100.0).collect();
    let at = |c: usize, h: usize, w: usize| {
        let row = (1..=8).contains(&h).then(|| c * 64 + (h - 1) * 8);
        row.filter(|_| (1..=8).contains(&w)).map_or(0.0, |row| x[row + w - 1])
    };
    let mut expected = Vec::new();
    for c in 0..16 {
        for (h, w) in (0..64).map(|i| (i / 8, i % 8)) {
            let taps = (0..9).map(|tap| at(c, h + tap / 3, w + tap % 3));
            expected.push(taps.sum::<f32>() * 2.0);
        }
    }
    let mut y = vec![0.0; x.len()];
    let mut model = Model::new().unwrap();
    for _ in 0..2 {
        model.run(&Inputs { x: &x }, &mut Outputs { y: &mut y }).unwrap();
        assert_eq!(y, expected);
    }
}
";

/// Returns a convolution of bytes around 100 that doubles the sum of nine pixels of a channel.
fn borders_graph() -> Graph {
    let mut graph = scale_graph();
    let mut value = |name: &str, dtype, dims: &[usize], data: Option<TensorData>| {
        let shape = Shape(dims.to_vec());
        let data = data.map(|data| Arc::new(Tensor::new(shape.clone(), data).unwrap()));
        graph.values.push(Value {
            name: name.to_owned(),
            dtype,
            shape,
            data,
        });
        Some(ValueId(graph.values.len() - 1))
    };
    let image = [1, 16, 8, 8];
    let taps = (0..16 * 16 * 9).map(|idx| i8::from(idx / 9 % 17 == 0));
    let one = value("one", DType::F32, &[], Some(TensorData::F32(vec![1.0])));
    let two = value("two", DType::F32, &[], Some(TensorData::F32(vec![2.0])));
    let zero = value("zero", DType::U8, &[], Some(TensorData::U8(vec![100])));
    let taps = Some(TensorData::I8(taps.collect()));
    let taps = value("taps", DType::I8, &[16, 16, 3, 3], taps);
    let bytes = value("bytes", DType::U8, &image, None);
    let real = value("real", DType::F32, &image, None);
    let weights = value("weights", DType::F32, &[16, 16, 3, 3], None);
    let [x, y] = [graph.inputs[0], graph.outputs[0]].map(Some);
    let node = |op: &str, inputs: &[Option<ValueId>], output| Node {
        op: op.to_owned(),
        inputs: inputs.to_vec(),
        outputs: vec![output],
        ..graph.nodes[0].clone()
    };
    let mut conv = node("Conv", &[real, weights], y);
    let around = Attribute::Ints(vec![1; 4]);
    conv.attributes.insert("pads".to_owned(), around);
    let nodes = vec![
        node("QuantizeLinear", &[x, one, zero], bytes),
        node("DequantizeLinear", &[bytes, one, zero], real),
        node("DequantizeLinear", &[taps, two], weights),
        conv,
    ];
    graph.nodes = nodes;
    graph.name = "borders".to_owned();
    canonicalize(graph)
}

#[test]
fn borders_that_stand_for_zero_are_there_before_the_first_run_and_after_it() {
    let graph = borders_graph();
    let partition = partition(&graph);
    let directory = tempfile::tempdir().unwrap();
    let backend = native::Native::open(&native::NativeOptions {
        isa: crate::device::probe::host().isa,
        rustc: "rustc".into(),
        dir: directory.path().to_owned(),
        threads: 1,
        opt_level: 1,
        timeout: std::time::Duration::from_mins(1),
        templates: BTreeMap::new(),
    })
    .unwrap();
    let options = backend.default_options();
    let program = backend.program(&graph, &partition, None, &options);
    let program = program.unwrap().unwrap();
    assert!(program.fills.iter().any(|fill| fill.byte == 100));
    let (_directory, out) = exported(&Program::from_native("borders", "cpu", "3", &program));
    write(&out.join("examples/main.rs"), BORDERS_PROGRAM);
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--offline", "--example", "main"]);
    run(command.current_dir(&out));
}
