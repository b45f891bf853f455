//! Kernels of integers against their formula, called with buffers of the tests' own making.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::kernels::{apply, f32s};
use super::run;
use super::shares::divide;
use crate::backend::IoSpec;
use crate::backend::native::build::{Builder, Toolchain};
use crate::backend::native::isa;
use crate::backend::native::kernels::{
    ConvGeometry, Kernel, KernelCtx, KernelError, Share, Slot, qconv, qdense, qdepthwise, qmatmul,
    reorder,
};
use crate::backend::native::layout::{Border, Geometry, Layout};
use crate::backend::native::program::{Arg, KernelSource, Program, Step};
use crate::backend::native::render::Renderer;
use crate::backend::native::spec::{Affine, Conv, Dense, Epilogue, MatMul, Quantized};
use crate::device::Isa;
use crate::graph::{DType, Shape, ValueId};
use crate::space::Mapping;

/// What a step must leave in an output.
struct Expected {
    what: String,
    /// Element of the buffer and what `v / y.scale` or, without rounding, `v` must be.
    elements: Vec<(usize, f64)>,
    y: Option<Affine>,
    /// By how much results that are not rounded may differ, beside what f32 rounds.
    tolerance: f64,
}

/// A program of kernels whose operands are constants, each with outputs of its own.
pub(super) struct QBench {
    pub(super) isa: Isa,
    renderer: Renderer,
    program: Program,
    inputs: Vec<Vec<u8>>,
    expected: Vec<Expected>,
    /// How the work of the next kernels is divided.
    pub(super) share: Share,
    pub(super) rng: ChaCha8Rng,
}

/// Numbers of a value in some layout.
pub(super) struct Data {
    geometry: Geometry,
    /// Where it begins among the constants.
    offset: usize,
    /// What the numbers stand for, row-major.
    real: Vec<f64>,
}

impl QBench {
    pub(super) fn new(isa: Isa) -> Self {
        let features = isa::widest(isa).features.split(',');
        Self {
            isa,
            renderer: Renderer::new(&BTreeMap::new()).unwrap(),
            program: Program {
                isa,
                features: features
                    .filter(|f| !f.is_empty())
                    .map(str::to_owned)
                    .collect::<BTreeSet<_>>(),
                kernels: BTreeMap::new(),
                steps: Vec::new(),
                threads: 1,
                arena_bytes: 64,
                fills: Vec::new(),
                resolutions: Vec::new(),
                weights: Vec::new(),
                inputs: Vec::new(),
                outputs: Vec::new(),
            },
            inputs: Vec::new(),
            expected: Vec::new(),
            share: Share::Whole,
            rng: ChaCha8Rng::seed_from_u64(isa as u64 + 11),
        }
    }

