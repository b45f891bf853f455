//! Convolutions in the Winograd domain: tiles within, at and across the edges of the output.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::kernels::{Bench, SOME, base, distance, f32s, isas};
use super::run;
use crate::backend::native::build::{Builder, Toolchain};
use crate::backend::native::isa;
use crate::backend::native::program::AssembleError;
use crate::backend::native::space::{Spaces, default_mapping};
use crate::backend::native::spec::{Conv, Epilogue, Kind, Operation};
use crate::device::Isa;
use crate::graph::ValueId;
use crate::space::Mapping;

/// Extents from one output to tiles and a rest, channels that fill vectors and that do not.
fn cases() -> Vec<Conv> {
    let residual = |conv: Conv| Conv {
        n: 2,
        residual: SOME,
        epilogue: vec![Epilogue::Silu, Epilogue::AddTensor],
        ..conv
    };
    vec![
        base([16, 8, 12], 16, 3, 1, 1),
        base([19, 6, 11], 24, 3, 1, 1),
        base([8, 3, 3], 40, 3, 1, 0),
        base([33, 5, 7], 9, 3, 1, 1),
        base([24, 1, 9], 32, 3, 1, 1),
        base([24, 9, 2], 32, 3, 1, 1),
        base([17, 14, 13], 48, 3, 1, 0),
        residual(base([32, 6, 6], 32, 3, 1, 1)),
        residual(base([20, 7, 10], 24, 3, 1, 1)),
        // Zeros on two sides only, and more of them than a window reaches.
        Conv {
            pad: [2, 0],
            output: [16, 7, 5],
            ..base([16, 6, 6], 16, 3, 1, 1)
        },
        Conv {
            epilogue: Vec::new(),
            ..base([96, 20, 21], 24, 3, 1, 1)
        },
    ]
}

fn mapping(rng: &mut ChaCha8Rng, isa: Isa, taps: &str) -> Mapping {
    let lanes = isa::tables(isa).iter().map(|t| t.lanes as i64);
    let lanes: Vec<i64> = lanes.collect();
    let mut pick = |items: &[i64]| items[rng.random_range(0..items.len())];
    let mapping = Mapping::default()
        .with("lanes", pick(&lanes))
        .with("oc_vectors", pick(&[1, 2, 3, 4]))
        .with("tile_w", pick(&[1, 2, 3, 4, 5, 7, 8]))
        .with("unroll", pick(&[1, 2, 3, 8]));
    let layouts = ["nhwc", "nchw8c", "nchw16c", "nchw32c"];
    let mut word = || layouts[rng.random_range(0..layouts.len())];
    mapping
        .with("layout_in", word())
        .with("layout_out", word())
        .with("taps", taps)
}

/// Returns a random mapping that applies.
fn applicable(rng: &mut ChaCha8Rng, isa: Isa, taps: &str, conv: &Conv) -> Mapping {
    let mut tries = 0..1000;
    let found = tries.find_map(|_| {
        let mapping = mapping(rng, isa, taps);
        let mut alone = Bench::new();
        alone.conv(conv.clone(), &mapping);
        alone.assemble(isa).is_ok().then_some(mapping)
    });
    found.unwrap()
}

pub(super) fn convolutions(isa: Isa) -> Bench {
    let mut rng = ChaCha8Rng::seed_from_u64(isa as u64 + 23);
    let mut bench = Bench::new();
    for case in cases() {
        for taps in ["winograd2", "winograd4"] {
            let mapping = applicable(&mut rng, isa, taps, &case);
            bench.conv(case.clone(), &mapping);
        }
    }
    bench
}

#[test]
fn convolutions_in_the_winograd_domain_agree_with_the_definition() {
    for isa in isas() {
        convolutions(isa).check(isa);
    }
}

#[test]
fn convolutions_in_the_winograd_domain_stay_within_their_buffers() {
    for isa in isas() {
        let bench = convolutions(isa);
        let program = bench.assemble(isa).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let toolchain = Toolchain::discover(&PathBuf::from("rustc")).unwrap();
        let builder = Builder::open(toolchain, dir.path(), 1, Duration::from_mins(5)).unwrap();
        let packed = builder.pack(program.clone()).unwrap();
        let artifact = builder.build(packed, 2).unwrap().unwrap();
        for at_end in [false, true] {
            let outputs = run::run_fenced(&program, &artifact, &bench.inputs(), at_end);
            for ((_, expected), actual) in bench.expected.iter().zip(outputs) {
                assert!(distance(&f32s(&actual), expected) < 1e-5);
            }
        }
    }
}

