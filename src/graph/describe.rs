//! Short descriptions of subgraphs, for people.

use std::fmt::Write;

use super::subgraph::Kind;
use super::{Graph, Node, Subgraph};

impl Subgraph {
    /// Describes the subgraph, e.g. `conv 3×3 s2 16→32 +relu`.
    pub fn describe(&self, graph: &Graph) -> String {
        let mut text = anchor(graph, graph.node(self.anchor), self.kind(graph));
        for _ in &self.prologue {
            text.push_str(" ×scale");
        }
        for &id in &self.epilogue {
            let _ = write!(text, " +{}", step(graph, graph.node(id)));
        }
        text
    }
}

fn anchor(graph: &Graph, node: &Node, kind: Kind) -> String {
    let dims = |idx| {
        node.input(idx)
            .map_or(&[][..], |id| graph.value(id).shape.dims())
    };
    let output = node.output(0);
    let produced = output.map_or(&[][..], |id| graph.value(id).shape.dims());
    let channels = |dims: &[usize]| dims.get(1).copied().unwrap_or(1);
    match kind {
        Kind::Conv | Kind::GroupedConv | Kind::DepthwiseConv | Kind::ConvTranspose => {
            let name = match kind {
                Kind::DepthwiseConv => "dwconv",
                Kind::ConvTranspose => "deconv",
                _ => "conv",
            };
            let window = by(dims(1).get(2..).unwrap_or_default().iter().copied());
            let mut text = format!("{name} {window}{}", stride(node));
            if kind == Kind::GroupedConv
                || (kind == Kind::ConvTranspose && node.int("group", 1) > 1)
            {
                let _ = write!(text, " g{}", node.int("group", 1));
            }
            let (from, to) = (channels(dims(0)), channels(produced));
            if kind == Kind::DepthwiseConv && from == to {
                let _ = write!(text, " {from}");
            } else {
                let _ = write!(text, " {from}→{to}");
            }
            text
        }
        Kind::Gemm => {
            let last = |dims: &[usize]| dims.last().copied().unwrap_or(1);
            format!("gemm {}→{}", last(dims(0)), last(produced))
        }
        Kind::MatMul => format!("matmul {}·{}", shape(dims(0)), shape(dims(1))),
        Kind::Pool if node.op.starts_with("Global") => {
            format!(
                "{} {}",
                words(&node.op),
                by(dims(0).get(2..).unwrap_or_default().iter().copied())
            )
        }
        Kind::Pool => {
            let kernel = node.ints("kernel_shape").unwrap_or_default();
            let window = by(kernel.iter().map(|&size| size as usize));
            format!(
                "{} {window}{} {}",
                words(&node.op),
                stride(node),
                channels(produced)
            )
        }
        _ => format!("{} {}", words(&node.op), shape(produced)),
    }
}

fn step(graph: &Graph, node: &Node) -> String {
    let is_scalar = node
        .inputs
        .iter()
        .flatten()
        .any(|&id| super::scalar(graph, id).is_some());
    match node.op.as_str() {
        "GlobalAveragePool" => "gap".to_owned(),
        "Clip" => match super::clip_bounds(graph, node) {
            Some((0.0, 6.0)) => "relu6".to_owned(),
            _ => "clip".to_owned(),
        },
        "Add"
            if !is_scalar
                && node
                    .inputs
                    .iter()
                    .flatten()
                    .any(|&id| graph.constant(id).is_some()) =>
        {
            "bias".to_owned()
        }
        "Add" if !is_scalar => "add".to_owned(),
        "Add" | "Sub" if is_scalar => "offset".to_owned(),
        "Mul" | "Div" if is_scalar => "scale".to_owned(),
        op => words(op),
    }
}

fn stride(node: &Node) -> String {
    let strides = node.ints("strides").unwrap_or_default();
    match strides.first() {
        Some(first) if strides.iter().any(|&s| s != 1) => {
            if strides.iter().all(|s| s == first) {
                format!(" s{first}")
            } else {
                format!(" s{}", by(strides.iter().map(|&s| s as usize)))
            }
        }
        _ => String::new(),
    }
}

fn by(sizes: impl Iterator<Item = usize>) -> String {
    sizes
        .map(|size| size.to_string())
        .collect::<Vec<_>>()
        .join("×")
}

fn shape(dims: &[usize]) -> String {
    format!("[{}]", by(dims.iter().copied()))
}

/// Writes an operator type in lower case: `GlobalAveragePool` is `global-average-pool`.
fn words(op: &str) -> String {
    if matches!(
        op,
        "HardSwish" | "HardSigmoid" | "LeakyRelu" | "MatMul" | "MaxPool"
    ) || op.len() < 5
    {
        return op.to_lowercase();
    }
    let mut text = String::new();
    let mut was_lower = false;
    for c in op.chars() {
        if c.is_uppercase() && was_lower {
            text.push('-');
        }
        was_lower = c.is_lowercase();
        text.extend(c.to_lowercase());
    }
    text
}