    pub(super) fn ctx(&self) -> KernelCtx<'_> {
        KernelCtx {
            renderer: &self.renderer,
            isa: self.isa,
            share: self.share,
        }
    }

    fn constant(&mut self, bytes: &[u8]) -> usize {
        let weights = &mut self.program.weights;
        weights.resize(weights.len().next_multiple_of(64), 0x5a);
        let offset = weights.len();
        weights.extend_from_slice(bytes);
        offset
    }

    /// Adds random u8 numbers; what lies between and around them stands for zero or is arbitrary,
    /// as it does in programs.
    pub(super) fn bytes(&mut self, geometry: Geometry, affine: Affine, only: Option<u8>) -> Data {
        let [n, c, h, w] = geometry.dims;
        let mut bytes = vec![affine.zero_point as u8; geometry.len];
        let view = geometry.view(0);
        let mut real = Vec::new();
        for (n, c, h, w) in indices([n, c, h, w]) {
            let q = only.unwrap_or_else(|| self.rng.random());
            bytes[view.index(n, c, h, w)] = q;
            real.push(f64::from(i32::from(q) - affine.zero_point));
        }
        // Channels beyond the real ones are not zero in programs.
        for (n, h, w) in
            (0..n).flat_map(|n| (0..h).flat_map(move |h| (0..w).map(move |w| (n, h, w))))
        {
            for c in c..c.next_multiple_of(geometry.block) {
                bytes[view.index(n, c, h, w)] = 0xa5;
            }
        }
        Data {
            geometry,
            offset: self.constant(&bytes),
            real,
        }
    }

    /// Adds random f32 numbers.
    pub(super) fn floats(&mut self, geometry: Geometry) -> Data {
        let mut numbers = vec![0f32; geometry.len];
        let view = geometry.view(0);
        let mut real = Vec::new();
        for (n, c, h, w) in indices(geometry.dims) {
            let v: f32 = self.rng.random_range(-1.0..1.0);
            numbers[view.index(n, c, h, w)] = v;
            real.push(f64::from(v));
        }
        let bytes: Vec<u8> = numbers.iter().flat_map(|v| v.to_le_bytes()).collect();
        Data {
            geometry,
            offset: self.constant(&bytes),
            real,
        }
    }

    fn output(
        &mut self,
        what: String,
        dtype: DType,
        n: usize,
        elements: Vec<(usize, f64)>,
        y: Option<Affine>,
        tolerance: f64,
    ) -> Arg {
        self.program.outputs.push(IoSpec {
            name: what.clone(),
            dtype,
            shape: Shape(vec![n]),
        });
        self.expected.push(Expected {
            what,
            elements,
            y,
            tolerance,
        });
        Arg::Output(self.program.outputs.len() - 1)
    }

    /// Adds a convolution whose input lies in `layouts[0]` and whose results in `layouts[1]`, and
    /// what it must give. The program stays as it is if the kernel refuses.
    pub(super) fn conv(
        &mut self,
        conv: &Conv,
        layouts: [Layout; 2],
        x_only: Option<u8>,
        mapping: &Mapping,
        what: &str,
    ) -> Result<(), KernelError> {
        let [top, left, bottom, right] = conv.margins();
        let border = Border {
            top,
            left,
            bottom,
            right,
            fill: 0,
        };
        let [ic, ih, iw] = conv.input;
        let [oc, oh, ow] = conv.output;
        let plain = Border::default();
        let y_dims = [conv.n, oc, oh, ow];
        let geometry = ConvGeometry {
            x: Geometry::new([conv.n, ic, ih, iw], layouts[0], border),
            y: Geometry::new(y_dims, layouts[1], plain),
            residual: conv
                .residual
                .map(|_| Geometry::new(y_dims, layouts[1], border)),
            x_is_exclusive: false,
        };
        let kernel = if conv.is_depthwise() {
            qdepthwise(self.ctx(), conv, mapping, &geometry)?
        } else {
            qconv(self.ctx(), conv, mapping, &geometry)?
        };
        self.call(
            conv,
            &geometry,
            x_only,
            kernel,
            &format!("{what} {mapping}"),
        );
        Ok(())
    }

    /// Adds a dense layer, and what it must give: what `conv` gives, whose batches are its rows.
    pub(super) fn dense(&mut self, conv: &Conv, dense: &Dense, mapping: &Mapping) {
        let kernel = qdense(self.ctx(), dense, mapping).unwrap();
        let place = |c: usize| Geometry::new([conv.n, c, 1, 1], Layout::Flat, Border::default());
        self.call(
            conv,
            &places(conv, place),
            None,
            kernel,
            &format!("dense {mapping}"),
        );
    }

    /// Adds a product, and what it must give: what `conv` gives, whose pixels are its rows.
    pub(super) fn matmul(&mut self, conv: &Conv, matmul: &MatMul, mapping: &Mapping) {
        let kernel = qmatmul(self.ctx(), matmul, mapping).unwrap();
        let rows = conv.output[2];
        let place = |c: usize| Geometry::new([1, c, 1, rows], Layout::Nhwc, Border::default());
        let geometry = places(conv, place);
        assert_eq!(
            geometry.x.len,
            conv.input[0] * rows,
            "rows lie one after the other"
        );
        self.call(conv, &geometry, None, kernel, &format!("product {mapping}"));
    }

    /// Adds a copy between layouts of elements of that many bytes, through the arena: each is at its
    /// place, and what is around rows and columns is as it was.
    pub(super) fn reorder(&mut self, x: Geometry, y: Geometry, element: usize) {
        let kernel = reorder(self.ctx(), &x, &y, element).unwrap();
        let bytes: Vec<u8> = (0..x.len * element).map(|_| self.rng.random()).collect();
        let (from, to) = (x.view(0), y.view(0));
        let mut expected = vec![Some(0); y.len * element];
        for (n, c, h, w) in indices(y.dims) {
            let (from, to) = (from.index(n, c, h, w), to.index(n, c, h, w));
            for byte in 0..element {
                expected[to * element + byte] = Some(bytes[from * element + byte]);
            }
        }
        // Behind the last channel there may be anything.
        let [n, c, h, w] = y.dims;
        for (n, c, h, w) in indices([n, c.next_multiple_of(y.block), h, w]).filter(|at| at.1 >= c) {
            let at = to.index(n, c, h, w) * element;
            expected[at..at + element].fill(None);
        }
        let elements = expected.iter().enumerate();
        let elements = elements.filter_map(|(at, byte)| Some((at, f64::from((*byte)?))));
        let elements = elements.collect();
        let affine = Affine {
            scale: 1.0,
            zero_point: 0,
        };
        let n_bytes = y.len * element;
        let layouts = format!("{} {:?} to {} {:?}", x.layout, x.border, y.layout, y.border);
        let what = format!("{:?} of {element} bytes, {layouts}", x.dims);
        let output = self.output(what, DType::U8, n_bytes, elements, Some(affine), 0.0);
        let from = if x.origin() == 0 {
            self.inputs.push(bytes);
            Arg::Input(self.inputs.len() - 1)
        } else {
            Arg::Weights(self.constant(&bytes) + x.origin() * element)
        };
        let at = self.program.arena_bytes;
        self.program.arena_bytes += n_bytes.next_multiple_of(64);
        let place = |offset: usize| Arg::Arena((at + offset) as isize);
        self.divided(kernel, vec![from, place(y.origin() * element)]);
        let whole = Geometry::external([1, 1, 1, n_bytes]);
        let copy = reorder(self.ctx(), &whole, &whole, 1).unwrap();
        self.divided(copy, vec![place(0), output]);
    }

    /// Adds a step of a kernel that may take a range of its work.
    fn divided(&mut self, kernel: Kernel, mut args: Vec<Arg>) {
        if kernel.shares.is_some() {
            args.extend([Arg::First, Arg::End]);
        }
        self.step(kernel, args);
    }

    /// Calls a kernel of a convolution, and says what it must give.
    fn call(
        &mut self,
        conv: &Conv,
        geometry: &ConvGeometry,
        x_only: Option<u8>,
        kernel: Kernel,
        what: &str,
    ) {
        let quantized = conv.quantized.clone().unwrap();
        let [oc, oh, ow] = conv.output;
        let y_dims = [conv.n, oc, oh, ow];
        let residual = geometry.residual.map(|g| match quantized.residual {
            Some(affine) => self.bytes(g, affine, None),
            None => self.floats(g),
        });
        let x = self.bytes(geometry.x, quantized.x, x_only);
        let residual_scale = quantized.residual.map_or(1.0, |r| f64::from(r.scale));
        let reals: Option<Vec<f64>> = residual
            .as_ref()
            .map(|r| r.real.iter().map(|v| v * residual_scale).collect());
        let results = interpret(conv, &quantized, &x.real, reals.as_deref());
        let what = format!("{what} on {}: {:?} {:?}", self.isa, conv.input, conv.output);
        let view = geometry.y.view(0);
        let places = indices(y_dims).map(|(n, c, h, w)| view.index(n, c, h, w));
        let dtype = if quantized.y.is_some() {
            DType::U8
        } else {
            DType::F32
        };
        let scale = quantized.y.map_or(1.0, |y| f64::from(y.scale));
        let mut y = None;
        if conv.stored {
            let elements = places.zip(results.iter().map(|v| v / scale)).collect();
            y = Some(self.output(
                what.clone(),
                dtype,
                geometry.y.len,
                elements,
                quantized.y,
                0.0,
            ));
        }
        let mut pooled = None;
        if conv.pooled.is_some() {
            let rounded = results.iter().map(|&v| match quantized.y {
                Some(y) => scale * (round(v / scale, y) - f64::from(y.zero_point)),
                None => v,
            });
            let rounded: Vec<f64> = rounded.collect();
            // One result in a mean may lie next to a tie.
            let tolerance = quantized.y.map_or(0.0, |_| scale / (oh * ow) as f64);
            let means = rounded
                .chunks(oh * ow)
                .map(|c| c.iter().sum::<f64>() / (oh * ow) as f64);
            let row = oc.next_multiple_of(32);
            let elements = means.enumerate().map(|(i, v)| (i / oc * row + i % oc, v));
            let elements = elements.collect();
            pooled = Some(self.output(
                format!("means of {what}"),
                DType::F32,
                conv.n * row,
                elements,
                None,
                tolerance,
            ));
        }
        let weights = self.constant(&kernel.weights);
        let place =
            |data: &Data, bytes: usize| Arg::Weights(data.offset + data.geometry.origin() * bytes);
        let args = kernel.slots.iter().map(|slot| match slot {
            Slot::Input | Slot::Source(0) => place(&x, 1),
            Slot::Weights => Arg::Weights(weights),
            Slot::Output | Slot::Result(0) => y.unwrap_or(Arg::Arena(0)),
            Slot::Residual | Slot::Source(_) => {
                let bytes = if quantized.residual.is_some() { 1 } else { 4 };
                place(residual.as_ref().unwrap(), bytes)
            }
            Slot::Pooled => pooled.unwrap(),
            Slot::First => Arg::First,
            Slot::End => Arg::End,
            other => panic!("unexpected {other:?}"),
        });
        let args = args.collect();
        self.step(kernel, args);
    }

    pub(super) fn step(&mut self, kernel: Kernel, args: Vec<Arg>) {
        self.program.steps.push(Step {
            name: "test".to_owned(),
            symbol: kernel.symbol(),
            args,
            subgraph: None,
            conversion: None,
            shares: kernel.shares,
            has_barrier: false,
            traces: Vec::new(),
        });
        self.program.kernels.insert(
            kernel.symbol(),
            KernelSource {
                digest: kernel.digest,
                parameters: kernel.parameter_types().collect(),
                subgraph: None,
                source: kernel.source,
            },
        );
    }

    /// Builds and runs the program, and compares every output; buffers end, then begin, where
    /// nothing may be read or written.
    pub(super) fn check(&self) {
        let dir = tempfile::tempdir().unwrap();
        let toolchain = Toolchain::discover(&PathBuf::from("rustc")).unwrap();
        let builder = Builder::open(toolchain, dir.path(), 1, Duration::from_mins(5)).unwrap();
        let mut program = self.program.clone();
        divide(&mut program, &mut self.rng.clone());
        let packed = builder.pack(program.clone()).unwrap();
        let artifact = builder.build(packed, 2).unwrap().unwrap();
        for at_end in [true, false] {
            let outputs = run::run_fenced(&program, &artifact, &self.inputs, at_end);
            for (expected, bytes) in self.expected.iter().zip(outputs) {
                expected.check(&bytes);
            }
        }
        let [first, second] = run::run_twice(&program, &artifact, &self.inputs);
        assert_eq!(first, second);
    }
}

