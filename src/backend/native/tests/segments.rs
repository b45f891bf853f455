//! Programs that run some rows at a time give, bit by bit, what others give.

use proptest::prelude::*;

use super::kernels::{Bench, base};
use super::run;
use crate::backend::native::kernels::Share;
use crate::backend::native::program::{AssembleError, Segment, Segments};
use crate::backend::native::spec::{
    Concat, Conv, Epilogue, Kind, Map, MapStep, Operand, Pool, Resample,
};
use crate::device::Isa;
use crate::graph::ValueId;
use crate::space::Mapping;

/// One step of a random chain; numbers choose among the values made so far.
#[derive(Debug, Clone)]
pub(super) enum Op {
    Conv {
        kernel: usize,
        stride: usize,
        residual: bool,
        edge: bool,
        tall: bool,
    },
    Winograd {
        side: usize,
        residual: bool,
    },
    Depthwise {
        kernel: usize,
        stride: usize,
        dilation: usize,
    },
    Means,
    Pool {
        kernel: usize,
        stride: usize,
    },
    Add(usize),
    Enlarge,
    Join(usize),
}

pub(super) fn op() -> impl Strategy<Value = Op> {
    let flag = any::<bool>;
    let conv = (1usize..4, 1usize..3, flag(), flag(), flag());
    prop_oneof![
        conv.prop_map(|(kernel, stride, residual, edge, tall)| Op::Conv {
            kernel,
            stride,
            residual,
            edge,
            tall
        }),
        (1usize..3, flag()).prop_map(|(half, residual)| Op::Winograd {
            side: 2 * half,
            residual
        }),
        (2usize..4, 1usize..3, 1usize..3).prop_map(|(kernel, stride, dilation)| {
            Op::Depthwise {
                kernel,
                stride,
                dilation,
            }
        }),
        Just(Op::Means),
        (2usize..4, 1usize..3).prop_map(|(kernel, stride)| Op::Pool { kernel, stride }),
        (0usize..4).prop_map(Op::Add),
        Just(Op::Enlarge),
        (0usize..4).prop_map(Op::Join),
    ]
}

const CHANNELS: usize = 16;

fn mapping(edge: bool, tall: bool) -> Mapping {
    Mapping::default()
        .with("layout_in", "nchw16c")
        .with("layout_out", "nchw16c")
        .with("lanes", 4i64)
        .with("oc_vectors", 2i64)
        .with("tile_w", 2i64)
        .with("tile_h", if tall { 2i64 } else { 1 })
        .with("ic_block", 0i64)
        .with("unroll", 1i64)
        .with("order", if tall { "px" } else { "oc" })
        .with("padding", if edge { "edge" } else { "border" })
}

/// A chain in the making.
pub(super) struct Chain {
    pub(super) bench: Bench,
    values: Vec<(ValueId, [usize; 3])>,
}

impl Chain {
    pub(super) fn of(ops: &[Op]) -> Self {
        let mut bench = Bench::new();
        let dims = [CHANNELS, 24, 9];
        let x = bench.input([1, dims[0], dims[1], dims[2]]);
        let mut chain = Self {
            bench,
            values: vec![(x, dims)],
        };
        // What comes first brings the input to the layout of all others.
        chain.pointwise(None);
        for op in ops {
            chain.add(op);
        }
        chain.bench.publish(chain.last().0);
        chain
    }

    fn last(&self) -> (ValueId, [usize; 3]) {
        self.values[self.values.len() - 1]
    }

    /// Returns an earlier value of the same extents as the last one.
    fn other(&self, back: usize) -> Option<ValueId> {
        let (_, dims) = self.last();
        let earlier = self.values[1..self.values.len() - 1].iter().rev();
        let alike: Vec<ValueId> = earlier.filter(|v| v.1 == dims).map(|v| v.0).collect();
        alike.get(back % alike.len().max(1)).copied()
    }

    fn push(&mut self, kind: Kind, dims: [usize; 3], mapping: Mapping) {
        let (x, _) = self.last();
        let y = self.bench.value([1, dims[0], dims[1], dims[2]]);
        self.bench.push(kind, x, y, mapping);
        self.values.push((y, dims));
    }

