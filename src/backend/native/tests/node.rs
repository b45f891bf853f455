//! One node against the numbers it must give.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::run::build_and_run_twice;
use super::shares::divide;
use crate::backend::native::kernels::{KernelCtx, Share};
use crate::backend::native::lower::lower;
use crate::backend::native::program::{Choice, Program, Segments, assemble_for};
use crate::backend::native::render::Renderer;
use crate::backend::native::space::default_mapping;
use crate::backend::native::spec::Operation;
use crate::device::{Isa, probe};
use crate::graph::{Attribute, Graph, Node, Tensor, TensorData, Value, ValueId, infer, partition};
use crate::space::Candidate;

/// A node with its operands, and the outputs it must give.
pub(super) struct NodeTest {
    node: Node,
    opset: i64,
    operands: Vec<(Option<Tensor>, bool)>,
    /// The output that nobody wants.
    unwanted: Option<usize>,
}

/// Makes a tensor.
pub(super) fn tensor(dims: &[usize], data: TensorData) -> Tensor {
    Tensor::new(dims.to_vec().into(), data).unwrap()
}

/// Makes an f32 tensor.
pub(super) fn f32s(dims: &[usize], data: &[f32]) -> Tensor {
    tensor(dims, TensorData::F32(data.to_vec()))
}

/// Makes an i64 tensor.
pub(super) fn i64s(dims: &[usize], data: &[i64]) -> Tensor {
    tensor(dims, TensorData::I64(data.to_vec()))
}

impl NodeTest {
    pub(super) fn new(op: &str) -> Self {
        Self {
            node: Node {
                name: String::new(),
                op: op.to_owned(),
                domain: String::new(),
                attributes: BTreeMap::new(),
                inputs: Vec::new(),
                outputs: Vec::new(),
            },
            opset: 21,
            operands: Vec::new(),
            unwanted: None,
        }
    }

    pub(super) fn opset(mut self, opset: i64) -> Self {
        self.opset = opset;
        self
    }

    pub(super) fn attribute(mut self, name: &str, value: Attribute) -> Self {
        self.node.attributes.insert(name.to_owned(), value);
        self
    }

    /// Adds an input that is given at run time.
    pub(super) fn input(mut self, tensor: Tensor) -> Self {
        self.operands.push((Some(tensor), false));
        self
    }

    /// Adds an input that is an initializer.
    pub(super) fn constant(mut self, tensor: Tensor) -> Self {
        self.operands.push((Some(tensor), true));
        self
    }

    /// Leaves an input out.
    pub(super) fn nothing(mut self) -> Self {
        self.operands.push((None, false));
        self
    }

    /// Leaves an output out; those that are expected are the others.
    pub(super) fn without_output(mut self, idx: usize) -> Self {
        self.unwanted = Some(idx);
        self
    }

    /// Builds the node alone for the portable and the widest instruction set and compares all of
    /// its outputs: to `tolerance` of the largest number, or exactly if it is zero.
    pub(super) fn gives(self, tolerance: f64, expected: &[Tensor]) {
        let widest = if cfg!(target_arch = "x86_64") {
            Isa::X86V2
        } else {
            Isa::Portable
        };
        self.gives_on(&[Isa::Portable, widest], tolerance, expected);
    }

    /// Like [`NodeTest::gives`] for some instruction sets.
    pub(super) fn gives_on(self, isas: &[Isa], tolerance: f64, expected: &[Tensor]) {
        let (graph, inputs) = self.graph(expected);
        for &isa in isas {
            let partition = partition(&graph);
            let operations = lower(&graph, &partition).unwrap();
            let n_subgraphs = partition.subgraphs.len();
            let program = untuned_program(isa, &graph, &operations, n_subgraphs);
            for outputs in build_and_run_twice(&program, &inputs) {
                for (actual, expected) in outputs.iter().zip(expected) {
                    compare(&self.node.op, actual, expected, tolerance);
                }
            }
        }
    }

    /// Builds the node as a whole, in parts and for three threads, which all must give the same bits;
    /// `outputs` say of which types and extents.
    pub(super) fn gives_the_same_in_parts(self, outputs: &[Tensor]) {
        let op = self.node.op.clone();
        let (graph, inputs) = self.graph(outputs);
        let partition = partition(&graph);
        let operations = lower(&graph, &partition).unwrap();
        let n_subgraphs = partition.subgraphs.len();
        let isa = probe::host().isa;
        let program = |threads, share| {
            untuned_program_by(threads, share, isa, &graph, &operations, n_subgraphs)
        };
        let expected = build_and_run_twice(&program(1, Share::Whole), &inputs);
        let mut divided = 0;
        for share in [Share::Rows, Share::Channels] {
            let mut parts = program(1, share);
            divided += divide(&mut parts, &mut ChaCha8Rng::seed_from_u64(3));
            assert!(
                build_and_run_twice(&parts, &inputs) == expected,
                "{op} {share:?}"
            );
        }
        assert!(divided > 0, "{op}");
        let threads = program(3, Share::Whole);
        assert_eq!(threads.threads, 3, "{op}");
        assert!(build_and_run_twice(&threads, &inputs) == expected, "{op}");
    }

