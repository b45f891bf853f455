//! Recurrence of f32 with constant weights: packed once, computed by vectors over hidden units.
//!
//! Hidden units are cut into blocks of 16, the longest vector; per block, input element and gate
//! 16 weights lie together, so that a step reads all weights in order and once.

use serde_json::{Value, json};

use super::cell::{Activation, Cell, Recurrence};
use crate::backend::native::lower::loops::node::{Known, LoopNode};
use crate::backend::native::spec::{Operation, literal};
use crate::graph::{DType, Shape, Tensor, TensorData};

/// Hidden units of a block.
const BLOCK: usize = 16;

/// Constant operands.
struct Weights<'a> {
    w: &'a [f32],
    r: &'a [f32],
    b: Option<&'a [f32]>,
    p: Option<&'a [f32]>,
}

/// Where the parts of one direction's weights start.
#[derive(Debug, Clone, Copy)]
struct Parts {
    bias: usize,
    w: usize,
    r: usize,
    late_bias: usize,
    peephole: usize,
}

/// Makes the operation; `None` if the node needs the plain loops.
pub(super) fn operation<'a>(node: &LoopNode<'a>, cell: &Cell<'a>) -> Option<Operation> {
    let weights = constants(cell)?;
    let activations: Vec<Vec<String>> = cell
        .directions
        .iter()
        .map(|direction| direction.activations.iter().map(vector).collect())
        .collect::<Option<_>>()?;
    let mut packed = Vec::new();
    let mut directions = Vec::new();
    for (d, direction) in cell.directions.iter().enumerate() {
        let parts = pack(cell, &weights, d, &mut packed);
        directions.push(json!({
            "reverse": direction.is_reverse, "activations": activations[d],
            "bias": parts.bias, "w": parts.w, "r": parts.r,
            "late_bias": parts.late_bias, "peephole": parts.peephole,
        }));
    }
    let tensor = Tensor::new(Shape(vec![packed.len()]), TensorData::F32(packed)).ok()?;
    let mut inputs = vec![cell.x];
    let mut state = |known: Option<Known<'a>>| -> Value {
        let Some(known) = known else {
            return Value::Null;
        };
        inputs.push(known);
        json!(format!("x{}", inputs.len() - 1))
    };
    let (h, c) = (state(cell.h), state(cell.c));
    let outputs: Vec<Known<'_>> = cell.outputs.iter().flatten().copied().collect();
    let mut n_results = 0;
    let results: Vec<Value> = cell
        .outputs
        .iter()
        .map(|known| {
            known.map_or(Value::Null, |_| {
                n_results += 1;
                json!(format!("y{}", n_results - 1))
            })
        })
        .collect();
    let [x_step, _] = cell.x_strides();
    let gates = cell.recurrence.gates();
    let blocks = cell.hidden.div_ceil(BLOCK);
    let rows = cell.steps * cell.batch;
    let facts = json!({
        "recurrence": match cell.recurrence {
            Recurrence::Lstm => "lstm",
            Recurrence::Gru => "gru",
            Recurrence::Rnn => "rnn",
        },
        "gates": gates, "blocks": blocks, "block": BLOCK, "rows": rows,
        "steps": cell.steps, "batch": cell.batch, "inputs": cell.inputs, "hidden": cell.hidden,
        // Rows of products lie as those of the input.
        "row_step": x_step / cell.inputs.max(1),
        "row_batch": if cell.batch_first { cell.steps } else { 1 },
        "y": cell.y_strides(), "state": cell.state_strides(),
        "weights": format!("x{}", inputs.len()), "h": h, "c": c, "results": results, "directions": directions,
        "peephole": cell.p.is_some(),
        "clip": cell.clip.map(literal), "couples": cell.couples, "resets_late": cell.resets_late,
    });
    let room = (rows * gates + 5) * blocks * BLOCK * 4;
    Some(node.operation_with(
        "loops/recurrent_packed.rs.j2",
        facts,
        &inputs,
        vec![tensor],
        &outputs,
        room,
    ))
}