impl Expected {
    fn check(&self, bytes: &[u8]) {
        assert!(!self.elements.is_empty());
        let Some(y) = self.y else {
            let actual = f32s(bytes);
            for &(at, expected) in &self.elements {
                let error = (f64::from(actual[at]) - expected).abs();
                let what = (&self.what, at, actual[at], expected);
                assert!(
                    error <= self.tolerance + 1e-5 * expected.abs().max(1.0),
                    "{what:?}"
                );
            }
            return;
        };
        for &(at, value) in &self.elements {
            let (actual, expected) = (f64::from(bytes[at]), round(value, y));
            let is_tie = (value - value.floor() - 0.5).abs() < 1e-3;
            let what = (&self.what, at, actual, value, y);
            assert!(
                (actual - expected).abs() <= f64::from(u8::from(is_tie)),
                "{what:?}"
            );
        }
    }
}

/// Places without borders.
fn places(conv: &Conv, place: impl Fn(usize) -> Geometry) -> ConvGeometry {
    ConvGeometry {
        x: place(conv.input[0]),
        y: place(conv.output[0]),
        residual: conv.residual.map(|_| place(conv.output[0])),
        x_is_exclusive: false,
    }
}

/// Rounds a multiple of a scale to u8.
fn round(value: f64, y: Affine) -> f64 {
    (value.round_ties_even() + f64::from(y.zero_point)).clamp(0.0, 255.0)
}

