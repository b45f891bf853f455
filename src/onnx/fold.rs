//! What a node's outputs are: facts by rule, constants where everything is known.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::draft::check_size;
use super::error::Problem;
use super::evaluate::{Evaluator, Given, MAX_BYTES};
use super::exact::{evaluate, filled};
use super::proto;
use crate::graph::{
    DType, Fact, Graph, Node, Shape, Tensor, TensorData, ValueId, infer, is_symmetric,
};

/// Operators that the reference executor computes otherwise than ONNX says, or not to the last
/// bit of an integer: they are not folded by it.
const INEXACT: &[&str] = &["Resize", "DynamicQuantizeLinear", "QuantizeLinear"];

/// Infers the outputs of a node.
pub(super) fn facts(graph: &Graph, node: &Node, title: &str) -> Result<Vec<Fact>, Problem> {
    let operands = graph.operands(node);
    match infer(node, graph.opset, &operands) {
        Ok(Some(facts)) => Ok(facts),
        // `Unique` has no shape but that of its result.
        Ok(None) => match exactly(graph, node, &[]) {
            Some(tensors) => Ok(tensors.iter().map(fact).collect()),
            None => Err(Problem::UnsupportedOperator {
                op: node.op.clone(),
                node: title.to_owned(),
                detail: "there is no shape rule for it".to_owned(),
            }),
        },
        Err(error) => Err(Problem::Mismatch {
            node: title.to_owned(),
            op: node.op.clone(),
            source: error,
        }),
    }
}

/// Returns the names of dequantised values that are weights of a layer whose other operand is
/// dequantised too: such a layer can be computed in integers.
pub(super) fn quantized_weights<'a>(model: &proto::Graph<'a>) -> BTreeSet<&'a str> {
    let made = model.nodes.iter().filter(|n| n.op == "DequantizeLinear");
    let made: BTreeMap<&str, &str> = made
        .filter_map(|node| Some((*node.outputs.first()?, *node.inputs.first()?)))
        .collect();
    let known: BTreeSet<&str> = model
        .initializers
        .iter()
        .map(|tensor| tensor.name)
        .collect();
    let layers = model.nodes.iter();
    let layers = layers.filter(|node| matches!(node.op, "Conv" | "Gemm" | "MatMul"));
    let weights = layers.filter_map(|node| match node.inputs.as_slice() {
        [x, weights, ..] => {
            let is_computed = made.get(x).is_some_and(|source| !known.contains(source));
            (is_computed && made.contains_key(weights)).then_some(*weights)
        }
        _ => None,
    });
    weights.collect()
}

/// Returns whether a node dequantises weights as integer kernels take them: constant 8-bit numbers
/// around zero.
pub(super) fn keeps_weights(graph: &Graph, node: &Node) -> bool {
    node.op == "DequantizeLinear" && is_symmetric(graph, node)
}

fn fact(tensor: &Tensor) -> Fact {
    Fact {
        dtype: tensor.dtype(),
        shape: tensor.shape().clone(),
    }
}

/// Evaluates a node exactly if all of its inputs are constants.
fn exactly(graph: &Graph, node: &Node, facts: &[Fact]) -> Option<Vec<Tensor>> {
    let constant = |id: &Option<ValueId>| match id {
        Some(id) => graph.constant(*id).map(Some),
        None => Some(None),
    };
    let inputs = node
        .inputs
        .iter()
        .map(constant)
        .collect::<Option<Vec<_>>>()?;
    evaluate(node, &inputs, facts)
}

