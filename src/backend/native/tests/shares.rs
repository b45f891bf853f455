//! Kernels whose work is divided among calls give what one call gives.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::kernels::{Bench, convolutions, isas, others};
use super::node::{NodeTest, f32s};
use super::{run, width, winograd};
use crate::backend::native::kernels::Share;
use crate::backend::native::program::Program;
use crate::device::{Isa, probe};
use crate::graph::{Attribute, Tensor};

/// Replaces each step whose work can be divided by calls for parts of it, in any order where they
/// may run at the same time. Returns how many steps were divided.
pub(super) fn divide(program: &mut Program, rng: &mut ChaCha8Rng) -> usize {
    let mut divided = 0;
    let steps = std::mem::take(&mut program.steps);
    for step in steps {
        let Some(shares) = step.shares else {
            program.steps.push(step);
            continue;
        };
        divided += usize::from(shares.units > 1);
        let mut parts = Vec::new();
        let mut first = 0;
        while first < shares.units {
            let end = (first + rng.random_range(1..=4) * shares.grain).min(shares.units);
            parts.push(step.part(first..end));
            first = end;
        }
        if shares.concurrent {
            parts.shuffle(rng);
        }
        program.steps.extend(parts);
    }
    divided
}

fn check(bench: &Bench, isa: Isa, share: Share, least: usize) {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut program = bench.assemble_shared(isa, share).unwrap();
    let divided = divide(&mut program, &mut rng);
    assert!(divided >= least, "{isa} {share:?}: {divided} steps divided");
    bench.check_program(isa, &program);
}

#[test]
fn convolutions_in_parts_agree_with_the_definition() {
    for isa in isas() {
        let bench = convolutions(isa, 1);
        check(&bench, isa, Share::Rows, 15);
        check(&bench, isa, Share::Channels, 15);
    }
}

#[test]
fn vectors_along_the_width_in_parts_agree_with_the_definition() {
    for isa in isas() {
        let bench = width::convolutions(isa);
        check(&bench, isa, Share::Rows, 5);
        check(&bench, isa, Share::Channels, 5);
    }
}

#[test]
fn convolutions_in_the_winograd_domain_in_parts_give_the_same_bits() {
    for isa in isas() {
        let bench = winograd::convolutions(isa);
        let whole = run::build_and_run_twice(&bench.assemble(isa).unwrap(), &bench.inputs());
        for share in [Share::Rows, Share::Channels] {
            let mut rng = ChaCha8Rng::seed_from_u64(6);
            let mut program = bench.assemble_shared(isa, share).unwrap();
            assert!(divide(&mut program, &mut rng) >= 10);
            assert!(run::build_and_run_twice(&program, &bench.inputs()) == whole);
        }
    }
}

/// Runs what the processor runs on two and on three threads, of which each has work of at least so
/// many steps, and compares with one.
pub(super) fn check_threads(bench: &Bench, least: usize) {
    let isa = probe::host().isa;
    let inputs = bench.inputs();
    let alone = run::build_and_run_twice(&bench.assemble_for(1, isa), &inputs);
    for threads in [2, 3] {
        let program = bench.assemble_for(threads, isa);
        let divided = program.steps.iter().filter(|step| step.shares.is_some());
        assert!(divided.count() >= least);
        assert_eq!(program.threads, threads);
        assert!(
            run::build_and_run_twice(&program, &inputs) == alone,
            "{threads}"
        );
    }
}

#[test]
fn threads_give_the_bits_of_one_in_the_winograd_domain() {
    check_threads(&winograd::convolutions(probe::host().isa), 8);
}

/// Returns numbers of some extents, from -1 to 1.
fn numbers(dims: &[usize]) -> Tensor {
    let n = dims.iter().product();
    let numbers: Vec<f32> = (0..n)
        .map(|i: usize| ((i * 37) % 83) as f32 / 41.0 - 1.0)
        .collect();
    f32s(dims, &numbers)
}

#[test]
fn loops_give_the_same_bits_in_parts_and_on_threads() {
    let ints = |name: &str, list: &[i64]| (name.to_owned(), Attribute::Ints(list.to_vec()));
    let int = |name: &str, value| (name.to_owned(), Attribute::Int(value));
    let check =
        |op, dims: &[&[usize]], attribute: Option<(String, Attribute)>, output: &[usize]| {
            let mut test = NodeTest::new(op);
            for dims in dims {
                test = test.input(numbers(dims));
            }
            if let Some((name, value)) = attribute {
                test = test.attribute(&name, value);
            }
            test.gives_the_same_in_parts(&[numbers(output)]);
        };
    // In one run of elements, and by rows of vectors and of single elements.
    check("Erf", &[&[5003]], None, &[5003]);
    check("Sub", &[&[5, 41, 37], &[41, 1]], None, &[5, 41, 37]);
    check("Cos", &[&[7001]], None, &[7001]);
    check(
        "Transpose",
        &[&[70, 90]],
        Some(ints("perm", &[1, 0])),
        &[90, 70],
    );
    check(
        "Transpose",
        &[&[9, 11, 64]],
        Some(ints("perm", &[1, 0, 2])),
        &[11, 9, 64],
    );
    check("Softmax", &[&[61, 83]], None, &[61, 83]);
    check(
        "LogSoftmax",
        &[&[5, 19, 67]],
        Some(int("axis", 1)),
        &[5, 19, 67],
    );
    check("Hardmax", &[&[61, 83]], None, &[61, 83]);
    check(
        "LayerNormalization",
        &[&[47, 85], &[85], &[85]],
        None,
        &[47, 85],
    );
    check(
        "LayerNormalization",
        &[&[47, 85], &[47, 1]],
        None,
        &[47, 85],
    );
    let axes = ints("axes", &[1]);
    let reduce = NodeTest::new("ReduceSum")
        .opset(11)
        .attribute(&axes.0, axes.1);
    let reduce = reduce.input(numbers(&[31, 257]));
    reduce.gives_the_same_in_parts(&[numbers(&[31, 1])]);
}

#[test]
fn products_of_matrices_give_the_same_bits_in_parts_and_on_threads() {
    let check = |lhs: &[usize], rhs: &[usize], output: &[usize]| {
        NodeTest::new("MatMul")
            .input(numbers(lhs))
            .input(numbers(rhs))
            .gives_the_same_in_parts(&[numbers(output)]);
        NodeTest::new("MatMul")
            .input(numbers(lhs))
            .constant(numbers(rhs))
            .gives_the_same_in_parts(&[numbers(output)]);
    };
    // Rows in tiles and a rest; right operands as they lie, and packed by each thread.
    check(&[67, 64], &[64, 53], &[67, 53]);
    check(&[131, 96], &[96, 160], &[131, 160]);
    // One row, so that columns are divided.
    check(&[1, 300], &[300, 512], &[1, 512]);
    // More matrices than tiles, and with a right operand for all.
    check(&[6, 40, 33], &[6, 33, 70], &[6, 40, 70]);
    check(&[2, 5, 40, 64], &[5, 64, 48], &[2, 5, 40, 48]);
    check(&[5, 40, 64], &[64, 48], &[5, 40, 48]);
}

#[test]
fn other_kernels_in_parts_agree_with_their_definitions() {
    for isa in isas() {
        let bench = others(isa);
        check(&bench, isa, Share::Rows, 5);
        check(&bench, isa, Share::Channels, 5);
    }
}
