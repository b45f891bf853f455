//! Tiny models built by hand, so that an adaptation takes seconds, and what differs between two
//! of them is known.

use std::collections::BTreeMap;
use std::sync::Arc;

use metainfer::graph::{Attribute, DType, Graph, Node, Shape, Tensor, TensorData, Value, ValueId};
use metainfer::onnx;

use super::Sandbox;

/// Height and width of everything.
const SIDE: usize = 8;

/// A model under construction; it has one input, `[1, 8, 8, 8]`.
pub(crate) struct Tiny {
    graph: Graph,
    seed: u64,
}

/// A convolution that keeps height and width.
#[derive(Clone, Copy)]
pub(crate) struct Conv {
    pub(crate) channels: [usize; 2],
    pub(crate) kernel: usize,
    pub(crate) dilation: usize,
    pub(crate) relu: bool,
}

impl Conv {
    pub(crate) fn new(channels: [usize; 2], kernel: usize) -> Self {
        Self {
            channels,
            kernel,
            dilation: 1,
            relu: false,
        }
    }

    pub(crate) fn relu(self) -> Self {
        Self { relu: true, ..self }
    }

    pub(crate) fn dilated(self, dilation: usize) -> Self {
        Self { dilation, ..self }
    }
}

/// Returns three convolutions of different structure, one after the other.
pub(crate) fn three() -> Graph {
    three_with(Conv::new([16, 8], 1), 1)
}

/// As [`three`], with another convolution in the middle and weights of a seed.
pub(crate) fn three_with(middle: Conv, seed: u64) -> Graph {
    let mut tiny = Tiny::new(seed);
    let a = tiny.conv("a", tiny.input(), Conv::new([8, 16], 3).relu());
    let b = tiny.conv("b", a, middle);
    let c = tiny.conv("c", b, Conv::new([8, 8], 3).relu());
    tiny.finish(c)
}

/// Returns two pointwise convolutions, whose kernels compile quickest.
pub(crate) fn two() -> Graph {
    two_with(1)
}

/// As [`two`], with weights of a seed.
pub(crate) fn two_with(seed: u64) -> Graph {
    let mut tiny = Tiny::new(seed);
    let a = tiny.conv("a", tiny.input(), Conv::new([8, 16], 1).relu());
    let b = tiny.conv("b", a, Conv::new([16, 8], 1));
    tiny.finish(b)
}

/// Returns a fully connected layer so small that it has half a dozen mappings.
pub(crate) fn dense() -> Graph {
    let mut tiny = Tiny::new(1);
    tiny.graph.values[0].shape = Shape(vec![1, 4]);
    let (weights, bias) = (tiny.weights("w", &[4, 4]), tiny.weights("b", &[4]));
    let y = tiny.value("y", vec![1, 4]);
    let inputs = [tiny.input(), weights, bias];
    tiny.node("dense", "Gemm", &[], &inputs, y);
    tiny.finish(y)
}

/// Returns two convolutions that read the same value, side by side, and one that reads their sum.
pub(crate) fn branches() -> Graph {
    let mut tiny = Tiny::new(1);
    let left = tiny.conv("left", tiny.input(), Conv::new([8, 16], 1).relu());
    let right = tiny.conv("right", tiny.input(), Conv::new([8, 16], 3).relu());
    let sum = tiny.add("sum", left, right);
    let last = tiny.conv("last", sum, Conv::new([16, 8], 1));
    tiny.finish(last)
}

/// Returns an operator that the reference executor does not know, and a convolution.
pub(crate) fn unusual() -> Graph {
    let mut tiny = Tiny::new(1);
    let y = tiny.value("shrunk", [1, 8, SIDE, SIDE].to_vec());
    tiny.node("shrunk", "Shrink", &[], &[tiny.input()], y);
    let last = tiny.conv("last", y, Conv::new([8, 8], 1));
    tiny.finish(last)
}

/// Returns convolutions of 8-bit integers whose results are numbers again before a softmax.
pub(crate) fn quantized() -> Graph {
    let mut tiny = Tiny::new(1);
    let x = tiny.rounded("x", tiny.input());
    let a = tiny.integers("a", x, [8, 32]);
    let a = tiny.rounded("a", a);
    let b = tiny.integers("b", a, [32, 32]);
    let b = tiny.rounded("b", b);
    let y = tiny.value("y", vec![1, 32, SIDE, SIDE]);
    let axis = [("axis", Attribute::Int(1))];
    tiny.node("softmax", "Softmax", &axis, &[b], y);
    tiny.finish(y)
}

impl Tiny {
    pub(crate) fn new(seed: u64) -> Self {
        let mut tiny = Self {
            graph: Graph {
                name: "tiny".to_owned(),
                opset: 17,
                values: Vec::new(),
                nodes: Vec::new(),
                inputs: Vec::new(),
                outputs: Vec::new(),
            },
            seed,
        };
        let input = tiny.value("x", [1, 8, SIDE, SIDE].to_vec());
        tiny.graph.inputs.push(input);
        tiny
    }

    pub(crate) fn input(&self) -> ValueId {
        self.graph.inputs[0]
    }

