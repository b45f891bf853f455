//! Operators of one element at a time, with broadcasting: a chain of them is one kernel.

use serde_json::{Value, json};

use super::element;
use super::nest;
use super::node::{Known, LoopNode};
use super::scalar::{self, Term};
use super::vector::{self, VectorTerm};
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;
use crate::graph::{DType, ValueId};

/// Elements of a chunk, which is at least one vector of any width.
const CHUNK: usize = 1024;

/// Lowers the operators of one element at the start of `nodes`, each of which reads the one
/// before; returns how many they are. `None` if the first is not one.
pub(super) fn lower(nodes: &[LoopNode<'_>]) -> Option<Result<(usize, Vec<Operation>), NotCovered>> {
    let (first, rest) = nodes.split_first()?;
    let mut chain = Chain::default();
    match chain.push(first)? {
        Ok(()) => {}
        Err(error) => return Some(Err(error)),
    }
    let mut n_nodes = 1;
    for node in rest {
        let reads_last = node
            .node
            .inputs
            .iter()
            .flatten()
            .any(|&id| chain.is_last(id));
        let output = node.output(0)?;
        if !reads_last || chain.output.is_none_or(|last| last.shape != output.shape) {
            break;
        }
        let mut longer = chain.clone();
        if !matches!(longer.push(node), Some(Ok(()))) {
            break;
        }
        chain = longer;
        n_nodes += 1;
    }
    // A conversion without vectors would keep functions that take long from having them.
    let is_slow = nodes[1..n_nodes].iter().any(|node| is_function(node));
    if first.node.op == "Cast" && chain.vectors.is_none() && is_slow {
        n_nodes = 1;
        chain = Chain::default();
        if let Some(Err(error)) = chain.push(first) {
            return Some(Err(error));
        }
    }
    let operation = chain.operation(&nodes[..n_nodes])?;
    Some(Ok((n_nodes, vec![operation])))
}

/// Returns whether an operator takes many instructions for an element.
fn is_function(node: &LoopNode<'_>) -> bool {
    matches!(
        node.node.op.as_str(),
        "Erf" | "Exp" | "Gelu" | "Sigmoid" | "Silu" | "Swish" | "Tanh"
    )
}

/// A chain as far as it is read.
#[derive(Clone, Default)]
struct Chain<'a> {
    inputs: Vec<Known<'a>>,
    steps: Vec<Value>,
    /// Statements on vectors; `None` once there are no primitives for a step.
    vectors: Option<Vec<String>>,
    output: Option<Known<'a>>,
}

impl<'a> Chain<'a> {
    fn is_last(&self, id: ValueId) -> bool {
        self.output.is_some_and(|output| output.id == id)
    }

