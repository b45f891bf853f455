//! Kernels whose work is divided among calls give what one call gives.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::kernels::{Bench, convolutions, isas, others};
use super::{run, width, winograd};
use crate::backend::native::kernels::Share;
use crate::backend::native::program::Program;
use crate::device::{Isa, probe};

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

#[test]
fn other_kernels_in_parts_agree_with_their_definitions() {
    for isa in isas() {
        let bench = others(isa);
        check(&bench, isa, Share::Rows, 5);
        check(&bench, isa, Share::Channels, 5);
    }
}