    fn conv(&mut self, conv: Conv, mapping: &Mapping) {
        let output = conv.output;
        let conv = self.bench.weighted(conv);
        let kind = if conv.is_depthwise() {
            Kind::Depthwise(conv)
        } else {
            Kind::Conv(conv)
        };
        self.push(kind, output, mapping.clone());
    }

    /// Adds an earlier value to what a convolution gives, if it is to be and there is one.
    fn joined(&self, mut conv: Conv, residual: bool) -> Conv {
        if residual && conv.output == self.last().1 {
            conv.residual = self.other(0);
            let steps = conv.residual.map(|_| Epilogue::AddTensor);
            conv.epilogue.extend(steps);
        }
        conv
    }

    fn pointwise(&mut self, pooled: Option<ValueId>) {
        let conv = Conv {
            pooled,
            ..base(self.last().1, CHANNELS, 1, 1, 0)
        };
        self.conv(conv, &mapping(false, false));
    }

    fn add(&mut self, op: &Op) {
        let (_, dims) = self.last();
        let [c, h, w] = dims;
        let plain = Mapping::default();
        match *op {
            Op::Conv {
                kernel,
                stride,
                residual,
                edge,
                tall,
            } => {
                let conv = base(dims, CHANNELS, kernel, stride, kernel / 2);
                let conv = self.joined(conv, residual);
                self.conv(conv, &mapping(edge, tall));
            }
            Op::Winograd { side, residual } => {
                let conv = self.joined(base(dims, CHANNELS, 3, 1, 1), residual);
                let taps = format!("winograd{side}");
                self.conv(conv, &mapping(false, false).with("taps", taps.as_str()));
            }
            Op::Depthwise {
                kernel,
                stride,
                dilation,
            } => {
                let extent = (kernel - 1) * dilation + 1;
                let out = |n: usize| (n - 1) / stride + 1;
                let conv = Conv {
                    groups: c,
                    dilation: [dilation; 2],
                    pad: [extent / 2; 2],
                    output: [c, out(h), out(w)],
                    ..base(dims, c, kernel, stride, kernel)
                };
                self.conv(conv, &mapping(false, false));
            }
            Op::Means => {
                let pooled = self.bench.value([1, CHANNELS, 1, 1]);
                self.bench.publish(pooled);
                self.pointwise(Some(pooled));
            }
            Op::Pool { kernel, stride } => {
                let out = |n: usize| (n + 1 - kernel) / stride + 1;
                let pool = Pool {
                    average: stride == 1,
                    count_pad: false,
                    kernel: [kernel; 2],
                    stride: [stride; 2],
                    dilation: [1; 2],
                    pad: [1, 0, 0, 1],
                    epilogue: Vec::new(),
                    bytes: [None; 2],
                };
                if h >= kernel && w >= kernel {
                    self.push(Kind::Pool(pool), [c, out(h), out(w)], plain);
                }
            }
            Op::Add(other) => {
                let Some(other) = self.other(other) else {
                    return;
                };
                let map = Map {
                    chain: vec![MapStep::Binary {
                        op: "add",
                        operand: 0,
                    }],
                    operands: vec![Operand::Same(other)],
                    reads: vec![None; 2],
                    writes: None,
                };
                self.push(Kind::Map(map), dims, plain);
            }
            Op::Enlarge => {
                let resample = Resample {
                    rows: (0..2 * h).map(|row| row / 2).collect(),
                    columns: (0..w).collect(),
                };
                if h <= 24 {
                    self.push(Kind::Resample(resample), [c, 2 * h, w], plain);
                }
            }
            Op::Join(other) => {
                let Some(other) = self.other(other) else {
                    return;
                };
                let inputs = vec![self.last().0, other];
                self.push(Kind::Concat(Concat { inputs }), [2 * c, h, w], plain);
                // Back to the channels of all others.
                self.pointwise(None);
            }
        }
    }
}

