#![expect(unsafe_code, reason = "temp")]
use super::node::untuned_program;
use crate::backend::native::build::{Builder, Toolchain};
use crate::backend::native::lower::lower;
use crate::graph::{DType, partition};
use crate::onnx::{LoadOptions, load};
use std::path::PathBuf;
use std::time::Duration;
type Steps = unsafe extern "C" fn(
    *const *const u8,
    *const *mut u8,
    *mut u8,
    *const u8,
    usize,
    usize,
    *mut u64,
);
#[test]
fn zz_prof() {
    let isa = crate::device::probe::host().isa;
    let model = std::env::var("MODEL").unwrap();
    let mut shapes = std::collections::BTreeMap::new();
    for part in std::env::var("SHAPES")
        .unwrap_or_default()
        .split(';')
        .filter(|p| !p.is_empty())
    {
        let (name, dims) = part.split_once('=').unwrap();
        shapes.insert(
            name.to_owned(),
            dims.split('x')
                .map(|d| d.parse().unwrap())
                .collect::<Vec<usize>>(),
        );
    }
    let loaded = load(
        &PathBuf::from(&model),
        &LoadOptions {
            input_shapes: shapes,
        },
    )
    .unwrap();
    let parts = partition(&loaded.graph);
    let operations = lower(&loaded.graph, &parts).unwrap();
    let program = untuned_program(isa, &loaded.graph, &operations, parts.subgraphs.len());
    let dir = PathBuf::from("/tmp/by/obj");
    std::fs::create_dir_all(&dir).unwrap();
    let builder = Builder::open(
        Toolchain::discover(&PathBuf::from("rustc")).unwrap(),
        &dir,
        2,
        Duration::from_mins(5),
    )
    .unwrap();
    builder.compile(&program, 2).unwrap().unwrap();
    let artifact = builder.link(&program).unwrap().unwrap();
    crate::measure::worker::load_math_library();
    let lines = |n: usize| {
        let mut v: Vec<[u64; 8]> = vec![[0; 8]; n / 64 + 4];
        let p = v.as_mut_ptr() as *mut u8;
        std::mem::forget(v);
        unsafe { p.add(p.align_offset(64)) }
    };
    let arena = lines(program.arena_bytes);
    let weights = lines(program.weights.len());
    unsafe {
        for f in &program.fills {
            std::ptr::write_bytes(arena.add(f.offset), f.byte, f.len);
        }
        std::ptr::copy_nonoverlapping(program.weights.as_ptr(), weights, program.weights.len());
        let mut s = 1u32;
        let mut next = || {
            s ^= s << 13;
            s ^= s >> 17;
            s ^= s << 5;
            s
        };
        let inputs: Vec<*const u8> = program
            .inputs
            .iter()
            .map(|io| {
                let n = io.shape.len();
                let p = lines(n * 8);
                for i in 0..n {
                    match io.dtype {
                        DType::F32 => *(p as *mut f32).add(i) = next() as f32 / 4e9 * 2.0 - 1.0,
                        DType::I64 => {
                            *(p as *mut i64).add(i) = if io.name.contains("mask") {
                                1
                            } else {
                                (next() % 900) as i64
                            }
                        }
                        DType::I32 => *(p as *mut i32).add(i) = 1,
                        _ => *p.add(i) = 1,
                    }
                }
                p as *const u8
            })
            .collect();
        let outputs: Vec<*mut u8> = program
            .outputs
            .iter()
            .map(|io| lines(io.shape.len() * 8))
            .collect();
        let library = libloading::Library::new(&artifact.library).unwrap();
        let steps = library.get::<Steps>(b"metainfer_steps").unwrap();
        let n = program.steps.len();
        let mut all = vec![vec![]; n];
        let mut t = vec![0u64; n + 1];
        let (i0, t0) = (std::time::Instant::now(), std::arch::x86_64::_rdtsc());
        let rounds = std::env::var("ROUNDS").map_or(40, |r| r.parse().unwrap());
        for r in 0..rounds {
            steps(
                inputs.as_ptr(),
                outputs.as_ptr(),
                arena,
                weights,
                0,
                n,
                t.as_mut_ptr(),
            );
            if r > 3 {
                for i in 0..n {
                    all[i].push(t[i + 1] - t[i]);
                }
            }
        }
        let per = i0.elapsed().as_nanos() as f64 / (std::arch::x86_64::_rdtsc() - t0) as f64;
        let mut rows: Vec<(f64, String)> = Vec::new();
        for (i, v) in all.iter_mut().enumerate() {
            v.sort();
            rows.push((
                v[v.len() / 4] as f64 * per / 1e3,
                format!(
                    "{i:4} {:?} {}",
                    program.steps[i].subgraph, program.steps[i].name
                ),
            ));
        }
        let sum: f64 = rows.iter().map(|r| r.0).sum();
        let mut text = format!("{model} {} steps sum {:.1} us\n", n, sum);
        for r in &rows {
            text += &format!("{:9.1} {}\n", r.0, r.1);
        }
        std::fs::write(std::env::var("OUT").unwrap(), text).unwrap();
    }
}
