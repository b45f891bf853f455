//! Checks of a whole model.

use super::error::Problem;
use super::proto;
use super::sort::title;
use crate::graph::{Graph, Tensor, TensorData};

/// Refuses nodes that call a function of the model.
pub(super) fn functions(model: &proto::Model<'_>, graph: &proto::Graph<'_>) -> Result<(), Problem> {
    let called = graph
        .nodes
        .iter()
        .find(|node| model.functions.contains(&(node.domain, node.op)));
    match called {
        Some(node) => Err(Problem::UnsupportedOperator {
            op: format!("{}.{}", node.domain, node.op),
            node: title(node).to_owned(),
            detail: "it is a function of the model; export with functions inlined".to_owned(),
        }),
        None => Ok(()),
    }
}

/// Refuses constants that hold NaN, and weights that are infinite.
///
/// Infinities are fine elsewhere: attention masks are made of them.
pub(super) fn finite(graph: &Graph) -> Result<(), Problem> {
    let mut is_weight = vec![false; graph.values.len()];
    for node in &graph.nodes {
        let weighs = matches!(
            node.op.as_str(),
            "Conv"
                | "ConvTranspose"
                | "Gemm"
                | "MatMul"
                | "BatchNormalization"
                | "LayerNormalization"
                | "LSTM"
                | "GRU"
                | "RNN"
        );
        for id in node.inputs.iter().flatten().filter(|_| weighs) {
            is_weight[id.0] = true;
        }
    }
    for (value, is_weight) in graph.values.iter().zip(is_weight) {
        let Some(tensor) = &value.data else { continue };
        let n_bad = count(tensor, is_weight);
        if n_bad > 0 {
            return Err(Problem::NotFinite {
                tensor: value.name.clone(),
                n_bad,
            });
        }
    }
    Ok(())
}

fn count(tensor: &Tensor, with_infinities: bool) -> usize {
    match tensor.data() {
        TensorData::F32(data) => {
            let bad = |v: &&f32| v.is_nan() || (with_infinities && v.is_infinite());
            data.iter().filter(bad).count()
        }
        TensorData::F64(data) => {
            let bad = |v: &&f64| v.is_nan() || (with_infinities && v.is_infinite());
            data.iter().filter(bad).count()
        }
        TensorData::F16(data) => {
            // Exponent all ones: infinite, or NaN if a fraction bit is set.
            let bad = |v: &&u16| *v & 0x7c00 == 0x7c00 && (with_infinities || *v & 0x03ff != 0);
            data.iter().filter(bad).count()
        }
        _ => 0,
    }
}