fn constants<'a>(cell: &Cell<'a>) -> Option<Weights<'a>> {
    let is_simple = cell.x.dtype == DType::F32 && cell.lengths.is_none();
    let is_empty = cell.steps * cell.batch * cell.inputs * cell.hidden == 0;
    if !is_simple || is_empty || cell.outputs.iter().all(Option::is_none) {
        return None;
    }
    // What is given must be constant.
    let optional = |known: Option<Known<'a>>| match known {
        None => Some(None),
        Some(known) => known.data?.as_f32().map(Some),
    };
    Some(Weights {
        w: cell.w.data?.as_f32()?,
        r: cell.r.data?.as_f32()?,
        b: optional(cell.b)?,
        p: optional(cell.p)?,
    })
}

/// Returns what an activation makes of a vector `v`, if vectors have it.
fn vector(activation: &Activation) -> Option<String> {
    let (alpha, beta) = (literal(activation.alpha), literal(activation.beta));
    Some(match activation.name.as_str() {
        "sigmoid" => "sigmoid!(v)".to_owned(),
        "tanh" => "tanh!(v)".to_owned(),
        "relu" => "max!(v, zero!())".to_owned(),
        "affine" => format!("fma!(v, splat!({alpha}), splat!({beta}))"),
        "scaledtanh" => {
            format!("mul!(splat!({alpha}), tanh!(mul!(v, splat!({beta}))))")
        }
        "hardsigmoid" => {
            format!("min!(max!(fma!(v, splat!({alpha}), splat!({beta})), zero!()), splat!(1.0))")
        }
        _ => return None,
    })
}

/// Appends the weights of a direction.
fn pack(cell: &Cell<'_>, weights: &Weights<'_>, d: usize, packed: &mut Vec<f32>) -> Parts {
    let (gates, hidden, inputs) = (cell.recurrence.gates(), cell.hidden, cell.inputs);
    let n = gates * hidden;
    let blocks = hidden.div_ceil(BLOCK);
    let bias = |side: usize, gate: usize, unit: usize| {
        weights
            .b
            .map_or(0.0, |b| b[(2 * d + side) * n + gate * hidden + unit])
    };
    // The bias of what the reset gate multiplies stays apart.
    let is_late = |gate: usize| cell.recurrence == Recurrence::Gru && cell.resets_late && gate == 2;
    let mut table = |gates: &[usize], depth: usize, of: &dyn Fn(usize, usize, usize) -> f32| {
        let start = packed.len();
        for block in 0..blocks {
            for k in 0..depth {
                for &gate in gates {
                    for lane in 0..BLOCK {
                        let unit = block * BLOCK + lane;
                        packed.push(if unit < hidden {
                            of(gate, unit, k)
                        } else {
                            0.0
                        });
                    }
                }
            }
        }
        start
    };
    let all: Vec<usize> = (0..gates).collect();
    let from_input = |gate, unit, k| weights.w[(d * n + gate * hidden + unit) * inputs + k];
    let from_state = |gate, unit, k| weights.r[(d * n + gate * hidden + unit) * hidden + k];
    let start_bias = table(&all, 1, &|gate, unit, _| {
        let late = if is_late(gate) {
            0.0
        } else {
            bias(1, gate, unit)
        };
        bias(0, gate, unit) + late
    });
    let w = table(&all, inputs, &from_input);
    // A reset before the product needs the reset gates of all units first.
    let r = if cell.recurrence == Recurrence::Gru && !cell.resets_late {
        let start = table(&[0, 1], hidden, &from_state);
        table(&[2], hidden, &from_state);
        start
    } else {
        table(&all, hidden, &from_state)
    };
    let late_bias = table(&all[gates - 1..], 1, &|gate, unit, _| bias(1, gate, unit));
    let peephole = table(&[0, 1, 2], 1, &|part, unit, _| {
        weights.p.map_or(0.0, |p| p[(3 * d + part) * hidden + unit])
    });
    Parts {
        bias: start_bias,
        w,
        r,
        late_bias,
        peephole,
    }
}
