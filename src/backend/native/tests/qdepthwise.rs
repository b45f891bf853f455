//! Depthwise convolutions of integers.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::kernels::{SOME, base, isas};
use super::qbench::{QBench, quantize};
use super::qconv::{clip, pick, random_cases};
use crate::backend::native::isa;
use crate::backend::native::layout::Layout;
use crate::backend::native::spec::{Conv, Epilogue, Quantized};
use crate::space::Mapping;

fn depthwise(channels: usize, size: [usize; 2], kernel: usize, stride: usize) -> Conv {
    let [h, w] = size;
    Conv {
        groups: channels,
        ..base([channels, h, w], channels, kernel, stride, kernel / 2)
    }
}

fn cases() -> Vec<Conv> {
    let with = |conv: Conv, epilogue: Vec<Epilogue>| Conv { epilogue, ..conv };
    vec![
        depthwise(16, [9, 14], 3, 1),
        with(depthwise(37, [7, 9], 3, 2), vec![Epilogue::HardSwish]),
        with(depthwise(24, [8, 8], 5, 1), vec![clip(0.0, 6.0)]),
        with(depthwise(32, [11, 13], 5, 2), vec![]),
        with(depthwise(16, [9, 20], 9, 1), vec![Epilogue::Tanh]),
        with(depthwise(16, [7, 9], 7, 3), vec![Epilogue::HardSwish]),
        Conv {
            n: 2,
            kernel: [2, 4],
            dilation: [3, 1],
            pad: [1, 0],
            output: [20, 7, 5],
            ..depthwise(20, [8, 8], 3, 1)
        },
        Conv {
            dilation: [1, 2],
            pad: [1, 2],
            ..depthwise(16, [6, 9], 3, 1)
        },
        Conv {
            residual: SOME,
            epilogue: vec![Epilogue::AddTensor, Epilogue::Relu],
            ..depthwise(19, [6, 9], 3, 1)
        },
        Conv {
            pooled: SOME,
            n: 2,
            epilogue: vec![Epilogue::HardSwish],
            ..depthwise(40, [7, 7], 5, 1)
        },
        Conv {
            pooled: SOME,
            stored: false,
            ..depthwise(16, [7, 7], 3, 1)
        },
        depthwise(48, [1, 1], 3, 1),
    ]
}

#[test]
fn depthwise_convolutions_of_integers_follow_their_formula() {
    const LAYOUTS: [Layout; 5] = [
        Layout::Blocked(16),
        Layout::Blocked(16),
        Layout::Blocked(8),
        Layout::Blocked(32),
        Layout::Nhwc,
    ];
    for isa in isas() {
        let mut bench = QBench::new(isa);
        let vary = |quantized: &mut Quantized, rng: &mut ChaCha8Rng| {
            if rng.random_bool(0.2) {
                quantized.y = None;
            }
        };
        let mapping = |rng: &mut ChaCha8Rng, lanes: &[i64]| {
            Mapping::default()
                .with("lanes", pick(rng, lanes))
                .with("tile_w", rng.random_range(1..=12i64))
                .with("tile_h", rng.random_range(1..=4i64))
                .with("order", pick(rng, &["oc", "row"]))
        };
        random_cases(&mut bench, &cases(), &LAYOUTS, vary, mapping);
        bench.check();
    }
}

/// Sums of the largest products, in each path that a layout chooses.
#[test]
fn no_sum_of_a_depthwise_convolution_saturates() {
    for isa in isas() {
        let mut bench = QBench::new(isa);
        for (weight, layout) in [(127, 16), (-128, 16), (127, 32), (-128, 32)] {
            let mut conv = with_no_epilogue(depthwise(32, [6, 9], 5, 1));
            quantize(&mut conv, [0; 3], |_| weight, &mut bench.rng);
            let quantized = conv.quantized.as_mut().unwrap();
            // Results are the sums themselves, which f32 holds exactly.
            (quantized.y, quantized.x.scale) = (None, 1.0);
            quantized.weight_scales.fill(1.0);
            conv.bias.fill(0.0);
            for lanes in isa::tables(isa).iter().map(|table| table.lanes as i64) {
                let mapping = Mapping::default()
                    .with("lanes", lanes)
                    .with("tile_w", 4i64)
                    .with("tile_h", 2i64);
                let layouts = [Layout::Blocked(layout); 2];
                let what = format!("weights {weight}, blocks of {layout}");
                bench
                    .conv(&conv, layouts, Some(255), &mapping, &what)
                    .unwrap();
            }
        }
        bench.check();
    }
}

fn with_no_epilogue(conv: Conv) -> Conv {
    Conv {
        epilogue: Vec::new(),
        ..conv
    }
}
