//! Recurrent operators against their definition, with constant and with computed weights.

use super::node::{NodeTest, f32s, tensor};
use crate::graph::{Attribute, Tensor, TensorData};

const STEPS: usize = 5;
const BATCH: usize = 2;
const INPUTS: usize = 3;
/// More than a block, and no multiple of a vector.
const HIDDEN: usize = 18;

#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "attributes of a node")]
struct Case {
    op: &'static str,
    direction: &'static str,
    batch_first: bool,
    clip: f32,
    couples: bool,
    resets_late: bool,
    peephole: bool,
    lengths: Option<[i32; BATCH]>,
}

const LSTM: Case = Case {
    op: "LSTM",
    direction: "forward",
    batch_first: false,
    clip: 0.0,
    couples: false,
    resets_late: false,
    peephole: false,
    lengths: None,
};

fn numbers(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 16_777_216.0 - 0.5
        })
        .collect()
}

impl Case {
    fn gates(self) -> usize {
        match self.op {
            "LSTM" => 4,
            "GRU" => 3,
            _ => 1,
        }
    }

    fn n_directions(self) -> usize {
        if self.direction == "bidirectional" {
            2
        } else {
            1
        }
    }

    /// Runs one step of one direction; side 0 of weights and biases is the input's, side 1 the
    /// state's.
    fn step(self, d: usize, x: &[f32], h: &mut [f32], c: &mut [f32], weights: &[Vec<f32>]) {
        let n = self.gates() * HIDDEN;
        let dot = |side: usize, row: usize, v: &[f32]| -> f32 {
            let row = (d * n + row) * v.len();
            weights[side][row..row + v.len()]
                .iter()
                .zip(v)
                .map(|(w, v)| w * v)
                .sum()
        };
        let bias = |side: usize, row: usize| weights[2][(2 * d + side) * n + row];
        let p = |part: usize, j: usize| {
            if self.peephole {
                weights[3][(3 * d + part) * HIDDEN + j]
            } else {
                0.0
            }
        };
        let clip = |v: f32| {
            if self.clip > 0.0 {
                v.clamp(-self.clip, self.clip)
            } else {
                v
            }
        };
        let sigmoid = |v: f32| 1.0 / (1.0 + (-clip(v)).exp());
        let tanh = |v: f32| clip(v).tanh();
        let old = h.to_vec();
        let sum = |gate: usize, j: usize| {
            let row = gate * HIDDEN + j;
            dot(0, row, x) + dot(1, row, &old) + bias(0, row) + bias(1, row)
        };
        let reset: Vec<f32> = match self.op {
            "GRU" => (0..HIDDEN).map(|j| sigmoid(sum(1, j))).collect(),
            _ => vec![1.0; HIDDEN],
        };
        let kept: Vec<f32> = old.iter().zip(&reset).map(|(h, r)| h * r).collect();
        for j in 0..HIDDEN {
            match self.op {
                "LSTM" => {
                    let i = sigmoid(sum(0, j) + p(0, j) * c[j]);
                    let f = sigmoid(sum(2, j) + p(2, j) * c[j]);
                    let f = if self.couples { 1.0 - i } else { f };
                    c[j] = f * c[j] + i * tanh(sum(3, j));
                    h[j] = sigmoid(sum(1, j) + p(1, j) * c[j]) * tanh(c[j]);
                }
                "GRU" => {
                    let (z, row) = (sigmoid(sum(0, j)), 2 * HIDDEN + j);
                    let back = if self.resets_late {
                        reset[j] * (dot(1, row, &old) + bias(1, row))
                    } else {
                        dot(1, row, &kept) + bias(1, row)
                    };
                    h[j] = (1.0 - z) * tanh(dot(0, row, x) + bias(0, row) + back) + z * old[j];
                }
                _ => h[j] = tanh(sum(0, j)),
            }
        }
    }

