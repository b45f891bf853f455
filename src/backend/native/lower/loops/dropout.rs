//! `Dropout` as inference has it: everything is kept.

use super::copy::{self, Fill, Move, signed};
use super::nest;
use super::node::LoopNode;
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;
use crate::graph::{DType, Tensor, TensorData};

/// Lowers `Dropout`; `None` if it is another operator.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Result<Vec<Operation>, NotCovered>> {
    if node.node.op != "Dropout" {
        return None;
    }
    let may_drop = match node.input(2).map(|known| known.data.map(Tensor::data)) {
        None => false,
        Some(Some(TensorData::Bool(flags))) => flags.iter().any(|&flag| flag),
        Some(_) => true,
    };
    // Half of the elements are dropped unless the ratio is stated.
    let ratio = node.input(1).map_or(Some(0.5), |known| {
        known
            .data
            .and_then(Tensor::as_f32)
            .and_then(|ratio| ratio.first().copied())
    });
    if may_drop && ratio.is_none_or(|ratio| ratio > 0.0) {
        return Some(Err(node.refuse("it drops at random")));
    }
    Some(keep(node))
}

fn keep(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let x = node.required(0)?;
    let mut operations = Vec::new();
    if let Some(y) = node.output(0) {
        let strides = nest::dense(y.dims());
        let whole = Move {
            input: 0,
            output: 0,
            extents: y.dims().to_vec(),
            x: (0, signed(&strides)),
            y: (0, strides),
        };
        operations.extend(copy::operation(node, &[x], &[y], &[], &[whole])?);
    }
    if let Some(mask) = node.output(1) {
        // Before opset 10 the mask has the type of the input.
        if mask.dtype != DType::Bool {
            return Err(node.refuse(format!("a mask of {}", mask.dtype)));
        }
        let fill = Fill {
            output: 0,
            len: mask.shape.len(),
            value: "1".to_owned(),
        };
        operations.extend(copy::operation(node, &[], &[mask], &[fill], &[])?);
    }
    Ok(operations)
}
