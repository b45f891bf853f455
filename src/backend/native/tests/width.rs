//! Vectors along the width: rows shorter, as long as and a little longer than vectors.

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

/// A convolution of `ow` columns whose padding differs on all sides.
fn row(ow: usize, kernel: usize, stride: usize, dilation: usize, groups: usize) -> Conv {
    let (oh, pads) = (3, [2, 1, 0, 2]);
    let span = |out: usize| (out - 1) * stride + (kernel - 1) * dilation + 1;
    let inner = |out: usize, before: usize, after: usize| match span(out) {
        span if kernel > 1 && span > before + after => (span - before - after, before),
        span => (span, 0),
    };
    let (ih, top) = inner(oh, pads[0], pads[2]);
    let (iw, left) = inner(ow, pads[1], pads[3]);
    Conv {
        groups,
        input: [4 * groups.max(2), ih, iw],
        output: [12 * groups.div_ceil(3), oh, ow],
        stride: [stride; 2],
        dilation: [dilation; 2],
        pad: [top, left],
        ..base([1, 9, 9], 1, kernel, 1, 0)
    }
}

/// The same, one channel a group.
fn depthwise(ow: usize, kernel: usize, stride: usize, dilation: usize) -> Conv {
    let conv = row(ow, kernel, stride, dilation, 1);
    Conv {
        groups: 7,
        input: [7, conv.input[1], conv.input[2]],
        output: [7, conv.output[1], ow],
        ..conv
    }
}

fn cases() -> Vec<Conv> {
    let mut cases = Vec::new();
    for (idx, ow) in [1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33]
        .into_iter()
        .enumerate()
    {
        for stride in 1..=3 {
            let groups = [1, 2, 3][(idx + stride) % 3];
            cases.push(row(ow, 3, stride, 1, groups));
            if (idx + stride) % 2 == 0 {
                cases.push(depthwise(ow, [3, 5][idx % 2], stride, 1));
            }
        }
    }
    for ow in [3, 17] {
        let (same, wide) = (row(ow, 3, 1, 2, 3), row(ow, 3, 2, 2, 1));
        cases.extend([same.clone(), wide, depthwise(ow, 3, 1, 2)]);
        let point = row(ow, 1, 1, 1, 1);
        cases.extend([point.clone(), row(ow, 1, 2, 1, 2)]);
        for conv in [same, point, depthwise(ow, 3, 2, 1)] {
            cases.push(Conv {
                n: 2,
                residual: SOME,
                epilogue: vec![Epilogue::Silu, Epilogue::AddTensor],
                ..conv.clone()
            });
            cases.push(Conv {
                n: 2,
                scale: SOME,
                pooled: SOME,
                epilogue: vec![Epilogue::HardSwish],
                ..conv.clone()
            });
            cases.push(Conv {
                pooled: SOME,
                stored: false,
                ..conv
            });
        }
    }
    // One element in all: values of one layout only, before and behind.
    cases.push(Conv {
        pooled: SOME,
        ..base([6, 1, 1], 9, 3, 1, 1)
    });
    cases.push(Conv {
        n: 2,
        residual: SOME,
        epilogue: vec![Epilogue::AddTensor],
        ..base([5, 4, 4], 6, 4, 1, 0)
    });
    cases
}