    /// Compares the node with the definition.
    fn check(self) {
        let (d, n) = (self.n_directions(), self.gates() * HIDDEN);
        let at = |i: usize, b: usize, count: usize| {
            if self.batch_first {
                b * count + i
            } else {
                i * BATCH + b
            }
        };
        let x = numbers(STEPS * BATCH * INPUTS, 1);
        let mut weights = vec![
            numbers(d * n * INPUTS, 2),
            numbers(d * n * HIDDEN, 3),
            numbers(2 * d * n, 4),
        ];
        weights.push(numbers(3 * d * HIDDEN, 5));
        let (h0, c0) = (
            numbers(d * BATCH * HIDDEN, 6),
            numbers(d * BATCH * HIDDEN, 7),
        );
        let (mut last_h, mut last_c) = (h0.clone(), c0.clone());
        let mut y = vec![0.0; STEPS * d * BATCH * HIDDEN];
        for (d_idx, b) in (0..d).flat_map(|d| (0..BATCH).map(move |b| (d, b))) {
            let state = at(d_idx, b, d) * HIDDEN;
            let h = &mut last_h[state..state + HIDDEN];
            let c = &mut last_c[state..state + HIDDEN];
            let steps = self.lengths.map_or(STEPS, |lengths| lengths[b] as usize);
            for s in 0..steps {
                let is_reverse = self.direction == "reverse" || d_idx == 1;
                let t = if is_reverse { steps - 1 - s } else { s };
                let from = at(t, b, STEPS) * INPUTS;
                self.step(d_idx, &x[from..from + INPUTS], h, c, &weights);
                let to = if self.batch_first {
                    (b * STEPS + t) * d + d_idx
                } else {
                    (t * d + d_idx) * BATCH + b
                } * HIDDEN;
                y[to..to + HIDDEN].copy_from_slice(h);
            }
        }
        let (x_dims, y_dims, state_dims) = if self.batch_first {
            (
                [BATCH, STEPS, INPUTS],
                [BATCH, STEPS, d, HIDDEN],
                [BATCH, d, HIDDEN],
            )
        } else {
            (
                [STEPS, BATCH, INPUTS],
                [STEPS, d, BATCH, HIDDEN],
                [d, BATCH, HIDDEN],
            )
        };
        let mut expected = vec![f32s(&y_dims, &y), f32s(&state_dims, &last_h)];
        let is_lstm = self.op == "LSTM";
        if is_lstm {
            expected.push(f32s(&state_dims, &last_c));
        }
        let dims: [&[usize]; 4] = [
            &[d, n, INPUTS],
            &[d, n, HIDDEN],
            &[d, 2 * n],
            &[d, 3 * HIDDEN],
        ];
        for is_constant in [true, false] {
            let give = |test: NodeTest, tensor: Tensor| {
                if is_constant {
                    test.constant(tensor)
                } else {
                    test.input(tensor)
                }
            };
            let mut test = self.node().input(f32s(&x_dims, &x));
            for idx in 0..3 {
                test = give(test, f32s(dims[idx], &weights[idx]));
            }
            test = match self.lengths {
                Some(lengths) => test.input(tensor(&[BATCH], TensorData::I32(lengths.to_vec()))),
                None => test.nothing(),
            };
            test = test.input(f32s(&state_dims, &h0));
            if is_lstm {
                test = test.input(f32s(&state_dims, &c0));
            }
            if self.peephole {
                test = give(test, f32s(dims[3], &weights[3]));
            }
            test.gives(2e-6, &expected);
        }
    }

    fn node(self) -> NodeTest {
        let int = |value: bool| Attribute::Int(value.into());
        let mut test = NodeTest::new(self.op)
            .attribute("hidden_size", Attribute::Int(HIDDEN as i64))
            .attribute("direction", Attribute::String(self.direction.to_owned()))
            .attribute("layout", int(self.batch_first))
            .attribute("input_forget", int(self.couples))
            .attribute("linear_before_reset", int(self.resets_late));
        if self.clip > 0.0 {
            test = test.attribute("clip", Attribute::Float(self.clip));
        }
        test
    }
}

#[test]
fn lstm_runs_both_ways_in_both_layouts() {
    LSTM.check();
    Case {
        direction: "bidirectional",
        batch_first: true,
        ..LSTM
    }
    .check();
}

#[test]
fn lstm_gates_look_at_the_cell_and_are_clipped() {
    Case {
        direction: "reverse",
        peephole: true,
        couples: true,
        clip: 0.3,
        ..LSTM
    }
    .check();
}

#[test]
fn sequences_end_where_they_say() {
    Case {
        direction: "bidirectional",
        lengths: Some([5, 2]),
        ..LSTM
    }
    .check();
}

#[test]
fn gru_resets_before_or_after_the_product() {
    for resets_late in [false, true] {
        Case {
            op: "GRU",
            direction: "bidirectional",
            resets_late,
            ..LSTM
        }
        .check();
    }
}

#[test]
fn rnn_takes_other_activations() {
    Case { op: "RNN", ..LSTM }.check();
    let one = |value: f32| f32s(&[1, 1, 1], &[value]);
    NodeTest::new("RNN")
        .attribute("hidden_size", Attribute::Int(1))
        .attribute("activations", Attribute::Strings(vec!["Affine".to_owned()]))
        .attribute("activation_alpha", Attribute::Floats(vec![2.0]))
        .attribute("activation_beta", Attribute::Floats(vec![0.5]))
        .input(one(3.0))
        .constant(one(4.0))
        .constant(one(0.0))
        .gives(0.0, &[f32s(&[1, 1, 1, 1], &[24.5])]);
}