    pub(crate) fn conv(&mut self, name: &str, x: ValueId, conv: Conv) -> ValueId {
        let [ic, oc] = conv.channels;
        let weights = self.weights(&format!("{name}.w"), &[oc, ic, conv.kernel, conv.kernel]);
        let bias = self.weights(&format!("{name}.b"), &[oc]);
        let y = self.value(name, vec![1, oc, SIDE, SIDE]);
        let pad = (conv.dilation * (conv.kernel - 1) / 2) as i64;
        let both = |value: usize| Attribute::Ints(vec![value as i64; 2]);
        let attributes = [
            ("pads", Attribute::Ints(vec![pad; 4])),
            ("dilations", both(conv.dilation)),
            ("kernel_shape", both(conv.kernel)),
        ];
        self.node(name, "Conv", &attributes, &[x, weights, bias], y);
        if !conv.relu {
            return y;
        }
        let name = format!("{name}.relu");
        let z = self.value(&name, vec![1, oc, SIDE, SIDE]);
        self.node(&name, "Relu", &[], &[y], z);
        z
    }

    /// Rounds to u8 and back.
    fn rounded(&mut self, name: &str, x: ValueId) -> ValueId {
        let dims = self.graph.value(x).shape.0.clone();
        let scale = self.constant(&format!("{name}.scale"), &[], TensorData::F32(vec![0.021]));
        let zero = self.constant(&format!("{name}.zero"), &[], TensorData::U8(vec![117]));
        let byte = self.value(&format!("{name}.byte"), dims.clone());
        self.graph.values[byte.0].dtype = DType::U8;
        let real = self.value(&format!("{name}.real"), dims);
        let conversion = [x, scale, zero];
        self.node(
            &format!("{name}.q"),
            "QuantizeLinear",
            &[],
            &conversion,
            byte,
        );
        let conversion = [byte, scale, zero];
        self.node(
            &format!("{name}.d"),
            "DequantizeLinear",
            &[],
            &conversion,
            real,
        );
        real
    }

    /// A pointwise convolution by integers.
    fn integers(&mut self, name: &str, x: ValueId, [ic, oc]: [usize; 2]) -> ValueId {
        let dims = [oc, ic, 1, 1];
        let weights = (0..oc * ic).map(|i| (i * 37 % 251) as u8 as i8);
        let weights = TensorData::I8(weights.collect());
        let weights = self.constant(&format!("{name}.w"), &dims, weights);
        let scale = self.constant(&format!("{name}.s"), &[], TensorData::F32(vec![0.0031]));
        let real = self.value(&format!("{name}.real_w"), dims.to_vec());
        self.node(
            &format!("{name}.dw"),
            "DequantizeLinear",
            &[],
            &[weights, scale],
            real,
        );
        let y = self.value(name, vec![1, oc, SIDE, SIDE]);
        self.node(name, "Conv", &[], &[x, real], y);
        y
    }

    fn constant(&mut self, name: &str, dims: &[usize], data: TensorData) -> ValueId {
        let id = self.value(name, dims.to_vec());
        let tensor = Tensor::new(Shape(dims.to_vec()), data).unwrap();
        let value = &mut self.graph.values[id.0];
        value.dtype = tensor.dtype();
        value.data = Some(Arc::new(tensor));
        id
    }

    pub(crate) fn add(&mut self, name: &str, lhs: ValueId, rhs: ValueId) -> ValueId {
        let y = self.value(name, self.graph.value(lhs).shape.0.clone());
        self.node(name, "Add", &[], &[lhs, rhs], y);
        y
    }

    pub(crate) fn finish(mut self, output: ValueId) -> Graph {
        self.graph.outputs.push(output);
        self.graph
    }

    fn value(&mut self, name: &str, dims: Vec<usize>) -> ValueId {
        let id = ValueId(self.graph.values.len());
        self.graph.values.push(Value {
            name: name.to_owned(),
            dtype: DType::F32,
            shape: Shape(dims),
            data: None,
        });
        id
    }

    fn weights(&mut self, name: &str, dims: &[usize]) -> ValueId {
        let len: usize = dims.iter().product();
        let seed = self.seed * 31 + self.graph.values.len() as u64;
        let data = (0..len as u64).map(|i| ((i * 37 + seed * 11) % 23) as f32 / 46.0 - 0.2);
        self.constant(name, dims, TensorData::F32(data.collect()))
    }

    fn node(
        &mut self,
        name: &str,
        op: &str,
        attributes: &[(&str, Attribute)],
        inputs: &[ValueId],
        output: ValueId,
    ) {
        let attributes = attributes.iter();
        let attributes: BTreeMap<_, _> = attributes
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        self.graph.nodes.push(Node {
            name: format!("node_{name}"),
            op: op.to_owned(),
            domain: String::new(),
            attributes,
            inputs: inputs.iter().copied().map(Some).collect(),
            outputs: vec![Some(output)],
        });
    }
}

/// Gives every value and node of a graph another name.
pub(crate) fn renamed(mut graph: Graph) -> Graph {
    graph.name.push_str(" renamed");
    for value in &mut graph.values {
        value.name = format!("other/{}", value.name);
    }
    for node in &mut graph.nodes {
        node.name = format!("other/{}", node.name);
    }
    graph
}

impl Sandbox {
    /// As [`Sandbox::new`], with a model named `tiny`.
    pub(crate) fn with_tiny(graph: &Graph) -> Self {
        let sandbox = Self::new();
        sandbox.file("metainfer.toml", "model-dir = \"models\"\n");
        sandbox.model("models/tiny.onnx", graph);
        sandbox
    }

    /// Writes a model.
    pub(crate) fn model(&self, path: &str, graph: &Graph) -> &Self {
        self.bytes(path, &onnx::encode(graph).unwrap())
    }
}