fn operation(conv: Conv) -> Operation {
    Operation {
        subgraph: 0,
        name: "test".to_owned(),
        kind: Kind::Conv(conv),
        x: ValueId(0),
        y: ValueId(1),
    }
}

#[test]
fn untuned_convolutions_are_in_the_winograd_domain_where_that_pays() {
    let spaces = Spaces::new(&BTreeMap::new(), 1).unwrap();
    let cases = [
        (base([96, 160, 160], 24, 3, 1, 1), "winograd4"),
        (base([96, 20, 20], 24, 3, 1, 1), "winograd4"),
        (base([64, 100, 5], 64, 3, 1, 1), "winograd2"),
        (base([256, 14, 14], 256, 3, 1, 1), "winograd2"),
        (base([512, 7, 7], 512, 3, 1, 1), "loop"),
        (base([8, 40, 40], 32, 3, 1, 1), "loop"),
        (base([32, 40, 40], 32, 3, 2, 1), "loop"),
        (base([32, 40, 40], 32, 5, 1, 2), "loop"),
    ];
    for (conv, expected) in cases {
        let operation = operation(conv.clone());
        for isa in Isa::ALL {
            let mapping = default_mapping(isa, &operation);
            assert_eq!(mapping.word("taps"), Some(expected), "{conv:?}");
            if expected != "loop" {
                let space = spaces.of(isa, &operation).unwrap().unwrap();
                assert_eq!(space.is_valid(&mapping), Ok(()), "{isa} {mapping}");
            }
        }
    }
}

/// Mappings of the space that are in the Winograd domain make kernels, all of them.
#[test]
fn spaces_offer_no_winograd_domain_that_makes_no_kernel() {
    let spaces = Spaces::new(&BTreeMap::new(), 1).unwrap();
    for conv in [
        base([96, 20, 20], 24, 3, 1, 1),
        base([19, 9, 14], 33, 3, 1, 0),
    ] {
        for isa in [Isa::X86V4, Isa::X86V3, Isa::X86V2] {
            let space = spaces.of(isa, &operation(conv.clone())).unwrap().unwrap();
            for taps in ["winograd2", "winograd4"] {
                let domain = space.fixed(&[("taps", taps.into())]).unwrap();
                let mut rng = ChaCha8Rng::seed_from_u64(1);
                for _ in 0..20 {
                    let mapping = domain.sample(&mut rng).unwrap();
                    let mut bench = Bench::new();
                    bench.conv(conv.clone(), &mapping);
                    let program = bench.assemble(isa);
                    assert!(program.is_ok(), "{mapping}: {:?}", program.err());
                }
            }
        }
    }
}

#[test]
fn other_convolutions_have_no_winograd_domain() {
    let plain = base([16, 8, 8], 16, 3, 1, 1);
    let others = [
        base([16, 9, 9], 16, 3, 2, 1),
        base([16, 9, 9], 16, 5, 1, 2),
        Conv {
            groups: 2,
            ..plain.clone()
        },
        Conv {
            dilation: [2; 2],
            pad: [2; 2],
            ..plain.clone()
        },
        Conv {
            scale: SOME,
            ..plain.clone()
        },
        Conv {
            pooled: SOME,
            ..plain.clone()
        },
    ];
    let fitting = Mapping::default()
        .with("lanes", 4i64)
        .with("oc_vectors", 1i64)
        .with("tile_w", 4i64)
        .with("unroll", 1i64)
        .with("layout_in", "nchw8c")
        .with("layout_out", "nchw8c")
        .with("taps", "winograd4");
    let assemble = |conv: &Conv, mapping: &Mapping| {
        let mut bench = Bench::new();
        bench.conv(conv.clone(), mapping);
        bench.assemble(Isa::Portable)
    };
    assemble(&plain, &fitting).unwrap();
    for conv in &others {
        let refusal = assemble(conv, &fitting);
        assert!(matches!(refusal, Err(AssembleError::Kernel { .. })));
    }
    for (name, value) in [("padding", "edge"), ("layout_in", "nchw")] {
        let refusal = assemble(&plain, &fitting.clone().with(name, value));
        assert!(matches!(refusal, Err(AssembleError::Kernel { .. })));
    }
    for (name, value) in [("tile_w", 20i64), ("oc_vectors", 3)] {
        let refusal = assemble(&plain, &fitting.clone().with(name, value));
        assert!(matches!(refusal, Err(AssembleError::Kernel { .. })));
    }
}