/// Returns the outputs as constants if they depend on constants or shapes alone.
pub(super) fn fold(
    evaluator: &Evaluator,
    graph: &Graph,
    node: &Node,
    facts: &[Fact],
) -> Result<Option<Vec<Option<Arc<Tensor>>>>, Problem> {
    let input = node.input(0).map(|id| graph.value(id));
    match (node.op.as_str(), input) {
        ("Shape", Some(value)) => {
            let n = facts.first().map_or(0, |fact| fact.shape.len());
            let rank = value.shape.rank() as i64;
            let start = node.int("start", 0);
            let start = (if start < 0 { start + rank } else { start }).clamp(0, rank) as usize;
            let dims = value.shape.dims()[start..]
                .iter()
                .take(n)
                .map(|&d| d as i64);
            return Ok(Some(vec![Some(Arc::new(Tensor::from_i64(dims.collect())))]));
        }
        ("Size", Some(value)) => {
            let len = TensorData::I64(vec![value.shape.len() as i64]);
            let scalar = Tensor::new(Shape::default(), len).ok().map(Arc::new);
            return Ok(scalar.map(|scalar| vec![Some(scalar)]));
        }
        _ => {}
    }
    // Only the shape of its input matters.
    if node.op == "EyeLike"
        && let (Some(fact), Some(value)) = (facts.first(), input)
    {
        check_size(&node.op, &fact.shape)?;
        let like = filled(value.dtype, &value.shape);
        let tensors = like.and_then(|like| evaluate(node, &[Some(&like)], facts));
        return Ok(tensors.map(|tensors| tensors.into_iter().map(|t| Some(Arc::new(t))).collect()));
    }
    let operands = given(graph, node);
    let is_constant = operands
        .iter()
        .flatten()
        .all(|operand| operand.data.is_some());
    if !is_constant || node.outputs.len() > facts.len() {
        return Ok(None);
    }
    if node.op == "Identity" {
        return Ok(Some(vec![
            operands.into_iter().next().flatten().and_then(|g| g.data),
        ]));
    }
    for fact in facts {
        check_size(&node.op, &fact.shape)?;
    }
    let size = |fact: &Fact| fact.shape.len().saturating_mul(fact.dtype.bytes());
    if bytes(&operands) > MAX_BYTES || facts.iter().map(size).sum::<usize>() > MAX_BYTES {
        return Ok(None);
    }
    if let Some(tensors) = exactly(graph, node, facts) {
        let tensors = tensors.into_iter().map(|tensor| Some(Arc::new(tensor)));
        return Ok(Some(tensors.collect()));
    }
    let is_held = operands.iter().flatten().all(is_held) && facts.iter().all(is_computed);
    if INEXACT.contains(&node.op.as_str()) || !is_held {
        return Ok(None);
    }
    let dtypes: Vec<Option<DType>> = facts.iter().map(|fact| Some(fact.dtype)).collect();
    // What the executor cannot run stays in the graph, at its inferred shape.
    let Ok(tensors) = evaluator.fold(node, graph.opset, &operands, &dtypes) else {
        return Ok(None);
    };
    let agrees = tensors
        .iter()
        .zip(facts)
        .all(|(tensor, fact)| tensor.as_ref().is_none_or(|t| *t.shape() == fact.shape));
    let tensors = tensors.into_iter().map(|tensor| tensor.map(Arc::new));
    Ok(agrees.then(|| tensors.collect()))
}

/// Returns whether the reference executor holds an operand as it is: integers as i32, floats as f32.
fn is_held(given: &Given) -> bool {
    match given.dtype {
        DType::F32 | DType::I8 | DType::U8 | DType::I32 | DType::Bool => true,
        DType::I64 => given.data.as_deref().is_some_and(|tensor| {
            let narrow = |v: &i64| i32::try_from(*v).is_ok();
            tensor.to_i64().is_some_and(|data| data.iter().all(narrow))
        }),
        _ => false,
    }
}

/// Returns whether the reference executor computes results of a type as they should be.
fn is_computed(fact: &Fact) -> bool {
    matches!(
        fact.dtype,
        DType::F32 | DType::I8 | DType::U8 | DType::I32 | DType::I64 | DType::Bool
    )
}

fn given(graph: &Graph, node: &Node) -> Vec<Option<Given>> {
    let given = |id: &Option<ValueId>| {
        let value = graph.value((*id)?);
        Some(Given {
            dtype: value.dtype,
            shape: value.shape.clone(),
            data: value.data.clone(),
        })
    };
    node.inputs.iter().map(given).collect()
}

fn bytes(given: &[Option<Given>]) -> usize {
    given
        .iter()
        .flatten()
        .map(|given| given.shape.len().saturating_mul(given.dtype.bytes()))
        .fold(0, usize::saturating_add)
}