fn random_mapping(rng: &mut ChaCha8Rng, isa: Isa) -> Mapping {
    let lanes = isa::tables(isa).iter().map(|t| t.lanes as i64);
    let lanes: Vec<i64> = lanes.collect();
    let mut pick = |items: &[i64]| items[rng.random_range(0..items.len())];
    let mapping = Mapping::default()
        .with("vector", "width")
        .with("layout_in", "nchw")
        .with("layout_out", "nchw")
        .with("lanes", pick(&lanes))
        .with("oc_vectors", pick(&[1, 2, 3, 4]))
        .with("tile_w", pick(&[1, 2, 3]))
        .with("tile_h", pick(&[1, 1, 2, 3, 4]))
        .with("unroll", pick(&[1, 2, 3]));
    let mut word = |items: &[&'static str]| items[rng.random_range(0..items.len())];
    let mapping = mapping.with("order", word(&["oc", "row"]));
    mapping.with("taps", word(&["loop", "kw", "all"]))
}

/// Returns a random mapping that applies.
fn applicable(rng: &mut ChaCha8Rng, isa: Isa, conv: &Conv) -> Mapping {
    let mut tries = 0..1000;
    let found = tries.find_map(|_| {
        let mapping = random_mapping(rng, isa);
        let mut alone = Bench::new();
        alone.conv(conv.clone(), &mapping);
        alone.assemble(isa).is_ok().then_some(mapping)
    });
    found.unwrap()
}

#[test]
fn vectors_along_the_width_agree_with_the_definition_on_every_instruction_set() {
    for isa in isas() {
        convolutions(isa).check(isa);
    }
}

/// Makes an operation of each case with a random mapping.
pub(super) fn convolutions(isa: Isa) -> Bench {
    let mut rng = ChaCha8Rng::seed_from_u64(isa as u64 + 11);
    let mut bench = Bench::new();
    for case in cases() {
        let mapping = applicable(&mut rng, isa, &case);
        bench.conv(case, &mapping);
    }
    bench
}

#[test]
fn vectors_along_the_width_leave_borders_zero() {
    for isa in isas() {
        let mut rng = ChaCha8Rng::seed_from_u64(isa as u64 + 5);
        let mut bench = Bench::new();
        for width in [2, 5, 9, 19] {
            let conv = base([4, 6, width], 4, 3, 1, 1);
            let first = applicable(&mut rng, isa, &conv);
            let second = applicable(&mut rng, isa, &conv);
            let x = bench.input([1, 4, 6, width]);
            // The second finds its zeros around what the first writes.
            let weighted = bench.weighted(conv.clone());
            let y = bench.conv_of(x, weighted, &first);
            let weighted = bench.weighted(conv);
            bench.conv_of(y, weighted, &second);
        }
        bench.check(isa);
    }
}

#[test]
fn width_refuses_layouts_that_are_not_row_major_and_says_why() {
    let conv = base([8, 4, 20], 8, 3, 1, 1);
    let mapping = applicable(&mut ChaCha8Rng::seed_from_u64(1), Isa::Portable, &conv);
    for (name, word, why) in [
        ("layout_in", "nhwc", "row-major"),
        ("layout_out", "nchw8c", "row-major"),
        ("padding", "edge", "zero borders"),
        ("order", "px", "channel tiles or rows"),
    ] {
        let mut bench = Bench::new();
        bench.conv(conv.clone(), &mapping.clone().with(name, word));
        let Err(AssembleError::Kernel { source, .. }) = bench.assemble(Isa::Portable) else {
            panic!("{name} = {word} is taken");
        };
        assert!(source.to_string().contains(why), "{source}");
    }
}

/// A read or write outside of what belongs to a kernel ends this test's process.
#[test]
fn vectors_along_the_width_touch_nothing_outside_of_their_buffers() {
    for isa in isas() {
        let mut rng = ChaCha8Rng::seed_from_u64(isa as u64 + 3);
        let dir = tempfile::tempdir().unwrap();
        let toolchain = Toolchain::discover(&PathBuf::from("rustc")).unwrap();
        let builder = Builder::open(toolchain, dir.path(), 1, Duration::from_mins(5)).unwrap();
        for (idx, ow) in [3, 16, 17, 21].into_iter().enumerate() {
            let mut bench = Bench::new();
            for stride in 1..=3 {
                // Without padding, what the caller owns is read as it is.
                let conv = Conv {
                    pad: [0, 0],
                    input: [8, 2 * stride + 3, (ow - 1) * stride + 3],
                    residual: SOME,
                    epilogue: vec![Epilogue::AddTensor],
                    ..row(ow, 3, stride, 1, 2)
                };
                let mapping = applicable(&mut rng, isa, &conv);
                bench.conv(conv, &mapping);
            }
            let padded = row(ow, 5, 1 + idx % 3, 1, 1);
            let mapping = applicable(&mut rng, isa, &padded);
            bench.conv(padded, &mapping);
            let program = bench.assemble(isa).unwrap();
            let packed = builder.pack(program.clone()).unwrap();
            let artifact = builder.build(packed, 2).unwrap().unwrap();
            for at_end in [false, true] {
                let outputs = run::run_fenced(&program, &artifact, &bench.inputs(), at_end);
                for (actual, (_, expected)) in outputs.iter().zip(&bench.expected) {
                    assert!(distance(&f32s(actual), expected) < 1e-5, "{isa} {ow}");
                }
            }
        }
    }
}

#[test]
fn untuned_convolutions_with_few_outputs_a_group_have_vectors_along_the_width() {
    let spaces = Spaces::new(&BTreeMap::new(), 1).unwrap();
    let grouped = |per_group: usize, width: usize| Conv {
        groups: 8,
        ..base([8 * per_group, 12, width], 8 * per_group, 3, 1, 1)
    };
    let cases = [
        (grouped(4, 56), "width"),
        (grouped(4, 14), "width"),
        (grouped(4, 7), "channels"),
        (grouped(16, 56), "channels"),
        (base([24, 20, 40], 1, 3, 1, 1), "width"),
        (base([24, 20, 40], 1, 1, 1, 0), "channels"),
        (base([24, 20, 40], 24, 3, 1, 1), "channels"),
    ];
    for (conv, expected) in cases {
        let operation = Operation {
            subgraph: 0,
            name: "test".to_owned(),
            kind: Kind::Conv(conv),
            x: ValueId(0),
            y: ValueId(1),
        };
        for isa in [Isa::X86V4, Isa::X86V3] {
            let mapping = default_mapping(isa, &operation);
            assert_eq!(mapping.word("vector"), Some(expected), "{operation:?}");
            let space = spaces.of(isa, &operation).unwrap().unwrap();
            if expected == "width" {
                assert_eq!(space.is_valid(&mapping), Ok(()));
            }
        }
    }
}

/// Mappings of the space that are about the width make kernels, all of them.
#[test]
fn spaces_offer_no_width_that_makes_no_kernel() {
    let spaces = Spaces::new(&BTreeMap::new(), 1).unwrap();
    for conv in [
        row(40, 3, 2, 1, 2),
        row(17, 1, 1, 1, 1),
        depthwise(33, 3, 1, 1),
    ] {
        let kind = if conv.is_depthwise() {
            Kind::Depthwise(conv.clone())
        } else {
            Kind::Conv(conv.clone())
        };
        let operation = Operation {
            subgraph: 0,
            name: "test".to_owned(),
            kind,
            x: ValueId(0),
            y: ValueId(1),
        };
        for isa in [Isa::X86V4, Isa::X86V2] {
            let space = spaces.of(isa, &operation).unwrap().unwrap();
            let width = space.fixed(&[("vector", "width".into())]).unwrap();
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            for _ in 0..30 {
                let mapping = width.sample(&mut rng).unwrap();
                let mut bench = Bench::new();
                bench.conv(conv.clone(), &mapping);
                let program = bench.assemble(isa);
                assert!(program.is_ok(), "{mapping}: {:?}", program.err());
            }
        }
    }
}
