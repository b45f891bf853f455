//! Recurrence by the definition, one number at a time.

use serde_json::{Map, Value, json};

use super::cell::{Activation, Cell, Recurrence};
use crate::backend::native::lower::loops::element;
use crate::backend::native::lower::loops::node::{Known, LoopNode};
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;
use crate::graph::DType;

/// Makes the operation.
pub(super) fn operation(node: &LoopNode<'_>, cell: &Cell<'_>) -> Result<Operation, NotCovered> {
    let dtype = cell.x.dtype;
    let mut inputs: Vec<Known<'_>> = Vec::new();
    // The parameter of each operand that is given, and how its element `at` is read.
    let mut operands = Map::new();
    let given = [
        ("x", Some(cell.x)),
        ("w", Some(cell.w)),
        ("r", Some(cell.r)),
        ("b", cell.b),
        ("lengths", cell.lengths),
        ("h", cell.h),
        ("c", cell.c),
        ("p", cell.p),
    ];
    for (name, known) in given {
        let Some(known) = known else { continue };
        let (idx, storage) = (inputs.len(), element::storage(known.dtype));
        let load = element::load(
            known.dtype,
            &format!("(x{idx} as *const {storage}).add(at)"),
        );
        operands.insert(name.to_owned(), json!(load));
        inputs.push(known);
    }
    let outputs: Vec<Known<'_>> = cell.outputs.iter().flatten().copied().collect();
    let mut results = Map::new();
    for (name, known) in ["y", "y_h", "y_c"].iter().zip(&cell.outputs) {
        if known.is_some() {
            let place = format!("(y{} as *mut {})", results.len(), element::storage(dtype));
            results.insert((*name).to_owned(), json!(place));
        }
    }
    if outputs.is_empty() {
        return Err(node.refuse("it has no output"));
    }
    let gates = cell.recurrence.gates();
    let directions: Vec<Value> = cell
        .directions
        .iter()
        .map(|direction| {
            let functions = direction.activations.iter();
            json!({
                "reverse": direction.is_reverse,
                "activations": functions.map(|a| expression(a, dtype)).collect::<Vec<_>>(),
            })
        })
        .collect();
    let facts = json!({
        "type": element::rust_type(dtype),
        "store": element::store(dtype, "v"),
        "operands": operands, "results": results, "directions": directions,
        "recurrence": match cell.recurrence {
            Recurrence::Lstm => "lstm",
            Recurrence::Gru => "gru",
            Recurrence::Rnn => "rnn",
        },
        "gates": gates, "steps": cell.steps, "batch": cell.batch,
        "inputs": cell.inputs, "hidden": cell.hidden,
        "x": cell.x_strides(), "y": cell.y_strides(), "state": cell.state_strides(),
        "clip": cell.clip.map(|clip| element::float(clip.into(), dtype)),
        "couples": cell.couples, "resets_late": cell.resets_late,
    });
    // Two states, the next one, and the gates.
    let room = cell.hidden * (gates + 4) * 8;
    Ok(node.operation("loops/recurrent.rs.j2", facts, &inputs, &outputs, room))
}

/// Returns what an activation makes of `v`.
fn expression(activation: &Activation, dtype: DType) -> String {
    let f = if dtype == DType::F64 { "" } else { "f" };
    let alpha = element::float(activation.alpha.into(), dtype);
    let beta = element::float(activation.beta.into(), dtype);
    match activation.name.as_str() {
        "sigmoid" => format!("1.0 / (1.0 + exp{f}(-v))"),
        "tanh" => format!("tanh{f}(v)"),
        "relu" => "if v > 0.0 { v } else { 0.0 }".to_owned(),
        "affine" => format!("v * {alpha} + {beta}"),
        "scaledtanh" => format!("{alpha} * tanh{f}({beta} * v)"),
        "hardsigmoid" => format!("(v * {alpha} + {beta}).clamp(0.0, 1.0)"),
        "leakyrelu" => format!("if v < 0.0 {{ v * {alpha} }} else {{ v }}"),
        "thresholdedrelu" => format!("if v > {alpha} {{ v }} else {{ 0.0 }}"),
        "elu" => format!("if v < 0.0 {{ {alpha} * expm1{f}(v) }} else {{ v }}"),
        "softsign" => "v / (1.0 + v.abs())".to_owned(),
        _ => format!("(if v > 0.0 {{ v }} else {{ 0.0 }}) + log1p{f}(exp{f}(-v.abs()))"),
    }
}