fn indices([n, c, h, w]: [usize; 4]) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    (0..n * c * h * w).map(move |i| (i / (c * h * w), i / (h * w) % c, i / w % h, i % w))
}

/// A convolution by the formula of [`Quantized`]; the residual is in real units.
fn interpret(conv: &Conv, quantized: &Quantized, x: &[f64], residual: Option<&[f64]>) -> Vec<f64> {
    let ([ic, ih, iw], [oc, oh, ow], [kh, kw]) = (conv.input, conv.output, conv.kernel);
    let (gi, go) = (ic / conv.groups, oc / conv.groups);
    let mut results = Vec::new();
    for (n, o, py, px) in indices([conv.n, oc, oh, ow]) {
        let mut sum = 0i64;
        for (_, i, ky, kx) in indices([1, gi, kh, kw]) {
            let sy = (py * conv.stride[0] + ky * conv.dilation[0]).wrapping_sub(conv.pad[0]);
            let sx = (px * conv.stride[1] + kx * conv.dilation[1]).wrapping_sub(conv.pad[1]);
            if sy < ih && sx < iw {
                let channel = o / go * gi + i;
                let value = x[((n * ic + channel) * ih + sy) * iw + sx];
                let weight = quantized.weights[((o * gi + i) * kh + ky) * kw + kx];
                sum += value as i64 * i64::from(weight);
            }
        }
        let sum = i32::try_from(sum).unwrap();
        let factor = quantized.x.scale * quantized.weight_scales[o];
        let v = f64::from(sum) * f64::from(factor) + f64::from(conv.bias[o]);
        let residual = residual.map(|r| r[results.len()] as f32);
        let apply = |v: f64, op: &Epilogue| f64::from(apply(op, v as f32, residual));
        results.push(conv.epilogue.iter().fold(v, apply));
    }
    results
}