    /// Takes in a node; `None` if it does not work on one element at a time.
    fn push(&mut self, node: &LoopNode<'a>) -> Option<Result<(), NotCovered>> {
        let output = node.output(0)?;
        if node.output(1).is_some() {
            return None;
        }
        let mut args: Vec<Option<Term>> = Vec::new();
        let mut vector_args: Vec<Option<VectorTerm>> = Vec::new();
        for idx in 0..node.node.inputs.len() {
            let Some(known) = node.input(idx) else {
                args.push(None);
                vector_args.push(None);
                continue;
            };
            let variable = self.variable(known);
            let number = known.data.and_then(|data| match data.as_f32() {
                Some([number]) => Some(*number),
                _ => None,
            });
            vector_args.push(Some(match number {
                Some(number) => VectorTerm::Number(number),
                None => VectorTerm::Variable(format!("v{variable}")),
            }));
            args.push(Some(scalar::term(&known, variable)));
        }
        while args.last().is_some_and(Option::is_none) {
            args.pop();
            vector_args.pop();
        }
        let expression = scalar::expression(node, &args)?;
        let given = (0..args.len()).filter_map(|idx| node.input(idx));
        let mut operands = given.clone();
        if operands.any(|known| !broadcasts(known.dims(), output.dims())) {
            let reason = format!("its operands do not broadcast to {}", output.shape);
            return Some(Err(node.refuse(reason)));
        }
        let is_first = self.steps.is_empty();
        // Conversions load and store vectors of half precision; nothing else rounds to it.
        let converts = |known: Known<'_>| {
            let is_half = known.dtype == DType::F16 && !self.is_last(known.id);
            is_half && node.node.op == "Cast"
        };
        let is_single = |known: Known<'_>| known.dtype == DType::F32 || converts(known);
        let all_single = is_single(output) && given.clone().all(is_single);
        let vector = vector::expression(node, &vector_args).filter(|_| all_single);
        let name = format!("s{}", self.steps.len());
        let before = if is_first {
            Some(Vec::new())
        } else {
            self.vectors.take()
        };
        self.vectors = before.zip(vector).map(|(mut steps, vector)| {
            steps.push(format!("let v{name} = {vector};"));
            steps
        });
        self.steps.push(json!({
            "name": name,
            "dtype": element::rust_type(output.dtype),
            "expression": expression,
        }));
        self.output = Some(output);
        Some(Ok(()))
    }

    /// Returns the variable that holds a value, which is read if nothing holds it yet.
    fn variable(&mut self, known: Known<'a>) -> String {
        if self.is_last(known.id) {
            return format!("s{}", self.steps.len() - 1);
        }
        if known.data.and_then(element::constant).is_some() {
            return String::new();
        }
        let idx = self.inputs.iter().position(|input| input.id == known.id);
        let idx = idx.unwrap_or_else(|| {
            self.inputs.push(known);
            self.inputs.len() - 1
        });
        format!("a{idx}")
    }

    fn operation(&self, nodes: &[LoopNode<'_>]) -> Option<Operation> {
        let output = self.output?;
        let mut strides: Vec<Vec<usize>> = self
            .inputs
            .iter()
            .map(|input| nest::broadcast(input.dims(), output.dims()))
            .collect();
        strides.push(nest::dense(output.dims()));
        let (extents, strides) = nest::merge(output.dims(), &strides);
        let last = extents.len() - 1;
        let inputs: Vec<Value> = self
            .inputs
            .iter()
            .zip(&strides)
            .enumerate()
            .map(|(idx, (input, strides))| {
                let place = format!("x{idx}.add({})", nest::place(strides));
                json!({
                    "storage": element::storage(input.dtype),
                    "load": element::load(input.dtype, &place),
                    "row": nest::place(&strides[..last]),
                    "step": strides[last],
                })
            })
            .collect();
        // Vectors lie along the last axis, where every operand must have neighbours or one number.
        let walks = strides.iter().all(|strides| strides[last] <= 1);
        let vectors = self
            .vectors
            .as_ref()
            .filter(|_| walks && strides[self.inputs.len()][last] == 1);
        let result = format!("s{}", self.steps.len() - 1);
        let units = match extents[..] {
            [only] => (only / CHUNK).max(1),
            _ => extents[0],
        };
        let facts = json!({
            "units": units, "chunk": CHUNK,
            "extents": extents,
            "inputs": inputs,
            "steps": self.steps,
            "vectors": vectors,
            "halves": self.inputs.iter().chain([&output]).any(|known| known.dtype == DType::F16),
            "output": {
                "storage": element::storage(output.dtype),
                "at": nest::place(&strides[self.inputs.len()]),
                "row": nest::place(&strides[self.inputs.len()][..last]),
                "store": element::store(output.dtype, &result),
                "vector": format!("v{result}"),
            },
        });
        let names: Vec<String> = nodes
            .iter()
            .map(|node| node.node.op.to_lowercase())
            .collect();
        let template = "loops/elementwise.rs.j2";
        let first = nodes.first()?;
        let operation = first.operation(template, facts, &self.inputs, &[output], 0);
        Some(Operation {
            name: names.join("+"),
            ..operation
        })
    }
}

fn broadcasts(from: &[usize], to: &[usize]) -> bool {
    from.len() <= to.len()
        && from
            .iter()
            .rev()
            .zip(to.iter().rev())
            .all(|(&from, &to)| from == to || from == 1)
}
