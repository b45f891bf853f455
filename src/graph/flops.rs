//! How much there is to compute.

use super::operator::{is_elementwise, is_view};
use super::{Graph, Node, Subgraph, ValueId};

impl Subgraph {
    /// Returns the floating point operations of one run, saturating: a multiplication and an
    /// addition are two, any other operator costs one for each element that it writes, a pool or a
    /// reduction one for each that it reads, and moving data costs none.
    pub fn flops(&self, graph: &Graph) -> u64 {
        self.nodes()
            .into_iter()
            .map(|id| node_flops(graph, graph.node(id)))
            .fold(0, u64::saturating_add)
    }
}

fn node_flops(graph: &Graph, node: &Node) -> u64 {
    let len = |id: Option<ValueId>| id.map_or(0, |id| graph.value(id).shape.len() as u64);
    let dims = |idx: usize| {
        node.input(idx)
            .map_or(&[][..], |id| graph.value(id).shape.dims())
    };
    let product = |dims: &[usize]| {
        dims.iter()
            .fold(1u64, |n, &dim| n.saturating_mul(dim as u64))
    };
    let written: u64 = node
        .outputs
        .iter()
        .map(|&id| len(id))
        .fold(0, u64::saturating_add);
    let macs = match node.op.as_str() {
        "Conv" | "ConvInteger" | "DeformConv" => {
            written.saturating_mul(product(dims(1).get(1..).unwrap_or_default()))
        }
        "QLinearConv" => written.saturating_mul(product(dims(3).get(1..).unwrap_or_default())),
        "ConvTranspose" => {
            len(node.input(0)).saturating_mul(product(dims(1).get(1..).unwrap_or_default()))
        }
        "Gemm" => {
            let depth = match node.int("transA", 0) {
                0 => dims(0).last(),
                _ => dims(0).first(),
            };
            written.saturating_mul(depth.copied().unwrap_or(1) as u64)
        }
        "MatMul" | "MatMulInteger" | "QLinearMatMul" => {
            written.saturating_mul(dims(0).last().copied().unwrap_or(1) as u64)
        }
        "Attention" => {
            // Each query meets each key, and each weight that comes of it a value.
            let keys = |idx: usize| dims(idx).iter().rev().nth(1).map_or(0, |&n| n as u64);
            let n_keys = keys(1).saturating_add(keys(4));
            let products = len(node.input(0)).saturating_add(len(node.output(0)));
            products.saturating_mul(n_keys)
        }
        "LSTM" | "GRU" | "RNN" => {
            // Each step of each sequence multiplies with all weights: `[t, n, …] · W, R`.
            let steps = product(dims(0).get(..2).unwrap_or_default());
            let weights = len(node.input(1)).saturating_add(len(node.input(2)));
            steps.saturating_mul(weights)
        }
        op if is_view(op) => return 0,
        op if is_elementwise(op) => return written,
        "MaxPool" | "AveragePool" | "LpPool" => {
            let window = node.ints("kernel_shape").unwrap_or_default();
            let window = window
                .iter()
                .fold(1u64, |n, &dim| n.saturating_mul(dim.max(1) as u64));
            return written.saturating_mul(window);
        }
        op if op.starts_with("Global") || op.starts_with("Reduce") || op.contains("Softmax") => {
            return len(node.input(0));
        }
        op if op.ends_with("Normalization") => return len(node.input(0)),
        _ => return 0,
    };
    macs.saturating_mul(2)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::graph::{Attribute, DType, NodeId, Value, partition};

    /// Returns the operations of one node with inputs and an output of these shapes.
    fn flops(
        op: &str,
        inputs: &[&[usize]],
        output: &[usize],
        attributes: &[(&str, Attribute)],
    ) -> u64 {
        let shapes = inputs.iter().copied().chain([output]);
        let values: Vec<Value> = shapes
            .enumerate()
            .map(|(idx, shape)| Value {
                name: format!("v{idx}"),
                dtype: DType::F32,
                shape: shape.to_vec().into(),
                data: None,
            })
            .collect();
        let ids: Vec<ValueId> = (0..values.len()).map(ValueId).collect();
        let (output_id, input_ids) = ids.split_last().unwrap();
        let graph = Graph {
            name: String::new(),
            opset: 18,
            nodes: vec![Node {
                name: String::new(),
                op: op.to_owned(),
                domain: String::new(),
                attributes: attributes
                    .iter()
                    .map(|(key, value)| ((*key).to_owned(), value.clone()))
                    .collect::<BTreeMap<_, _>>(),
                inputs: input_ids.iter().map(|&id| Some(id)).collect(),
                outputs: vec![Some(*output_id)],
            }],
            values,
            inputs: input_ids.to_vec(),
            outputs: vec![*output_id],
        };
        let partition = partition(&graph);
        assert_eq!(partition.subgraphs[0].anchor, NodeId(0));
        partition.subgraphs[0].flops(&graph)
    }

    #[test]
    fn products_count_twice() {
        let conv = flops(
            "Conv",
            &[&[1, 3, 8, 8], &[16, 3, 3, 3]],
            &[1, 16, 8, 8],
            &[],
        );
        assert_eq!(conv, 2 * 16 * 64 * 27);
        let depthwise = flops(
            "Conv",
            &[&[1, 16, 8, 8], &[16, 1, 3, 3]],
            &[1, 16, 8, 8],
            &[],
        );
        assert_eq!(depthwise, 2 * 16 * 64 * 9);
        let gemm = flops("Gemm", &[&[2, 64], &[64, 10]], &[2, 10], &[]);
        assert_eq!(gemm, 2 * 20 * 64);
        let transposed = [("transA", Attribute::Int(1))];
        let gemm = flops("Gemm", &[&[64, 2], &[64, 10]], &[2, 10], &transposed);
        assert_eq!(gemm, 2 * 20 * 64);
    }

    #[test]
    fn others_count_elements() {
        assert_eq!(flops("Relu", &[&[1, 10]], &[1, 10], &[]), 10);
        let window = [("kernel_shape", Attribute::Ints(vec![2, 2]))];
        assert_eq!(
            flops("MaxPool", &[&[1, 1, 4, 4]], &[1, 1, 2, 2], &window),
            16
        );
        assert_eq!(flops("Reshape", &[&[1, 10]], &[10], &[]), 0);
    }

    #[test]
    fn quantised_products_and_attention_count_as_products() {
        let inputs: &[&[usize]] = &[&[2, 4], &[], &[], &[4, 3], &[], &[], &[], &[]];
        assert_eq!(flops("QLinearMatMul", inputs, &[2, 3], &[]), 2 * 2 * 3 * 4);
        let inputs: &[&[usize]] = &[&[1, 2, 5, 8], &[1, 2, 7, 8], &[1, 2, 7, 6]];
        let expected = 2 * 2 * 5 * 7 * (8 + 6);
        assert_eq!(flops("Attention", inputs, &[1, 2, 5, 6], &[]), expected);
    }

    #[test]
    fn huge_shapes_saturate() {
        let window = [("kernel_shape", Attribute::Ints(vec![i64::MAX; 3]))];
        assert_eq!(flops("MaxPool", &[&[1]], &[1], &window), u64::MAX);

        let huge = [usize::MAX, usize::MAX];
        assert_eq!(flops("Relu", &[&huge], &huge, &[]), u64::MAX);
    }
}