/// Makes a convolution one of integers, with random weights, scales that use the range of u8, and
/// zero points from `zero_points`: of the input, the result and the residual.
pub(super) fn quantize(
    conv: &mut Conv,
    zero_points: [i32; 3],
    weights: impl FnMut(usize) -> i8,
    rng: &mut ChaCha8Rng,
) {
    let per_channel = conv.input[0] / conv.groups * conv.kernel[0] * conv.kernel[1];
    let n = conv.output[0] * per_channel;
    let x = Affine {
        scale: 0.02,
        zero_point: zero_points[0],
    };
    let weights: Vec<i8> = (0..n).map(weights).collect();
    let weight_scales: Vec<f32> = (0..conv.output[0])
        .map(|_| rng.random_range(0.001..0.01))
        .collect();
    conv.bias = (0..conv.output[0])
        .map(|_| rng.random_range(-1.0..1.0))
        .collect();
    let spread = 0.02 * 0.01 * 100.0 * 70.0 * (per_channel as f32).sqrt() + 1.0;
    conv.quantized = Some(Quantized {
        x,
        weights,
        weight_scales,
        y: Some(Affine {
            scale: spread / 128.0,
            zero_point: zero_points[1],
        }),
        residual: conv.residual.map(|_: ValueId| Affine {
            scale: 0.013,
            zero_point: zero_points[2],
        }),
        sums: false,
    });
}