    fn graph(&self, expected: &[Tensor]) -> (Graph, Vec<Vec<u8>>) {
        let mut graph = Graph {
            name: "node".to_owned(),
            opset: self.opset,
            values: Vec::new(),
            nodes: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        let mut node = self.node.clone();
        let mut inputs = Vec::new();
        for (operand, is_constant) in &self.operands {
            let id = ValueId(graph.values.len());
            node.inputs.push(operand.as_ref().map(|_| id));
            let Some(tensor) = operand else { continue };
            graph.values.push(Value {
                name: format!("x{}", id.0),
                dtype: tensor.dtype(),
                shape: tensor.shape().clone(),
                data: is_constant.then(|| Arc::new(tensor.clone())),
            });
            if !is_constant {
                graph.inputs.push(id);
                inputs.push(tensor.data().to_le_bytes());
            }
        }
        let operands = graph.operands(&node);
        if let Some(facts) = infer(&node, self.opset, &operands).unwrap() {
            let wanted = facts.iter().enumerate();
            let wanted = wanted.filter(|(idx, _)| Some(*idx) != self.unwanted);
            for ((_, fact), expected) in wanted.zip(expected) {
                assert_eq!(
                    (fact.dtype, &fact.shape),
                    (expected.dtype(), expected.shape())
                );
            }
        }
        for tensor in expected {
            let id = ValueId(graph.values.len());
            graph.values.push(Value {
                name: format!("y{}", id.0),
                dtype: tensor.dtype(),
                shape: tensor.shape().clone(),
                data: None,
            });
            node.outputs.push(Some(id));
            graph.outputs.push(id);
        }
        if let Some(idx) = self.unwanted {
            node.outputs.insert(idx, None);
        }
        graph.nodes.push(node);
        (graph, inputs)
    }
}

/// Assembles the operations of a graph as they are untuned.
pub(super) fn untuned_program(
    isa: Isa,
    graph: &Graph,
    operations: &[Operation],
    n_subgraphs: usize,
) -> Program {
    untuned_program_by(1, Share::Whole, isa, graph, operations, n_subgraphs)
}

/// As [`untuned_program`], for some threads, or divided as a segment or threads would.
fn untuned_program_by(
    threads: usize,
    share: Share,
    isa: Isa,
    graph: &Graph,
    operations: &[Operation],
    n_subgraphs: usize,
) -> Program {
    let renderer = Renderer::new(&BTreeMap::new()).unwrap();
    let ctx = KernelCtx {
        renderer: &renderer,
        isa,
        share,
    };
    let candidates = untuned(isa, operations, n_subgraphs);
    let (choice, whole) = (Choice(&candidates), Segments::default());
    assemble_for(threads, ctx, graph, operations, &choice, &whole).unwrap()
}

/// Returns the untuned default of each subgraph.
fn untuned(isa: Isa, operations: &[Operation], n_subgraphs: usize) -> Vec<Candidate> {
    let of = |idx| {
        operations
            .iter()
            .find(|operation| operation.subgraph == idx)
    };
    (0..n_subgraphs)
        .map(|idx| Candidate {
            mapping: of(idx)
                .map(|operation| default_mapping(isa, operation))
                .unwrap_or_default(),
            ..Candidate::default()
        })
        .collect()
}

fn compare(op: &str, actual: &[u8], expected: &Tensor, tolerance: f64) {
    let (actual, expected) = match expected.data() {
        TensorData::F32(data) => {
            let actual = actual.chunks_exact(4);
            let actual: Vec<f64> = actual
                .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]).into())
                .collect();
            (actual, data.iter().map(|&v| v.into()).collect::<Vec<f64>>())
        }
        other => {
            assert_eq!(actual, other.to_le_bytes(), "{op}");
            return;
        }
    };
    let largest = expected
        .iter()
        .filter(|v| v.is_finite())
        .fold(0f64, |m, v| m.max(v.abs()));
    for (actual, expected) in actual.iter().zip(&expected) {
        let same = actual.to_bits() == expected.to_bits() || (actual.is_nan() && expected.is_nan());
        let close = (actual - expected).abs() <= tolerance * largest;
        assert!(same || close, "{op}: {actual} instead of {expected}");
    }
}
