//! Convolutions of integers.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::kernels::{SOME, base, isas};
use super::qbench::{QBench, quantize};
use crate::backend::native::isa;
use crate::backend::native::kernels::Share;
use crate::backend::native::layout::Layout;
use crate::backend::native::space::{Spaces, default_mapping};
use crate::backend::native::spec::{Affine, Conv, Epilogue, Kind, Operation, Quantized, literal};
use crate::device::Isa;
use crate::graph::ValueId;
use crate::space::Mapping;

pub(super) fn pick<T: Clone>(rng: &mut ChaCha8Rng, values: &[T]) -> T {
    values[rng.random_range(0..values.len())].clone()
}

pub(super) fn clip(low: f32, high: f32) -> Epilogue {
    Epilogue::Clip {
        low: literal(low),
        high: literal(high),
    }
}

/// Shapes and epilogues: odd channels, strides, dilations, asymmetric padding, groups.
fn cases() -> Vec<Conv> {
    let with = |conv: Conv, epilogue: Vec<Epilogue>| Conv { epilogue, ..conv };
    let added = |conv: Conv, epilogue: Vec<Epilogue>| Conv {
        residual: SOME,
        epilogue,
        ..conv
    };
    let add_const = Epilogue::AddConst {
        value: literal(0.3),
    };
    vec![
        with(base([3, 13, 17], 16, 3, 2, 1), vec![Epilogue::HardSwish]),
        base([16, 7, 7], 32, 1, 1, 0),
        with(base([37, 5, 9], 29, 1, 1, 0), vec![]),
        with(base([20, 6, 11], 48, 3, 1, 1), vec![clip(0.0, 6.0)]),
        with(
            base([16, 9, 9], 16, 5, 1, 2),
            vec![Epilogue::Relu, Epilogue::HardSwish],
        ),
        Conv {
            n: 2,
            dilation: [2, 3],
            input: [5, 11, 14],
            output: [21, 7, 8],
            pad: [0, 0],
            ..with(base([5, 11, 14], 21, 3, 1, 0), vec![Epilogue::Sigmoid])
        },
        Conv {
            kernel: [2, 3],
            pad: [0, 1],
            output: [24, 10, 6],
            stride: [1, 2],
            ..base([18, 10, 11], 24, 3, 1, 0)
        },
        Conv {
            groups: 2,
            ..base([32, 6, 6], 64, 3, 1, 1)
        },
        Conv {
            groups: 4,
            ..base([48, 5, 8], 48, 1, 1, 0)
        },
        added(base([24, 7, 9], 40, 1, 1, 0), vec![Epilogue::AddTensor]),
        added(
            base([8, 7, 9], 16, 3, 1, 1),
            vec![Epilogue::AddTensor, Epilogue::Relu],
        ),
        added(
            base([8, 7, 9], 32, 1, 1, 0),
            vec![Epilogue::Relu, Epilogue::AddTensor, add_const.clone()],
        ),
        added(
            base([8, 7, 9], 16, 1, 1, 0),
            vec![Epilogue::HardSwish, Epilogue::AddTensor, Epilogue::Relu],
        ),
        added(
            base([8, 7, 9], 16, 1, 1, 0),
            vec![Epilogue::MulTensor, Epilogue::Silu],
        ),
        with(
            base([8, 7, 9], 16, 1, 1, 0),
            vec![add_const, clip(-0.5, 1e9)],
        ),
        Conv {
            pooled: SOME,
            n: 2,
            ..with(base([16, 7, 5], 24, 1, 1, 0), vec![Epilogue::HardSwish])
        },
        Conv {
            pooled: SOME,
            stored: false,
            ..base([16, 7, 5], 32, 3, 1, 1)
        },
        base([70, 1, 1], 20, 1, 1, 0),
    ]
}

pub(super) const SHARES: [Share; 3] = [Share::Whole, Share::Rows, Share::Channels];

const LAYOUTS: [Layout; 4] = [
    Layout::Blocked(16),
    Layout::Blocked(8),
    Layout::Blocked(32),
    Layout::Nhwc,
];

fn random_mapping(rng: &mut ChaCha8Rng, lanes: &[i64]) -> Mapping {
    Mapping::default()
        .with("lanes", pick(rng, lanes))
        .with("oc_vectors", pick(rng, &[1i64, 1, 2, 3, 4]))
        .with("tile_w", rng.random_range(1..=14i64))
        .with("tile_h", rng.random_range(1..=3i64))
        .with("unroll", pick(rng, &[1i64, 2, 4]))
        .with("order", pick(rng, &["oc", "row", "px"]))
        .with("taps", pick(rng, &["loop", "kw", "all"]))
}

/// Adds two kernels for each case, of random numbers, layouts and mappings that apply; returns how
/// many did not.
pub(super) fn random_cases(
    bench: &mut QBench,
    cases: &[Conv],
    layouts: &[Layout],
    vary: impl Fn(&mut Quantized, &mut ChaCha8Rng),
    mapping: impl Fn(&mut ChaCha8Rng, &[i64]) -> Mapping,
) -> usize {
    let lanes = isa::tables(bench.isa).iter().map(|t| t.lanes as i64);
    let lanes: Vec<i64> = lanes.collect();
    let mut refusals = 0;
    for (idx, case) in cases.iter().enumerate() {
        let mut found = 0;
        for _ in 0..400 {
            bench.share = pick(&mut bench.rng, &SHARES);
            let rng = &mut bench.rng;
            let mut conv = case.clone();
            let zero_points = [pick(rng, &[0, 128, 255, 3]), pick(rng, &[0, 128, 255]), 77];
            let mut weights = rng.clone();
            quantize(&mut conv, zero_points, |_| weights.random(), rng);
            vary(conv.quantized.as_mut().unwrap(), rng);
            let layouts = [pick(rng, layouts), pick(rng, layouts)];
            let mapping = mapping(rng, &lanes);
            let what = format!("case {idx}, {layouts:?} {:?}", conv.epilogue);
            match bench.conv(&conv, layouts, None, &mapping, &what) {
                Ok(()) => found += 1,
                Err(_) => refusals += 1,
            }
            if found == 2 {
                break;
            }
        }
        assert_eq!(found, 2, "case {idx} on {}", bench.isa);
    }
    refusals
}

