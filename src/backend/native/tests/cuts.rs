//! Segments that are proposed, and those next to them.

use proptest::prelude::*;

use super::segments::{Chain, Op, op};
use crate::backend::native::kernels::Share;
use crate::backend::native::program::{Program, Segments};
use crate::device::Isa;

const ISA: Isa = Isa::Portable;

fn assemble(chain: &Chain, segments: &Segments) -> Program {
    let bench = &chain.bench;
    let program = bench.assemble_segmented(ISA, Share::Whole, segments);
    program.unwrap_or_else(|error| panic!("`{segments}`: {error}"))
}

/// Six subgraphs, one step each, and one that brings the input to their layout.
fn chain() -> Chain {
    let conv = |stride| Op::Conv {
        kernel: 3,
        stride,
        residual: false,
        edge: false,
        tall: false,
    };
    let depthwise = Op::Depthwise {
        kernel: 3,
        stride: 1,
        dilation: 1,
    };
    Chain::of(&[conv(1), depthwise.clone(), conv(1), depthwise, conv(1)])
}

fn texts(segments: &[Segments]) -> Vec<String> {
    segments.iter().map(ToString::to_string).collect()
}

#[test]
fn segments_are_proposed_where_values_would_take_more_than_is_kept() {
    let chain = chain();
    let check = |bytes: usize, expected: &str| {
        let proposed = chain.bench.proposed(ISA, bytes, 1);
        assert_eq!(proposed.to_string(), expected, "{bytes} bytes");
        assemble(&chain, &proposed);
    };
    // Each inner value is 18 KB, weights of a window of 3×3 are 9 KB.
    check(0, "");
    check(1 << 14, "0-1@1 2-3@1 4-5@1");
    check(1 << 16, "0-4@1");
    check(1 << 17, "");
}

#[test]
fn neighbours_move_split_and_join() {
    let chain = chain();
    let check = |segments: &str, expected: &[&str]| {
        let segments = segments.parse().unwrap();
        let mut found = texts(&chain.bench.neighbours(ISA, &segments));
        found.sort();
        assert_eq!(found, expected, "of `{segments}`");
    };
    check(
        "1-3@2",
        &["0-3@2", "1-1@2 2-3@2", "1-2@2", "1-4@2", "2-3@2"],
    );
    check(
        "0-2@1 3-5@2",
        &[
            "0-0@1 1-2@1 3-5@2",
            "0-1@1 2-5@2",
            "0-2@1 3-3@2 4-5@2",
            "0-2@1 3-4@2",
            "0-3@1 4-5@2",
            "0-5@2",
            "1-2@1 3-5@2",
        ],
    );
    // Nothing is left of a segment whose only subgraph goes.
    check("5-5@1", &["4-5@1"]);
    // Segments of another model.
    check("7-9@1", &[]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn whatever_is_proposed_or_next_to_it_can_be_assembled(
        ops in prop::collection::vec(op(), 2..8), log in 9usize..18, rows in 1usize..4,
    ) {
        let chain = Chain::of(&ops);
        let proposed = chain.bench.proposed(ISA, 1 << log, rows);
        assemble(&chain, &proposed);
        for neighbour in chain.bench.neighbours(ISA, &proposed) {
            prop_assert_eq!(neighbour.to_string().parse(), Ok(neighbour.clone()));
            prop_assert!(neighbour != proposed);
            assemble(&chain, &neighbour);
        }
    }
}