/// Runs the chain with and without segments; returns whether a window slid.
fn check(ops: &[Op], cut: usize, rows: usize) -> bool {
    let chain = Chain::of(ops);
    let n = chain.values.len() - 1;
    let cut = cut % n;
    let ranges = [(0, cut), (cut + 1, n - 1)];
    let segments = ranges.into_iter().filter(|(first, last)| first <= last);
    let segments = segments.map(|(first, last)| Segment { first, last, rows });
    let segments = Segments(segments.collect());
    let assemble = |segments: &Segments| {
        let isa = Isa::Portable;
        chain.bench.assemble_segmented(isa, Share::Whole, segments)
    };
    let banded = match assemble(&segments) {
        Ok(program) => program,
        Err(AssembleError::Segment { .. }) => return false,
        Err(error) => panic!("{error}"),
    };
    let whole = assemble(&Segments::default()).unwrap();
    let inputs = chain.bench.inputs();
    let expected = run::build_and_run_twice(&whole, &inputs);
    let actual = run::build_and_run_twice(&banded, &inputs);
    assert!(expected == actual, "{segments} differ");
    let mut steps = banded.steps.iter();
    steps.any(|step| step.name.starts_with("slide"))
}

#[test]
fn a_chain_of_convolutions_runs_through_windows_that_slide() {
    let conv = |stride| Op::Conv {
        kernel: 3,
        stride,
        residual: false,
        edge: false,
        tall: true,
    };
    let depthwise = Op::Depthwise {
        kernel: 3,
        stride: 1,
        dilation: 1,
    };
    let ops = [conv(1), depthwise.clone(), conv(2), depthwise, Op::Means];
    for rows in [1, 2, 3] {
        assert!(check(&ops, 5, rows), "{rows}");
    }
    let chain = Chain::of(&ops);
    let arena = |segments: &Segments| {
        let isa = Isa::Portable;
        let program = chain.bench.assemble_segmented(isa, Share::Whole, segments);
        program.unwrap().arena_bytes
    };
    assert!(arena(&"0-5@1".parse().unwrap()) < arena(&Segments::default()));
}

#[test]
fn tiles_of_the_winograd_domain_run_through_windows_whatever_the_rows() {
    let tiles = |side, residual| Op::Winograd { side, residual };
    let depthwise = Op::Depthwise {
        kernel: 3,
        stride: 1,
        dilation: 1,
    };
    // 24 rows are whole tiles, 23 are not.
    let narrow = Op::Pool {
        kernel: 3,
        stride: 1,
    };
    let ops = [
        tiles(2, false),
        depthwise,
        tiles(4, true),
        narrow,
        tiles(4, false),
        tiles(2, true),
    ];
    for rows in [1, 2] {
        assert!(check(&ops, ops.len(), rows), "{rows}");
    }
    // Windows would be as high as the values, but for some.
    for rows in [3, 5] {
        check(&ops, ops.len(), rows);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn segments_of_random_chains_give_the_same_bits(
        ops in prop::collection::vec(op(), 2..8), cut in 0usize..8, rows in 1usize..5,
    ) {
        check(&ops, cut, rows);
    }
}

#[test]
fn segments_are_read_as_they_are_written() {
    for text in ["", "0-7@4", "0-7@4 8-11@2", "3-3@1 9-10@16"] {
        assert_eq!(text.parse::<Segments>().unwrap().to_string(), text);
    }
    for text in [
        "0-7",
        "7-0@1",
        "0-7@0",
        "0-7@4 7-9@2",
        "a-b@c",
        "0-7@4,8-9@1",
        "-1-2@3",
    ] {
        let error = text.parse::<Segments>().unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn what_is_no_run_of_subgraphs_is_refused() {
    let chain = Chain::of(&[Op::Means]);
    for text in ["0-9@1", "5-6@2"] {
        let segments = text.parse().unwrap();
        let program = chain
            .bench
            .assemble_segmented(Isa::Portable, Share::Whole, &segments);
        let error = program.unwrap_err().to_string();
        assert!(
            error.contains(text) && error.contains("no such run"),
            "{error}"
        );
    }
}