#[test]
fn convolutions_of_integers_follow_their_formula() {
    for isa in isas() {
        let mut bench = QBench::new(isa);
        let vary = |quantized: &mut Quantized, rng: &mut ChaCha8Rng| {
            if rng.random_bool(0.25) {
                quantized.y = None;
            }
            if rng.random_bool(0.3) {
                quantized.residual = None;
            }
        };
        let refusals = random_cases(&mut bench, &cases(), &LAYOUTS, vary, random_mapping);
        assert!(
            refusals > 0,
            "random mappings include some that do not apply"
        );
        bench.check();
    }
}

/// The largest products of both signs: sums of 16 bits would saturate, those of 32 do not.
#[test]
fn no_sum_of_a_convolution_saturates() {
    for isa in isas() {
        let mut bench = QBench::new(isa);
        for (weight, zero_point) in [(127, 0), (-127, 0), (-128, 0), (127, 255), (127, 128)] {
            let mut conv = Conv {
                epilogue: Vec::new(),
                ..base([64, 4, 6], 16, 3, 1, 1)
            };
            let rng = &mut bench.rng;
            quantize(&mut conv, [zero_point, 0, 0], |_| weight, rng);
            let quantized = conv.quantized.as_mut().unwrap();
            // Results are the sums themselves, which f32 holds exactly.
            (quantized.y, quantized.x.scale) = (None, 1.0);
            quantized.weight_scales.fill(1.0);
            conv.bias.fill(0.0);
            for lanes in isa::tables(isa).iter().map(|table| table.lanes as i64) {
                let mapping = Mapping::default()
                    .with("lanes", lanes)
                    .with("oc_vectors", 1i64)
                    .with("tile_w", 3i64)
                    .with("tile_h", 1i64)
                    .with("unroll", 1i64);
                let layouts = [Layout::Blocked(16); 2];
                let what = format!("weights {weight}, zero point {zero_point}, lanes {lanes}");
                bench
                    .conv(&conv, layouts, Some(255), &mapping, &what)
                    .unwrap();
            }
        }
        bench.check();
    }
}

/// Scales so small that results are far beyond what i32 holds still give the ends of u8.
#[test]
fn results_far_beyond_the_range_are_its_ends() {
    for isa in isas() {
        let mut bench = QBench::new(isa);
        for sign in [1.0, -1.0] {
            let mut conv = base([16, 4, 6], 16, 1, 1, 0);
            conv.epilogue.clear();
            let mut weights = bench.rng.clone();
            quantize(&mut conv, [0, 7, 0], |_| weights.random(), &mut bench.rng);
            conv.bias.fill(sign * 1e4);
            conv.quantized.as_mut().unwrap().y = Some(Affine {
                scale: 1e-7,
                zero_point: 7,
            });
            let mapping = Mapping::default()
                .with("lanes", isa::widest(isa).lanes as i64)
                .with("oc_vectors", 1i64)
                .with("tile_w", 5i64)
                .with("tile_h", 1i64)
                .with("unroll", 1i64);
            bench
                .conv(&conv, [Layout::Blocked(16); 2], None, &mapping, "far")
                .unwrap();
        }
        bench.check();
    }
}

/// What is proposed untuned is in the space and makes a kernel, whatever the groups.
#[test]
fn default_mappings_of_integers_are_valid_and_make_kernels() {
    let spaces = Spaces::new(&std::collections::BTreeMap::new(), 1).unwrap();
    let grouped = |groups: usize, width: usize| Conv {
        groups,
        ..base([groups * width, 9, 15], groups * width, 3, 1, 1)
    };
    let shapes = [
        base([64, 14, 14], 128, 1, 1, 0),
        base([96, 1, 1], 24, 1, 1, 0),
        grouped(3, 8),
        grouped(3, 3),
        grouped(4, 32),
        grouped(48, 1),
        grouped(21, 1),
    ];
    for isa in Isa::ALL {
        let mut bench = QBench::new(isa);
        for mut conv in cases().into_iter().chain(shapes.clone()) {
            let rng = &mut bench.rng;
            quantize(&mut conv, [128; 3], |_| 1, rng);
            let depthwise = conv.is_depthwise();
            let make = if depthwise {
                Kind::Depthwise
            } else {
                Kind::Conv
            };
            let operation = Operation {
                subgraph: 0,
                name: String::new(),
                kind: make(conv.clone()),
                x: ValueId(0),
                y: ValueId(1),
            };
            let mapping = default_mapping(isa, &operation);
            let space = spaces.of(isa, &operation).unwrap().unwrap();
            let what = format!("{:?} {:?} on {isa}: {mapping}", conv.input, conv.groups);
            space
                .is_valid(&mapping)
                .unwrap_or_else(|e| panic!("{e:?}: {what}"));
            let layouts = ["layout_in", "layout_out"].map(|name| mapping.word(name).unwrap());
            let layouts = layouts.map(|name| name.parse().unwrap());
            bench.conv(&conv, layouts, None, &mapping, &what).unwrap();
        }
    }
}
