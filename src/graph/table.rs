//! Functions of one 8-bit value: whatever elementwise operators say between two 8-bit values is a
//! table of 256 entries.

use std::collections::{BTreeMap, BTreeSet};

use super::{DType, Graph, Node, NodeId, ValueId, affine, clip_bounds, scalar};

/// Values that 8 bits can have.
const N_BYTES: usize = 256;

/// Most operators between the two values.
const MAX_NODES: usize = 64;

/// Operators that compute one 8-bit value from another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The operators, in order; the last one quantises.
    pub nodes: Vec<NodeId>,
    /// The result by what the 8 bits are as an unsigned number.
    pub entries: Vec<u8>,
}

/// Returns the shortest run of operators that computes an 8-bit value from `from`, and takes in
/// everything that reads `from` and what is between; `None` if there is no such run.
///
/// `consumers` are those of the graph. Numbers are those of ONNX: f32, rounded half to even.
pub fn table(graph: &Graph, consumers: &[Vec<NodeId>], from: ValueId) -> Option<Table> {
    let dtype = graph.value(from).dtype;
    if !matches!(dtype, DType::U8 | DType::I8) || graph.outputs.contains(&from) {
        return None;
    }
    let bytes = (0..N_BYTES).map(|byte| match dtype {
        DType::I8 => f32::from(byte as u8 as i8),
        _ => byte as f32,
    });
    let mut known: BTreeMap<ValueId, Vec<f32>> = [(from, bytes.collect())].into();
    let mut next: BTreeSet<NodeId> = consumers[from.0].iter().copied().collect();
    let mut nodes = Vec::new();
    while let Some(id) = next.pop_first().filter(|_| nodes.len() < MAX_NODES) {
        let node = graph.node(id);
        let (Some(output), 1) = (node.output(0), node.outputs.len()) else {
            return None;
        };
        let fits = node.domain.is_empty() && graph.value(output).shape == graph.value(from).shape;
        let result = apply(graph, node, &known).filter(|_| fits)?;
        nodes.push(id);
        if node.op == "QuantizeLinear" && next.is_empty() {
            // Of an i8 its bits.
            let entries = result.iter().map(|&number| number as i32 as u8);
            let entries = entries.collect();
            return Some(Table { nodes, entries });
        }
        if graph.outputs.contains(&output) {
            return None;
        }
        next.extend(&consumers[output.0]);
        known.insert(output, result);
    }
    None
}

/// Applies an operator whose operands are known for each of the 256 values, or constant.
fn apply(graph: &Graph, node: &Node, known: &BTreeMap<ValueId, Vec<f32>>) -> Option<Vec<f32>> {
    let x = known.get(&node.input(0)?);
    if let Some((scale, zero)) = affine(graph, node) {
        let zero = zero as f32;
        let (low, high) = match graph.value(node.output(0)?).dtype {
            DType::I8 => (-128.0, 127.0),
            _ => (0.0, 255.0),
        };
        return Some(each(x?, |x| {
            if node.op == "QuantizeLinear" {
                ((x / scale).round_ties_even() + zero).clamp(low, high)
            } else {
                (x - zero) * scale
            }
        }));
    }
    let float = |name: &str, default: f32| node.float(name, default);
    if let Some(function) = binary(&node.op) {
        let operand = |idx: usize| {
            let id = node.input(idx)?;
            let constant = || Some(vec![scalar(graph, id)?; N_BYTES]);
            known.get(&id).cloned().or_else(constant)
        };
        let (lhs, rhs) = (operand(0)?, operand(1)?);
        let pairs = lhs.iter().zip(&rhs);
        let result: Vec<f32> = pairs.map(|(&a, &b)| function(a, b)).collect();
        return Some(result).filter(|result| node.inputs.len() == 2 && is_finite(result));
    }
    let x = x?;
    Some(match node.op.as_str() {
        "Identity" => x.clone(),
        "Relu" => each(x, |x| x.max(0.0)),
        "LeakyRelu" => {
            let alpha = float("alpha", 0.01);
            each(x, |x| if x < 0.0 { alpha * x } else { x })
        }
        "Clip" => {
            let (low, high) = clip_bounds(graph, node)?;
            each(x, |x| x.max(low).min(high))
        }
        "HardSigmoid" => {
            let (alpha, beta) = (float("alpha", 0.2), float("beta", 0.5));
            each(x, |x| (alpha * x + beta).clamp(0.0, 1.0))
        }
        "HardSwish" => each(x, |x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0)),
        "Sigmoid" => each(x, sigmoid),
        "Swish" => {
            let alpha = float("alpha", 1.0);
            each(x, |x| x * sigmoid(alpha * x))
        }
        "Tanh" => each(x, |x| f64::from(x).tanh() as f32),
        "Exp" => each(x, |x| f64::from(x).exp() as f32),
        "Elu" => {
            let alpha = float("alpha", 1.0);
            each(x, |x| {
                if x < 0.0 {
                    alpha * f64::from(x).exp_m1() as f32
                } else {
                    x
                }
            })
        }
        "Neg" => each(x, |x| -x),
        "Abs" => each(x, f32::abs),
        "Sqrt" => each(x, f32::sqrt),
        _ => return None,
    })
    .filter(|result| is_finite(result))
}

/// What is not a number has no nearest integer.
fn is_finite(numbers: &[f32]) -> bool {
    numbers.iter().all(|number| number.is_finite())
}

fn binary(op: &str) -> Option<fn(f32, f32) -> f32> {
    Some(match op {
        "Add" => |a, b| a + b,
        "Sub" => |a, b| a - b,
        "Mul" => |a, b| a * b,
        "Div" => |a, b| a / b,
        "Max" => f32::max,
        "Min" => f32::min,
        _ => return None,
    })
}

fn sigmoid(x: f32) -> f32 {
    (1.0 / (1.0 + (-f64::from(x)).exp())) as f32
}

fn each(x: &[f32], function: impl Fn(f32) -> f32) -> Vec<f32> {
    x.iter().map(|&x| function(x)).collect()
}
