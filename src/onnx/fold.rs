//! What a node's outputs are: facts by rule or by trial, constants where everything is known.

use std::sync::Arc;

use super::draft::check_size;
use super::error::Problem;
use super::evaluate::{Evaluator, Given, MAX_BYTES};
use super::executor::RUNNING;
use crate::graph::{
    DType, Fact, Graph, InferError, Node, Operand, Shape, Tensor, TensorData, ValueId, infer,
};

/// Operators whose output has as many elements as the data says.
const DATA_DEPENDENT: &[&str] = &["NonZero", "NonMaxSuppression", "Unique", "Compress"];

/// Infers the outputs of a node: by rule, or by running it on zeros if there is none.
pub(super) fn facts(
    evaluator: &Evaluator,
    graph: &Graph,
    node: &Node,
    title: &str,
) -> Result<Vec<Fact>, Problem> {
    let operands: Vec<Option<Operand<'_>>> = node
        .inputs
        .iter()
        .map(|id| {
            let value = graph.value((*id)?);
            Some(Operand {
                dtype: value.dtype,
                shape: &value.shape,
                data: value.data.as_deref(),
            })
        })
        .collect();
    let unsupported = |detail: String| Problem::UnsupportedOperator {
        op: node.op.clone(),
        node: title.to_owned(),
        detail,
    };
    match infer(node, graph.opset, &operands) {
        Ok(Some(facts)) => Ok(facts),
        Ok(None) => {
            let given = given(graph, node);
            let is_constant = given.iter().flatten().all(|given| given.data.is_some());
            if DATA_DEPENDENT.contains(&node.op.as_str()) && !is_constant {
                return Err(unsupported(
                    "the shape of its output depends on the data".to_owned(),
                ));
            }
            if bytes(&given) > MAX_BYTES {
                return Err(unsupported("there is no shape rule for it".to_owned()));
            }
            evaluator
                .facts(node, graph.opset, &given)
                .map_err(|problem| match problem {
                    Problem::Reference { doing, source } if doing == RUNNING => Problem::Mismatch {
                        node: title.to_owned(),
                        op: node.op.clone(),
                        source: InferError::Mismatch(source.to_string()),
                    },
                    Problem::Reference { source, .. } => unsupported(source.to_string()),
                    other => other,
                })
        }
        Err(error) => Err(Problem::Mismatch {
            node: title.to_owned(),
            op: node.op.clone(),
            source: error,
        }),
    }
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
